// Remote bindings: why an import is refused, what it waits for, and when a binding ends.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "chatty.client.h"
#include "messages.h"
#include "remote_fixture.h"
#include "wide.client.h"
#include "world.h"

namespace testing_netpath {
namespace {

class RemoteBindings : public TwoHosts {
 protected:
  /// Counts the BINDs that arrive over the network from now on. Shared, because they may arrive after the test's end.
  std::shared_ptr<std::atomic<int>> count_binds() {
    auto binds = std::make_shared<std::atomic<int>>(0);
    network_.tamper(
        [binds](std::uint16_t command, std::vector<std::byte>&) { *binds += command == Network::kBind ? 1 : 0; });
    return binds;
  }
};

TEST_F(RemoteBindings, say_why_a_name_cannot_be_imported) {
  EXPECT_EQ(import("private@10.0.0.2").code(), Errc::name_unknown) << "not exported to the network";
  EXPECT_EQ(import("nothing@10.0.0.2").code(), Errc::name_unknown);
  EXPECT_EQ(import("lrpc.network@10.0.0.2").code(), Errc::name_unknown);
  EXPECT_EQ(import("files@10.0.0.9").code(), Errc::remote_unavailable);
  EXPECT_EQ(import("files@no-such-host.invalid").code(), Errc::remote_unavailable);
  EXPECT_EQ(import("files@").code(), Errc::remote_unavailable);  // this host has no directory of hosts
  const auto ipv6 = import("files@2001:db8::2");
  EXPECT_EQ(ipv6.code(), Errc::invalid_argument);
  EXPECT_NE(ipv6.error().text.find("there is IPv4 only"), std::string::npos) << ipv6.error().text;
  EXPECT_EQ(import("@10.0.0.2").code(), Errc::invalid_argument);
  EXPECT_EQ(Wide::Client::import("files@10.0.0.2", import_options()).code(), Errc::message_too_long);
  EXPECT_EQ(Chatty::Client::import("files@10.0.0.2", import_options()).code(), Errc::interface_mismatch);
  here_->stop_broker();
  const auto without = import();
  EXPECT_EQ(without.code(), Errc::remote_unavailable);
  EXPECT_NE(without.error().text.find("start lrpc-netd"), std::string::npos) << without.error().text;
}

TEST_F(RemoteBindings, have_no_gate_that_stays_in_this_machine) {
  for (const lrpc::Gate gate : {lrpc::Gate::trap, lrpc::Gate::none}) {
    auto options = import_options();
    options.gate = gate;
    EXPECT_EQ(Conformance::Client::import("files@10.0.0.2", options).code(), Errc::not_supported);
  }
}

TEST_F(RemoteBindings, refuse_an_interface_whose_descriptors_did_not_fit_the_export) {
  lrpc::Pdl pdl = Conformance::kPdl;
  const std::string text(lrpc::shim::kMaxBinderMessage - 2'000, 'x');
  pdl.text = text;
  const std::vector<lrpc::EntryStub> nobody_enters(pdl.procedures.size(), nullptr);
  int implementation = 0;
  lrpc::Server server({.nameserver = there_->socket()});
  const auto exported = server.export_interface("wordy", pdl, nobody_enters, &implementation);
  ASSERT_TRUE(exported) << exported.error().message();
  const auto refused = Conformance::Client::import("wordy@10.0.0.2", import_options());
  EXPECT_EQ(refused.code(), Errc::not_supported);
}

TEST_F(RemoteBindings, refuse_an_interface_that_is_too_large_and_name_the_procedure) {
  const auto wide = Wide::Client::import("files@10.0.0.2", import_options());
  ASSERT_FALSE(wide);
  EXPECT_EQ(wide.code(), Errc::message_too_long);
  const std::string text = wide.error().text;
  EXPECT_NE(text.find("Wide.Large"), std::string::npos) << text;
  EXPECT_NE(text.find("20384"), std::string::npos) << text;
  EXPECT_NE(text.find("4000 too many"), std::string::npos) << text;
}

TEST_F(RemoteBindings, are_made_only_where_both_ends_carry_the_largest_messages_to_the_byte) {
  const auto refused = [&](std::size_t request, std::size_t reply) {
    here_->wire().longest_request = lrpc::netpath::kPrologue + request;
    here_->wire().longest_reply = lrpc::netpath::kReplyPrologue + reply;
    const auto client = Chatty::Client::import("files@10.0.0.2", import_options());
    if (client.code() == Errc::interface_mismatch) return std::string("not for its size");
    EXPECT_EQ(client.code(), Errc::message_too_long);
    return client.error().text;
  };
  EXPECT_EQ(refused(104, 108), "not for its size");
  EXPECT_EQ(refused(103, 108),
            "procedure Chatty.Note: its arguments may take 104 bytes, and 103 are the most that go between this host "
            "and host '10.0.0.2': 1 too many");
  EXPECT_EQ(refused(104, 100),
            "procedure Chatty.Noted: its results may take 108 bytes, and 100 are the most that go between this host "
            "and host '10.0.0.2': 8 too many");
}

TEST_F(RemoteBindings, wait_for_a_name_that_comes_later) {
  const auto binds = count_binds();
  std::thread later([&] {
    EXPECT_TRUE(eventually([&] { return *binds >= 1; }));
    EXPECT_TRUE(Conformance::export_to(*server_, "late", service_));
  });
  auto options = import_options();
  options.timeout = kPatience;
  auto client = Conformance::Client::import("late@10.0.0.2", options);
  later.join();
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_TRUE(client->Null());
}

TEST_F(RemoteBindings, are_unavailable_where_there_is_no_nameserver) {
  there_->stop_nameserver();
  const auto refused = import();
  EXPECT_EQ(refused.code(), Errc::remote_unavailable) << "an import of `files@` tries the next host";
  EXPECT_NE(refused.error().text.find("host '10.0.0.2': no nameserver"), std::string::npos) << refused.error().text;
}

TEST_F(RemoteBindings, wait_over_a_restart_of_the_other_hosts_nameserver) {
  const auto binds = count_binds();
  std::atomic<bool> over{false};
  std::thread restart([&] {
    EXPECT_TRUE(eventually([&] { return *binds >= 1; }));
    there_->stop_nameserver();
    EXPECT_TRUE(eventually([&] { return *binds >= 2 || over; }));
    there_->start_nameserver();
    EXPECT_TRUE(Conformance::export_to(*server_, "late", service_));
  });
  auto options = import_options();
  options.timeout = kPatience;
  auto client = Conformance::Client::import("late@10.0.0.2", options);
  over = true;
  restart.join();
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_TRUE(client->Null());
}

TEST_F(RemoteBindings, wait_for_a_name_also_where_no_more_may_wait_and_say_nothing_of_that_machine) {
  there_->stop_broker();
  auto broker = there_options();
  broker.max_waiting_binds_per_host = 0;
  there_->start_broker(broker);
  auto options = import_options();
  options.timeout = milliseconds(300);
  const auto binds = count_binds();
  const auto began = std::chrono::steady_clock::now();
  const auto absent = Conformance::Client::import("absent@10.0.0.2", options);
  EXPECT_EQ(absent.code(), Errc::name_unknown);
  EXPECT_EQ(absent.error().text.find(directory_.path()), std::string::npos) << absent.error().text;
  EXPECT_GE(*binds, 1);
  const auto pauses = (std::chrono::steady_clock::now() - began) / milliseconds(100);
  EXPECT_LE(*binds, 1 + pauses) << "with a pause between them";
  std::thread later([&, before = binds->load()] {
    EXPECT_TRUE(eventually([&] { return *binds >= before + 2; })) << "it asks again";
    EXPECT_TRUE(Conformance::export_to(*server_, "late", service_));
  });
  options.timeout = kPatience;
  auto client = Conformance::Client::import("late@10.0.0.2", options);
  later.join();
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_TRUE(client->Null());
}

TEST_F(RemoteBindings, give_threads_to_no_more_waiting_binds_of_a_host_than_it_may_have) {
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  std::atomic<int> at_once{0};
  std::atomic<int> later{0};
  for (int t = 0; t < 12; ++t) {
    threads.emplace_back([&] {
      const lrpc::shim::Principal stranger{0x0a00'0063, lrpc::shim::HostAuthentication::none, {}};
      const auto& id = Conformance::kPdl.interface;
      lrpc::netpath::BindMessage message{.client_boot = 1, .name = "absent", .interface = {}, .wait_ms = 240'000};
      message.interface = {std::string(id.name), id.major, id.minor, id.hash};
      const std::string request = lrpc::netpath::encode(message);
      std::array<std::byte, 2048> reply;
      std::size_t size = 0;
      EXPECT_EQ(there_->broker().serve(stranger, ++network_.arrivals, 1, lrpc::netpath::bytes_of(request), reply, size),
                0);
      const auto answer = lrpc::netpath::decode_bind_answer(std::span(reply).first(size));
      ASSERT_TRUE(answer);
      if (answer->code == Errc::name_unknown) {
        ++at_once;
      } else {
        EXPECT_EQ(answer->code, Errc::ok);
        ++later;
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return at_once >= 4; }));
  EXPECT_TRUE(Conformance::export_to(*server_, "absent", service_));
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(at_once + later, 12);
  // After the longest time that a BIND waits, some of them have timed out.
  if (std::chrono::steady_clock::now() - began >= std::chrono::seconds(10)) return;
  EXPECT_EQ(later, 8) << "as many may wait";
}

TEST_F(RemoteBindings, fail_calls_when_the_server_dies_and_revoke_the_binding) {
  testing_lrpc::Process process({NETPATH_TEST_SERVER, "--nameserver", there_->socket(), "mortal"});
  std::atomic<int> told{0};
  auto options = import_options();
  options.on_revoked = [&] { ++told; };
  auto client = Conformance::Client::import("mortal@10.0.0.2", options);
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_NE(client->ServerPid().value(), getpid());
  EXPECT_EQ(client->Die().code(), Errc::call_failed);
  EXPECT_TRUE(eventually([&] { return client->Null().code() == Errc::binding_revoked; }));
  EXPECT_TRUE(eventually([&] { return told == 1; }));
}

TEST_F(RemoteBindings, notice_a_server_s_death_without_calling_it) {
  testing_lrpc::Process process({NETPATH_TEST_SERVER, "--nameserver", there_->socket(), "mortal"});
  std::atomic<int> told{0};
  auto options = import_options();
  options.on_revoked = [&] { ++told; };
  auto client = Conformance::Client::import("mortal@10.0.0.2", options);
  ASSERT_TRUE(client) << client.error().message();
  process.kill_and_wait();
  EXPECT_TRUE(eventually([&] { return told == 1; }));
  EXPECT_TRUE(client->binding().revoked());
  EXPECT_TRUE(eventually([&] { return here_->broker().statistics().paths == 0; }));
}

TEST_F(RemoteBindings, never_execute_a_call_that_was_meant_for_another_life_of_the_broker) {
  auto client = import();
  ASSERT_TRUE(client);
  EXPECT_EQ(client->Count().value(), 1U);
  // Even if the next life has a binding with the same number.
  there_->stop_broker();
  auto options = there_options();
  options.boot_id = 4711;
  there_->start_broker(options);
  auto witness = import();
  ASSERT_TRUE(witness);
  const auto failed = client->Count().code();
  EXPECT_TRUE(failed == Errc::call_failed || failed == Errc::binding_revoked) << lrpc::describe(failed);
  EXPECT_TRUE(eventually([&] { return client->Count().code() == Errc::binding_revoked; }));
  EXPECT_EQ(witness->Count().value(), 2U) << "the call of the earlier life was executed";
}

TEST_F(RemoteBindings, lose_what_is_outstanding_when_a_reply_is_lost) {
  auto client = import();
  ASSERT_TRUE(client);
  network_.lose_replies_to_calls = true;
  EXPECT_EQ(client->Add(1, 2).code(), Errc::call_failed);
  network_.lose_replies_to_calls = false;
  EXPECT_TRUE(eventually([&] { return client->Add(1, 2).code() == Errc::binding_revoked; }));
}

TEST_F(RemoteBindings, survive_the_end_of_the_network_domain_with_a_revoked_binding) {
  std::atomic<int> told{0};
  auto options = import_options();
  options.on_revoked = [&] { ++told; };
  auto client = Conformance::Client::import("files@10.0.0.2", options);
  ASSERT_TRUE(client);
  here_->stop_broker();
  EXPECT_TRUE(eventually([&] { return told == 1; }));
  EXPECT_EQ(client->Null().code(), Errc::binding_revoked);
  here_->start_broker();
  auto again = import();
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_TRUE(again->Null());
}

TEST_F(TwoHosts, drop_the_bindings_of_a_host_that_has_restarted) {
  auto client = import();
  ASSERT_TRUE(client);
  EXPECT_EQ(there_->broker().statistics().bindings, 1U);
  there_->broker().peer_rebooted(kHere, network_.arrivals);
  EXPECT_EQ(there_->broker().statistics().bindings, 0U);
  EXPECT_TRUE(eventually([&] { return client->Null().code() == Errc::binding_revoked; }));
}

TEST_F(TwoHosts, keep_what_a_host_has_bound_since_it_was_seen_to_have_restarted) {
  auto before = import();
  ASSERT_TRUE(before);
  here_->stop_broker();
  here_->start_broker({.keepalive = kKeepalive, .boot_id = 0});
  const lrpc::netpath::Arrival last = network_.arrivals;
  auto client = import();
  ASSERT_TRUE(client);
  there_->broker().peer_rebooted(kHere, last);  // the notice comes late
  EXPECT_EQ(there_->broker().statistics().bindings, 1U);
  EXPECT_TRUE(client->Null());
}

TEST_F(TwoHosts, keep_what_a_host_has_bound_though_commands_of_its_earlier_life_are_served_late) {
  using lrpc::netpath::bytes_of;
  constexpr std::uint64_t kEarlier = 7;
  here_->stop_broker();
  here_->start_broker({.keepalive = kKeepalive, .boot_id = kEarlier});
  ASSERT_TRUE(import());
  lrpc::netpath::BindMessage bind;
  bind.client_boot = kEarlier;
  bind.name = "files";
  const auto& id = Conformance::kPdl.interface;
  bind.interface = {std::string(id.name), id.major, id.minor, id.hash};
  // Both commands arrive now, and wait for a thread.
  const lrpc::netpath::Arrival ping_arrived = ++network_.arrivals;
  const lrpc::netpath::Arrival bind_arrived = ++network_.arrivals;
  here_->stop_broker();
  here_->start_broker({.keepalive = kKeepalive, .boot_id = 8});
  auto client = import();
  ASSERT_TRUE(client);
  const auto serve = [&](lrpc::netpath::Arrival arrived, std::uint16_t command, const std::string& request,
                         std::span<std::byte> reply) {
    std::size_t size = 0;
    EXPECT_EQ(there_->broker().serve({kHere, lrpc::shim::HostAuthentication::key, "lab"}, arrived, command,
                                     bytes_of(request), reply, size),
              0);
    return size;
  };
  std::array<std::byte, 2048> reply;
  serve(ping_arrived, Network::kPing, lrpc::netpath::encode(lrpc::netpath::PingMessage{kEarlier, {1}}), reply);
  EXPECT_EQ(there_->broker().statistics().bindings, 1U);
  const std::size_t size = serve(bind_arrived, Network::kBind, lrpc::netpath::encode(bind), reply);
  const auto answer = lrpc::netpath::decode_bind_answer(std::span(reply).first(size));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code, Errc::peer_gone);
  EXPECT_EQ(there_->broker().statistics().bindings, 1U);
  EXPECT_TRUE(client->Null());
}

}  // namespace
}  // namespace testing_netpath
