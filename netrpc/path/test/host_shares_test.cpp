// Shares of the network domain and of one server: however much some hosts take, the next host gets some.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "chatty.server.h"
#include "lrpc/detail/shim/most_of_one.h"
#include "messages.h"
#include "remote_fixture.h"

namespace testing_netpath {
namespace {

using lrpc::netpath::bytes_of;
using lrpc::netpath::Command;
using lrpc::shim::most_of_one;

constexpr HostAddress kFirst = 0x0a00'0101;
constexpr std::size_t kAll = 8;

TEST(MostOfOne, leaves_some_to_each_that_comes_later) {
  constexpr std::size_t kMany = 1024;
  std::vector<std::size_t> taken;
  std::size_t in_use = 0;
  for (std::size_t has = 0; in_use < kMany; has = 0) {  // one host after the other takes its whole share
    while (in_use < kMany && has < most_of_one(has, in_use, kMany)) ++has, ++in_use;
    ASSERT_NE(has, 0U);
    taken.push_back(has);
  }
  EXPECT_EQ(taken.front(), 448U);
  EXPECT_GT(taken.size(), kMany / 8) << "the last eighth goes to as many hosts";
  EXPECT_EQ(most_of_one(0, kMany, kMany), 1U) << "if there is any";
}

class Shared : public TwoHosts {
 protected:
  void start(BrokerOptions options) {
    there_->stop_broker();
    options.exported = [](std::string_view) { return true; };
    there_->start_broker(std::move(options));
  }
  /// The error that refuses a BIND of `from`, or the code in the answer.
  Errc bind(HostAddress from, const std::string& name, std::uint32_t wait_ms = 0) {
    return bind(from, name, Conformance::kPdl.interface, wait_ms).code;
  }
  lrpc::netpath::BindAnswer bind(HostAddress from, const std::string& name, const lrpc::InterfaceId& id,
                                 std::uint32_t wait_ms = 0) {
    const lrpc::netpath::BindMessage message{1, name, {std::string(id.name), id.major, id.minor, id.hash}, wait_ms};
    std::array<std::byte, 500> reply{};
    std::size_t size = 0;
    const Errc refused = serve(from, Command::bind, bytes_of(lrpc::netpath::encode(message)), reply, size);
    if (refused != Errc::ok) return {refused, {}, {}};
    return lrpc::netpath::decode_bind_answer(std::span(reply).first(size))
        .value_or(lrpc::netpath::BindAnswer{Errc::bad_message, {}, {}});
  }
  /// The status of a call with empty arguments.
  std::optional<std::uint16_t> call(HostAddress from, const lrpc::netpath::CallPrologue& prologue) {
    std::array<std::byte, lrpc::netpath::kPrologue> request{};
    lrpc::netpath::encode_prologue(prologue, 0, request);
    std::array<std::byte, 500> reply{};
    std::size_t size = 0;
    if (serve(from, Command::call, request, reply, size) != Errc::ok) return std::nullopt;
    const auto answer = lrpc::netpath::decode_call_answer(std::span(reply).first(size));
    return answer ? std::optional(answer->status) : std::nullopt;
  }
  Errc ping(HostAddress from) {
    std::array<std::byte, 500> reply{};
    std::size_t size = 0;
    return serve(from, Command::ping, bytes_of(lrpc::netpath::encode(lrpc::netpath::PingMessage{1, {}})), reply, size);
  }

