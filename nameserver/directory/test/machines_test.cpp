// import("name@") between machines, and what becomes of it when a part of them fails.
#include "machines.h"

namespace lrpc::directory::test {
namespace {

using namespace std::chrono_literals;
using testing_lrpc::kPatience;

TEST_F(Machines, a_name_is_found_wherever_it_is_exported) {
  start_all();
  const Process server = start_server(1);
  ASSERT_TRUE(becomes_published({"10.7.0.2"}));
  for (std::size_t i = 0; i < kMachines; ++i) {
    auto client = import(i, {.timeout = kPatience});
    ASSERT_TRUE(client) << i << ": " << client.error().message();
    const auto sum = client->Add(40, 2);
    EXPECT_TRUE(sum && *sum == 42) << i << ": " << describe(sum.code());
    EXPECT_EQ(server_of(i), server.pid());
  }
}

TEST_F(Machines, only_names_that_lrpc_netd_exports_are_published) {
  start_all();
  const Process secret = start_server(1, "secret");
  const Process server = start_server(1);
  ASSERT_TRUE(becomes_published({"10.7.0.2"}));
  EXPECT_EQ(published("secret"), Hosts());
  EXPECT_EQ(outcome_of_import(0, "secret@"), Errc::name_unknown);
}

TEST_F(Machines, no_name_of_lrpc_itself_is_published_though_all_names_are_exported) {
  start_netd(0, "*");
  start_directory(0, kLong);
  const Process server = start_server(0);
  const Process other = start_server(0, "zebra");
  ASSERT_TRUE(becomes_published({"10.7.0.1"}));
  ASSERT_TRUE(eventually([&] { return published("zebra") == Hosts{"10.7.0.1"}; })) << "behind lrpc. in byte order";
  EXPECT_EQ(published("lrpc.directory"), Hosts());
  EXPECT_EQ(published("lrpc.network"), Hosts());
}

TEST_F(Machines, a_server_of_this_machine_comes_first_and_is_bound_without_the_network) {
  start_all();
  const Process here = start_server(0);
  const Process there = start_server(1);
  ASSERT_TRUE(becomes_published({"10.7.0.1", "10.7.0.2"}));
  for (int i = 0; i < 10; ++i) {
    auto client = import(0, {.timeout = kPatience});
    ASSERT_TRUE(client) << client.error().message();
    EXPECT_EQ(client->binding().server().pid, here.pid()) << "by the kernel's word: it is a local binding";
  }
}

TEST_F(Machines, two_servers_of_one_name_share_the_clients) {
  start_all();
  const Process one = start_server(1);
  const Process two = start_server(2);
  ASSERT_TRUE(becomes_published({"10.7.0.2", "10.7.0.3"}));
  std::set<int> servers;
  EXPECT_TRUE(eventually([&] {
    servers.insert(server_of(0));
    return servers == std::set<int>{one.pid(), two.pid()};
  }));
}

TEST_F(Machines, an_import_fails_over_when_a_host_does_not_answer) {
  give_up = "500ms";
  start_all();
  const Process one = start_server(1);
  const Process two = start_server(2);
  ASSERT_TRUE(becomes_published({"10.7.0.2", "10.7.0.3"}));
  machines[1]->netd().send(SIGKILL);  // etcd still has the name: its lease lasts, and lrpc-directory gives it some time
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(eventually([&] {
      auto client = import(0);
      const auto pid = client ? client->ServerPid() : Result<std::int32_t>(client.code());
      EXPECT_TRUE(!pid || *pid == two.pid());
      // On a busy machine the other one may not answer in time either: then both have been tried.
      const std::string told = client ? "" : client.error().text;
      EXPECT_TRUE(told.find("host '10.7.0.2'") == std::string::npos ||
                  told.find("(the last of 2 hosts") != std::string::npos)
          << told;
      return pid.has_value();
    }));
  }
}

TEST_F(Machines, a_host_whose_lrpc_netd_stays_away_is_withdrawn) {
  start_all();
  const Process server = start_server(1);
  ASSERT_TRUE(becomes_published({"10.7.0.2"}));
  machines[1]->netd() = {};
  EXPECT_TRUE(becomes_published({}));
  start_netd(1);
  EXPECT_TRUE(becomes_published({"10.7.0.2"}));
}

TEST_F(Machines, a_moved_server_is_found_where_it_is_now) {
  start_all();
  Process server = start_server(1);
  ASSERT_TRUE(becomes_published({"10.7.0.2"}));
  auto before = import(0, {.timeout = kPatience});
  ASSERT_TRUE(before) << before.error().message();
  server = {};
  EXPECT_TRUE(eventually([&] { return before->Null().code() != Errc::ok && before->binding().revoked(); }));
  server = start_server(2);
  ASSERT_TRUE(becomes_published({"10.7.0.3"}));
  EXPECT_EQ(server_of(0), server.pid());
}

TEST_F(Machines, an_import_waits_for_a_name_to_appear_anywhere) {
  start_all();
  Result<Conformance::Client> client = Errc::name_unknown;
  std::thread importer([&] { client = import(0, {.timeout = kPatience}); });
  const Process server = start_server(2);
  importer.join();
  ASSERT_TRUE(client) << client.error().message();
  const auto pid = client->ServerPid();
  EXPECT_TRUE(pid && *pid == server.pid()) << describe(pid.code());
}

TEST_F(Machines, an_import_that_waits_for_a_name_waits_for_etcd_too) {
  start_all();
  const Process server = start_server(1);
  ASSERT_TRUE(becomes_published({"10.7.0.2"}));
  etcd->kill();
  Result<Conformance::Client> client = Errc::name_unknown;
  std::thread importer([&] { client = import(0, {.timeout = kPatience}); });
  EXPECT_EQ(import(0).code(), Errc::remote_unavailable);
  etcd->start();
  importer.join();
  ASSERT_TRUE(client) << client.error().message();
  const auto pid = client->ServerPid();
  EXPECT_TRUE(pid && *pid == server.pid()) << describe(pid.code());
}

TEST_F(Machines, without_etcd_known_names_are_found_and_others_say_why_not) {
  start_all();
  const Process server = start_server(1);
  ASSERT_TRUE(becomes_published({"10.7.0.2"}));
  ASSERT_EQ(server_of(0), server.pid());
  etcd->kill();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(server_of(0), server.pid());
  const auto unknown = import(0, {}, "other@");
  EXPECT_EQ(unknown.code(), Errc::remote_unavailable);
  EXPECT_NE(unknown.error().text.find("10.7.0.100:2379"), std::string::npos) << unknown.error().text;
  EXPECT_EQ(import(2).code(), Errc::remote_unavailable) << "it has not asked before";
  etcd->start();
  EXPECT_TRUE(eventually([&] { return server_of(2) == server.pid(); }));
}

TEST_F(Machines, names_come_back_when_etcd_has_lost_all_its_data) {
  start_all(3);
  const Process one = start_server(1);
  const Process two = start_server(2);
  ASSERT_TRUE(becomes_published({"10.7.0.2", "10.7.0.3"}));
  etcd->kill();
  etcd->forget();
  etcd->start();
  EXPECT_TRUE(becomes_published({"10.7.0.2", "10.7.0.3"}));
}

TEST_F(Machines, an_expired_lease_takes_the_names_of_a_silent_host_away_until_it_is_back) {
  start_all(kLong, 2);
  const Process one = start_server(1);
  const Process two = start_server(2);
  ASSERT_TRUE(becomes_published({"10.7.0.2", "10.7.0.3"}));
  directories[1].send(SIGSTOP);
  ASSERT_TRUE(becomes_published({"10.7.0.3"})) << "by etcd itself";
  EXPECT_EQ(server_of(0), two.pid());
  directories[1].send(SIGCONT);
  EXPECT_TRUE(becomes_published({"10.7.0.2", "10.7.0.3"}));
}

TEST_F(Machines, a_partitioned_machine_is_forgotten_and_comes_back_when_it_is_healed) {
  give_up = "500ms";
  start_all(kLong, 2);
  const Process one = start_server(1);
  const Process two = start_server(2);
  ASSERT_TRUE(becomes_published({"10.7.0.2", "10.7.0.3"}));
  link(1, "down");
  EXPECT_EQ(server_of(0), two.pid()) << "at once, though etcd may still have the other";
  ASSERT_TRUE(becomes_published({"10.7.0.3"}));
  EXPECT_EQ(server_of(1), one.pid()) << "cut off, it still knows its own";
  link(1, "up");
  EXPECT_TRUE(becomes_published({"10.7.0.2", "10.7.0.3"}));
}

TEST_F(Machines, names_go_at_once_when_lrpc_directory_stops_in_order) {
  start_all();
  const Process server = start_server(1);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    ASSERT_TRUE(becomes_published({"10.7.0.2"}));
    EXPECT_TRUE(eventually([&] { return ends_and_withdraws(signal); })) << signal;
    EXPECT_EQ(published(), Hosts()) << signal;
    start_directory(1, kLong);
  }
}

