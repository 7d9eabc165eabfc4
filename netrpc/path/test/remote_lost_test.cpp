// What a network loses: a call whose loss ends no other call, a binding whose client never hears of it, and notices of
// a host that is gone.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>

#include "group_fixture.h"
#include "messages.h"
#include "remote_fixture.h"
#include "served_hosts.h"

namespace testing_netpath {
namespace {

TEST_F(TwoHosts, lose_a_call_whose_reply_cannot_be_carried_and_nothing_else) {
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  network_.replies_too_long = true;
  EXPECT_EQ(client->Null().code(), Errc::call_lost);
  EXPECT_EQ(client->start().Null().finish().code(), Errc::call_lost);
  EXPECT_EQ(import().code(), Errc::remote_unavailable);
  const std::uint64_t before = network_.pings;
  EXPECT_TRUE(eventually([&] { return network_.pings >= before + 3; })) << "a keepalive that is lost ends nothing";
  network_.replies_too_long = false;
  EXPECT_TRUE(client->Null());
}

TEST_F(TwoHosts, drop_a_binding_of_which_its_host_has_not_heard_and_keep_the_others) {
  there_->stop_broker();
  auto options = there_options();
  options.forget = milliseconds(300);
  there_->start_broker(options);
  const auto bindings = [&] { return there_->broker().statistics().bindings; };
  EXPECT_TRUE(eventually([&] {  // again, if this process, with both hosts, was not scheduled for that long
    auto client = import();
    if (!client) return false;
    network_.lose_replies_to_binds = true;
    const bool lost = !import();
    network_.lose_replies_to_binds = false;
    if (!lost || bindings() < 2) return false;
    return eventually([&] { return bindings() < 2; }) && bindings() == 1 && client->Null().has_value();
  }));
}

using lrpc::netpath::Command;

/// How a command of kHere is served.
Errc outcome_of(lrpc::netpath::ServedHosts& hosts, Command command, const std::string& message) {
  std::array<std::byte, 500> reply{};
  std::size_t size = 0;
  return static_cast<Errc>(hosts.serve({kHere, lrpc::shim::HostAuthentication::key, "lab"}, 1,
                                       static_cast<std::uint16_t>(command), lrpc::netpath::bytes_of(message), reply,
                                       size));
}

std::string bind_to_files() {
  const auto& id = Conformance::kPdl.interface;
  return lrpc::netpath::encode(
      lrpc::netpath::BindMessage{1, "files", {std::string(id.name), id.major, id.minor, id.hash}, 0});
}

TEST_F(TwoHosts, do_not_remember_a_host_that_is_gone_when_the_servers_of_its_bindings_are) {
  BrokerOptions options = there_options();
  options.nameserver = there_->socket();
  options.forget = std::chrono::hours(24 * 365);  // the broker's value for the option kNoLimit
  lrpc::netpath::ServedHosts hosts(options, 1);
  ASSERT_EQ(outcome_of(hosts, Command::bind, bind_to_files()), Errc::ok);
  hosts.sweep(std::chrono::steady_clock::now());
  ASSERT_EQ(hosts.known(), 1U);
  server_.reset();
  EXPECT_TRUE(eventually([&] {
    hosts.sweep(std::chrono::steady_clock::now());
    return hosts.known() == 0;
  }));
}

/// `options` for a host with this nameserver and the clock `now`, which forgets another host after 90 s.
BrokerOptions by_clock(BrokerOptions options, const std::string& nameserver,
                       const std::chrono::steady_clock::time_point& now) {
  options.nameserver = nameserver;
  options.forget = std::chrono::seconds(90);
  options.now = [&now] { return now; };
  return options;
}

TEST_F(TwoHosts, keep_the_bindings_of_a_host_that_they_did_not_hear_because_they_stood_still_themselves) {
  constexpr std::chrono::seconds kLong{100};
  auto now = std::chrono::steady_clock::now();
  BrokerOptions options = by_clock(there_options(), there_->socket(), now);
  lrpc::netpath::ServedHosts hosts(options, 1);
  ASSERT_EQ(outcome_of(hosts, Command::bind, bind_to_files()), Errc::ok);
  const std::string unnamed = lrpc::netpath::encode(lrpc::netpath::PingMessage{1, {}});
  ASSERT_EQ(outcome_of(hosts, Command::ping, unnamed), Errc::ok);  // so the binding ends if it is not named in time
  now += kLong;
  hosts.stood_still(kLong);
  hosts.sweep(now);
  EXPECT_EQ(hosts.known(), 1U);
  now += kLong;
  hosts.sweep(now);
  EXPECT_EQ(hosts.known(), 0U) << "this was a silence";
}

/// A member that is there, but does not export the name, is bound again and again. Once the client's host stands still
/// meanwhile.
TEST_F(Groups, count_a_standstill_during_a_members_bind_as_nobodys_silence) {
  const auto stood_s = std::make_shared<std::atomic<int>>(0);
  BrokerOptions options = there_options();
  options.now = [stood_s, start = std::chrono::steady_clock::now()] { return start + std::chrono::seconds(*stood_s); };
  here_->stop_broker();
  here_->start_broker(options);
  ReplicaService service;
  lrpc::Server server({.nameserver = here_->socket()});
  ASSERT_TRUE(Replica::export_to(server, "served", service));
  Host silent(network_, kHere + 100, directory_ / "silent.sock");
  silent.start_broker({.keepalive = lrpc::kNoLimit, .silence = lrpc::kNoLimit});
  const auto served = Replica::Client::import("served@10.0.0.1", {.nameserver = silent.socket()});
  ASSERT_TRUE(served) << served.error().message();

  members_[2].server.reset();
  const auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  network_.tamper([stood_s](std::uint16_t command, std::vector<std::byte>&) {
    if (command == Network::kBind) *stood_s = 100;
  });
  EXPECT_TRUE(eventually([&] { return *stood_s != 0; }));
  const std::uint64_t pings = network_.pings;
  EXPECT_TRUE(eventually([&] { return network_.pings > pings + 2 * kMembers; })) << "no further sweep";
  EXPECT_EQ(here_->broker().statistics().bindings, 1U);
}

/// PINGs are refused while the host's calls take all its commands. One that cannot be read stands for one for which
/// there is no memory.
TEST_F(TwoHosts, keep_the_bindings_of_a_host_whose_pings_are_not_served) {
  auto now = std::chrono::steady_clock::now();
  BrokerOptions options = by_clock(there_options(), there_->socket(), now);
  lrpc::netpath::ServedHosts hosts(options, 1);
  std::array<std::byte, 500> reply{};
  const auto serve = [&](Command command, const std::string& message) {
    std::size_t size = 0;
    const auto status = hosts.serve({kHere, lrpc::shim::HostAuthentication::key, "lab"}, 1,
                                    static_cast<std::uint16_t>(command), lrpc::netpath::bytes_of(message), reply, size);
    return std::pair(static_cast<Errc>(status), std::span(reply).first(size));
  };
  const auto [outcome, answer] = serve(Command::bind, bind_to_files());
  ASSERT_EQ(outcome, Errc::ok);
  const auto bound = lrpc::netpath::decode_bind_answer(answer);
  ASSERT_TRUE(bound);
  const std::string ping = lrpc::netpath::encode(lrpc::netpath::PingMessage{1, {bound->key.id}});
  ASSERT_EQ(serve(Command::ping, ping).first, Errc::ok);
  const auto keep_it_without = [&](const std::string& refused, Errc why) {
    for (int i = 0; i < 3; ++i) {
      now += std::chrono::seconds(60);
      EXPECT_EQ(serve(Command::ping, refused).first, why);
      hosts.sweep(now);
    }
    EXPECT_EQ(hosts.known(), 1U) << lrpc::describe(why);
  };
  options.max_commands_per_host = 0;
  keep_it_without(ping, Errc::limit_reached);
  options.max_commands_per_host = 1;
  EXPECT_EQ(serve(Command::ping, ping).first, Errc::ok);
  keep_it_without(ping.substr(1), Errc::bad_message);
  EXPECT_EQ(serve(Command::ping, ping).first, Errc::ok);
}

}  // namespace
}  // namespace testing_netpath