 private:
  Errc serve(HostAddress from, Command command, std::span<const std::byte> request, std::span<std::byte> reply,
             std::size_t& size) {
    return static_cast<Errc>(there_->broker().serve({from, lrpc::shim::HostAuthentication::key, "lab"},
                                                    ++network_.arrivals, static_cast<std::uint16_t>(command), request,
                                                    reply, size));
  }
};

TEST_F(Shared, bindings_are_left_to_hosts_that_come_later) {
  BrokerOptions options;
  options.max_bindings = kAll;
  start(options);
  std::vector<std::size_t> bound;
  for (HostAddress host = kFirst; host != kFirst + 4; ++host) {
    std::size_t has = 0;
    while (has < kAll && bind(host, "files") == Errc::ok) ++has;
    bound.push_back(has);
  }
  EXPECT_EQ(bound, (std::vector<std::size_t>{3, 2, 1, 1}));
}

TEST_F(Shared, commands_of_others_are_served_while_those_of_some_take_long) {
  BrokerOptions options;
  options.max_commands = kAll;
  options.max_waiting_binds_per_host = options.max_waiting_binds = 100;
  start(options);
  std::atomic<std::size_t> refused = 0;
  std::vector<std::thread> callers;
  const auto occupy = [&](HostAddress host) {
    for (std::size_t i = 0; i < kAll; ++i)
      callers.emplace_back([&, host] {
        if (bind(host, "late", 10'000) == Errc::limit_reached) ++refused;
      });
  };
  occupy(kFirst);
  EXPECT_TRUE(eventually([&] { return refused == kAll - 3; })) << refused;
  occupy(kFirst + 1);
  EXPECT_TRUE(eventually([&] { return refused == 2 * kAll - 5; })) << refused;
  EXPECT_EQ(ping(kFirst + 2), Errc::ok);
  EXPECT_TRUE(Conformance::export_to(*server_, "late", service_));
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(refused, 2 * kAll - 5);
  EXPECT_EQ(ping(kFirst), Errc::ok) << "what has been served counts no more";
}

TEST_F(Shared, binds_that_wait_for_a_name_leave_places_to_hosts_that_come_later) {
  constexpr std::array<std::size_t, 5> kShares{3, 2, 1, 1, 1};
  BrokerOptions options;
  options.max_waiting_binds = kAll;
  options.max_waiting_binds_per_host = kAll / 2;
  start(options);
  const auto began = std::chrono::steady_clock::now();
  std::array<std::atomic<std::size_t>, kShares.size()> refused{};
  std::array<std::atomic<std::size_t>, kShares.size()> bound{};
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < kShares.size(); ++i) {
    for (std::size_t one = 0; one < kAll; ++one) {
      callers.emplace_back([&, i] {
        const Errc code = bind(kFirst + static_cast<HostAddress>(i), "late", 10'000);
        ++(code == Errc::ok ? bound : refused).at(i);
      });
    }
    EXPECT_TRUE(eventually([&] { return refused.at(i) != 0; })) << "host " << i << " has all that it may have";
  }
  const auto all_refused = [&] { return std::accumulate(refused.begin(), refused.end(), std::size_t{0}); };
  EXPECT_TRUE(eventually([&] { return all_refused() >= (kShares.size() - 1) * kAll; })) << "the others wait";
  EXPECT_TRUE(Conformance::export_to(*server_, "late", service_));
  for (std::thread& caller : callers) caller.join();
  // After the longest time that a BIND waits, some of them have timed out.
  if (std::chrono::steady_clock::now() - began >= std::chrono::seconds(10)) return;
  for (std::size_t i = 0; i < kShares.size(); ++i) EXPECT_EQ(bound.at(i), kShares.at(i)) << "host " << i;
}

/// A service that holds the calls of one host until `may_return`.
class SlowForOneHost {
 public:
  std::int32_t Ask(lrpc::CallContext& call) {
    if (call.remote() == nullptr || call.remote()->host != kFirst) return 0;
    ++under_way;
    while (!may_return) std::this_thread::sleep_for(milliseconds(1));
    return 0;
  }
  void Note(lrpc::CallContext&, const lrpc::String<100>&) {}
  Chatty::NotedResults Noted(lrpc::CallContext&) { return {}; }
  std::uint8_t Refuse(lrpc::CallContext&, std::uint32_t) { return 0; }

  std::atomic<std::size_t> under_way = 0;
  std::atomic<bool> may_return = false;
};

TEST_F(Shared, calls_of_a_host_are_served_while_another_has_as_many_of_a_server_s_estacks_as_it_may) {
  constexpr std::uint16_t kAsk = 3;
  constexpr std::size_t kCalls = 16;
  start({});
  SlowForOneHost slow;
  lrpc::Server server({.nameserver = there_->socket(), .max_estacks = kCalls});
  ASSERT_TRUE(Chatty::export_to(server, "slow", slow));
  const auto& id = Chatty::kPdl.interface;
  const auto ask = [&](HostAddress from, std::uint32_t remaining_ms) {
    const auto bound = bind(from, "slow", id);
    EXPECT_EQ(bound.code, Errc::ok) << bound.text;
    return call(from, {bound.key, id.hash, kAsk, false, remaining_ms});
  };
  std::vector<std::thread> callers;
  std::atomic<std::size_t> returned = 0;
  for (std::size_t i = 0; i < kCalls; ++i)
    callers.emplace_back([&] {
      if (ask(kFirst, 0) == std::uint16_t{0}) ++returned;
    });
  EXPECT_TRUE(eventually([&] { return slow.under_way >= 13; })) << slow.under_way;
  EXPECT_EQ(ask(kFirst + 1, 60'000), std::uint16_t{0}) << "13 of 14 are the most of one host";
  EXPECT_EQ(slow.under_way, 13U);
  slow.may_return = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(returned, kCalls);
}

TEST_F(Shared, handles_of_a_server_are_left_to_hosts_that_come_later) {
  start({});
  std::atomic<std::size_t> refused = 0;
  lrpc::ExportOptions options;
  options.on_exception = [&](const lrpc::EscapedException& escaped) {
    EXPECT_NE(escaped.what.find("as many handles"), std::string_view::npos) << escaped.what;
    ++refused;
  };
  lrpc::Server server({.nameserver = there_->socket(), .max_handles_per_user = 16});
  ASSERT_TRUE(Conformance::export_to(server, "notes", service_, options));
  const lrpc::Pdl& pdl = Conformance::kPdl;
  std::uint16_t open_note = 0;
  while (pdl.procedures[open_note].name != "OpenNote") ++open_note;
  const auto open_all = [&](HostAddress from) {  // opens on one more binding of this host
    const auto bound = bind(from, "notes", pdl.interface);
    EXPECT_EQ(bound.code, Errc::ok) << bound.text;
    const lrpc::netpath::CallPrologue prologue{bound.key, pdl.interface.hash, open_note};
    std::size_t has = 0;
    while (has < 16 && call(from, prologue) == std::uint16_t{0}) ++has;
    return has;
  };
  std::vector<std::size_t> opened;
  for (const HostAddress host : {kFirst, kFirst, kFirst + 1, kFirst + 2, kFirst + 3, kFirst + 4})
    opened.push_back(open_all(host));
  EXPECT_EQ(opened, (std::vector<std::size_t>{7, 0, 3, 2, 1, 1})) << "more bindings are no more for a host";
  EXPECT_EQ(refused, opened.size());
  auto local = Conformance::Client::import("notes", {.nameserver = there_->socket()});
  ASSERT_TRUE(local) << local.error().message();
  EXPECT_TRUE(local->OpenNote()) << "a user here has its own";
}

}  // namespace
}  // namespace testing_netpath