TEST_F(Machines, lrpc_directory_stops_in_order_though_etcd_does_not_answer) {
  start_all();
  const Process server = start_server(1);
  ASSERT_TRUE(becomes_published({"10.7.0.2"}));
  etcd->send(SIGSTOP);
  directories[1].kill_and_wait(SIGTERM);
  etcd->send(SIGCONT);
  EXPECT_NE(directory_log(1).find("stops"), std::string::npos) << directory_log(1);
}

TEST_F(Machines, a_directory_that_was_killed_takes_its_names_over_from_its_earlier_life) {
  start_all();
  const Process server = start_server(1);
  ASSERT_TRUE(becomes_published({"10.7.0.2"}));
  const std::string before = value_of_host("10.7.0.2");
  directories[1].kill_and_wait(SIGKILL);
  EXPECT_EQ(value_of_host("10.7.0.2"), before) << "the lease lasts";
  start_directory(1, kLong);
  ASSERT_TRUE(eventually([&] { return value_of_host("10.7.0.2") != before; })) << "another instance";
  EXPECT_TRUE(eventually([&] { return ends_and_withdraws(SIGTERM); }));
  EXPECT_EQ(published(), Hosts()) << "they were under the new lease";
}

TEST_F(Machines, without_lrpc_directory_the_error_says_what_to_do) {
  start_netd(0);
  const auto refused = import(0);
  EXPECT_EQ(refused.code(), Errc::remote_unavailable);
  EXPECT_NE(refused.error().text.find("start lrpc-directory"), std::string::npos) << refused.error().text;
}

TEST_F(Machines, an_import_waits_for_a_server_with_an_interface_that_fits) {
  start_all();
  const PublishedName older{"conformance", 0x0a07'0003, 7, {"Conformance", 1, 0, 0}};
  write({{key_of("/lrpc", "conformance", older.host), value_of(older)}});
  EXPECT_EQ(outcome_of_import(0), Errc::version_mismatch);
  Result<Conformance::Client> client = Errc::name_unknown;
  std::thread importer([&] { client = import(0, {.timeout = kPatience}); });
  const Process server = start_server(1);
  importer.join();
  ASSERT_TRUE(client) << client.error().message();
  const auto pid = client->ServerPid();
  EXPECT_TRUE(pid && *pid == server.pid()) << describe(pid.code());
}

TEST_F(Machines, many_entries_of_others_hide_no_own_name_and_long_ones_no_name_that_is_known) {
  start_all();
  const Process server = start_server(1);
  ASSERT_TRUE(becomes_published({"10.7.0.2"}));
  ASSERT_EQ(server_of(0), server.pid());
  const auto fill = [&](std::size_t bytes) {
    for (std::size_t begin = 0; begin < 300; begin += kMostOperations) {
      std::vector<KeyValue> entries;
      for (std::size_t i = begin; i < begin + kMostOperations; ++i)
        entries.push_back({"/lrpc/names/conformance/!" + std::to_string(i), std::string(bytes, 'x')});
      write(entries);
    }
  };
  fill(11'000);
  EXPECT_EQ(outcome_of_import(2), Errc::limit_reached);
  EXPECT_EQ(server_of(0), server.pid());
  EXPECT_EQ(server_of(1), server.pid());
  fill(1);
  EXPECT_EQ(outcome_of_import(0), Errc::name_unknown) << "others are behind the first 256";
  EXPECT_EQ(server_of(1), server.pid());
}

TEST_F(Machines, what_others_write_into_etcd_misleads_nobody_for_long) {
  start_all();
  const Process server = start_server(1);
  ASSERT_TRUE(becomes_published({"10.7.0.2"}));
  // What is no entry, an address that no host has, and a host that does not have the name.
  const auto truth = parse_published("/lrpc", "/lrpc/names/conformance/10.7.0.2", value_of_host("10.7.0.2"));
  ASSERT_TRUE(truth);
  PublishedName lie = *truth;  // an interface that fits, so that an import does try it
  lie.host = 0x0a07'0003;
  write({{"/lrpc/names/conformance/10.7.0.9", "{}"},
         {"/lrpc/names/conformance/127.0.0.1", "\xff"},
         {key_of("/lrpc", "conformance", lie.host), value_of(lie)}});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(server_of(0), server.pid());
  EXPECT_NE(directory_log(0).find("etcd has 2 entries below /lrpc/names/conformance/ that are not right"),
            std::string::npos)
      << directory_log(0);
}

}  // namespace
}  // namespace lrpc::directory::test
