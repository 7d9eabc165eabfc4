// Calls between two machines: kinds of graphs, restarts, privileges.
#include "two_machines.h"

#include <sys/resource.h>

#include <atomic>
#include <optional>
#include <thread>

#include "frozen_nameserver.h"
#include "run.h"

namespace lrpc::netd::test {
namespace {

TEST_F(TwoMachines, call_each_other_with_a_shared_key) { expect_calls({}, {}); }

TEST_F(TwoMachines, call_each_other_over_udp) { expect_calls({"--udp"}, {"--udp"}); }

TEST_F(TwoMachines, call_each_other_without_io_uring) { expect_calls({"--backend", "epoll"}, {"--backend", "epoll"}); }

/// The second lrpc-netd waits for its own lrpcd, which does not answer. Over Ethernet and IP both receive every packet.
TEST_F(TwoMachines, a_second_lrpc_netd_answers_nobody_before_it_is_its_machine_s_only_one) {
  const Process server = start_server();
  there->start_netd({"--insecure", "--export", "conformance"});
  here->start_netd({"--insecure"});
  auto client = import_patiently();
  ASSERT_TRUE(client) << client.error().message();
  const FrozenNameserver frozen;
  std::optional<Running> second;
  there->in([&] { second.emplace(LRPC_NETD " --insecure --nameserver " + frozen.path()); });
  ASSERT_TRUE(frozen.connected());
  for (int i = 0; i < 20; ++i) {
    const auto sum = client->Add(i, 2);
    ASSERT_TRUE(sum) << sum.error().message();
  }
}

/// How many messages an instance of the graph has received so far, by the state that lrpc-netd writes.
long received_by(const Machine& machine, const std::string& instance) {
  std::ifstream in(machine.file("state"));
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find("received ");
    if (line.starts_with(instance + ":") && at != std::string::npos) return std::stol(line.substr(at + 9));
  }
  return 0;
}

TEST_F(TwoMachines, call_each_other_over_the_ethernet_where_both_have_said_that_they_hear_it) {
  const Process server = start_exported_server();
  EXPECT_TRUE(eventually([&] {  // retried if the first messages went over IP: `there` had not been heard yet
    here->start_with_keys({"--state", here->file("state")});
    auto client = import_patiently();
    for (int i = 0; i < 100 && client; ++i) EXPECT_TRUE(client->Null());
    here->netd().send(SIGUSR1);
    EXPECT_TRUE(eventually([&] { return received_by(*here, "eth") + received_by(*here, "ip") >= 100; }));
    return received_by(*here, "eth") >= 100;
  }));
}

TEST_F(TwoMachines, call_a_neighbour_over_ip_that_does_not_hear_their_ethernet_frames) {
  share_key();
  const Process server = start_server();
  std::ofstream(there->file("graph"))
      << "ip = IP(address = \"10.7.0.2\"); fragment = FRAGMENT over ip;\n"
         "vipsize = VIPSIZE over ip, fragment; auth = AUTH(keys = \""
      << there->file("keys") << "\") over vipsize; channel = CHANNEL over auth; select = SELECT over channel;\n";
  there->start_netd({"--graph", there->file("graph"), "--export", "conformance"});
  here->start_with_keys();
  auto client = import_patiently();
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(client->Add(40, 2).value(), 42);
  const std::vector<std::byte> large(12000, std::byte{3});
  EXPECT_EQ(client->Sum(large).value(), 36000U);
}

TEST_F(TwoMachines, call_each_other_through_a_composite_protocol) {
  share_key();
  const Process server = start_server();
  for (const char* const dispatch : {"", "(threads = 4)"}) {
    const auto start = [&](Machine& machine, std::vector<std::string> options) {
      std::ofstream(machine.file("graph"))
          << "udp = UDP(address = \"" << machine.address() << "\"); auth = AUTH(keys = \"" << machine.file("keys")
          << "\") over udp;\ncalls = COMPOSITE" << dispatch
          << " { GRPC; SYNC; ONE_ACCEPT; BOUNDED(limit = 900s); NUMBER; UNIQUE; ACK(tries = 9999); MEMBERSHIP; } over "
             "auth;\n"
             "select = SELECT over calls;\n";
      options.insert(options.end(), {"--graph", machine.file("graph")});
      machine.netd() = {};  // the previous one has ended before the next one starts
      machine.start_netd(std::move(options));
    };
    start(*there, {"--export", "conformance"});
    start(*here, {});
    auto client = import_patiently();
    ASSERT_TRUE(client) << client.error().message() << here->log();
    for (int i = 0; i < 100; ++i) EXPECT_EQ(client->Add(i, 2).value(), i + 2);
  }
}

TEST_F(TwoMachines, call_each_other_without_keys_when_both_say_so) {
  const Process server = start_server();
  there->start_netd({"--insecure", "--export", "conf*"});
  here->start_netd({"--insecure"});
  auto client = import_patiently();
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(client->Add(1, 2).value(), 3);
}

TEST_F(TwoMachines, a_client_cannot_come_back_to_its_own_machine_as_another_host) {
  here->write_keys("* " + key);
  const Process own = here->start({LRPC_TEST_SERVER, "--nameserver", here->socket(), "conformance"});
  here->start_with_keys({"--export", "conformance"});
  const auto client = import_patiently("conformance@10.7.0.1");
  EXPECT_EQ(client.code(), Errc::invalid_argument) << client.error().message();
}

TEST_F(TwoMachines, names_that_are_not_exported_are_not_there) {
  share_key();
  const Process server = start_server("private");
  there->start_with_keys({"--export", "conformance"});
  here->start_with_keys();
  const auto client = import_patiently("private@10.7.0.2");
  EXPECT_EQ(client.code(), Errc::name_unknown);
  expect_said(client.error().text, "no 'private' is exported to the network there");
  EXPECT_EQ(client.error().text.find("key"), std::string::npos) << client.error().text;
}

TEST_F(TwoMachines, a_call_fails_when_the_other_netd_is_killed_and_a_new_import_goes_on) {
  const Process server = start_exported_server();
  here->start_with_keys();
  auto client = import_patiently();
  ASSERT_TRUE(client) << client.error().message();
  ASSERT_TRUE(client->Null());
  there->netd().kill_and_wait();
  there->start_with_keys({"--export", "conformance"});
  const auto failed = client->Add(1, 1);
  EXPECT_FALSE(failed) << "a later life must not execute it";
  EXPECT_TRUE(eventually([&] {
    auto again = import();
    const auto sum = again ? again->Add(2, 2) : Result<std::int32_t>(again.code());
    return sum && *sum == 4;
  }));
}

TEST_F(TwoMachines, the_first_import_from_a_machine_whose_netd_has_restarted_succeeds) {
  const Process server = start_exported_server();
  here->start_with_keys();
  ASSERT_TRUE(import_patiently());
  there->netd().kill_and_wait();
  there->start_with_keys({"--export", "conformance"});
  const auto from_itself = [this] {
    return Conformance::Client::import("conformance@10.7.0.2", {.nameserver = there->socket()}).code();
  };
  ASSERT_TRUE(eventually([&] { return from_itself() == Errc::invalid_argument; })) << "it is not there yet";
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_TRUE(client->Null());
}

TEST_F(TwoMachines, a_call_fails_when_the_own_netd_is_killed) {
  const Process server = start_exported_server();
  here->start_with_keys();
  auto client = import_patiently();
  ASSERT_TRUE(client) << client.error().message();
  here->netd().kill_and_wait();
  EXPECT_FALSE(client->Null());
}

TEST_F(TwoMachines, procedures_that_block_keep_nobody_else_from_being_served) {
  const Process server = start_exported_server({"--export", "conformance", "other"});
  here->start_with_keys();
  std::vector<std::thread> callers;
  std::atomic<int> calling{0};
  std::atomic<int> done{0};
  auto blocked = bind_and_stop(server, 12);  // three times as many as lrpc-netd has threads to receive
  for (Conformance::Client& client : blocked) {
    callers.emplace_back([&] {
      ++calling;
      if (client.Null()) ++done;
    });
  }
  EXPECT_TRUE(eventually([&] { return calling == 12; }));
  const Process other = start_server("other");
  auto client = import_patiently("other@10.7.0.2");
  EXPECT_TRUE(client) << client.error().message();
  for (int i = 0; i < 200 && client; ++i) EXPECT_TRUE(client->Null());
  EXPECT_EQ(done, 0);
  server.send(SIGCONT);
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(done, 12);
}

TEST_F(TwoMachines, calls_go_both_ways_at_once_and_back_through_the_caller) {
  share_key();
  const Process server = start_server();
  const Process own = here->start({LRPC_TEST_SERVER, "--nameserver", here->socket(), "conformance"});
  there->start_with_keys({"--export", "conformance"});
  here->start_with_keys({"--export", "conformance"});
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 6; ++i) {
    callers.emplace_back([&, i] {
      Machine& from = i % 2 == 0 ? *here : *there;
      const std::string name = i % 2 == 0 ? "conformance@10.7.0.2" : "conformance@10.7.0.1";
      auto client = patiently([&] { return Conformance::Client::import(name, {.nameserver = from.socket()}); });
      EXPECT_TRUE(client) << i << ": " << client.error().message();
      for (int j = 0; j < 300; ++j) {
        const auto sum = client ? client->Add(i, j) : Result<std::int32_t>(client.code());
        if (!sum || *sum != i + j) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
  auto client = import_patiently();
  ASSERT_TRUE(client) << client.error().message();
  const auto there_and_back = client->Through("conformance@10.7.0.1", 20, 22);
  ASSERT_TRUE(there_and_back) << there_and_back.error().message();
  EXPECT_EQ(*there_and_back, 42);
}

TEST_F(TwoMachines, netd_keeps_no_privilege_once_its_sockets_are_open) {
  share_key();
  for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--udp"}}) {
    here->netd().kill_and_wait();
    here->start_with_keys(options);
    const Ran none = run("grep -h CapEff: /proc/" + std::to_string(here->netd().pid()) + "/task/*/status | sort -u");
    EXPECT_EQ(none.output, "CapEff:\t0000000000000000\n");
  }
}

TEST_F(TwoMachines, netd_stops_when_it_is_told_to) {
  const Process server = start_exported_server();
  here->start_with_keys();
  auto client = import_patiently();
  ASSERT_TRUE(client) << client.error().message();
  for (Machine* const machine : {here.get(), there.get()}) {
    machine->netd().send(SIGTERM);
    siginfo_t ended{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(machine->netd().pid()), &ended, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(ended.si_code, CLD_EXITED);
    EXPECT_EQ(ended.si_status, 0);
  }
}

/// Whether a signal to a process is still pending.
bool is_pending(pid_t process, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("ShdPnd:")) return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  return false;
}

TEST_F(TwoMachines, other_signals_do_not_kill_a_netd_that_stops) {
  const Process server = start_exported_server();
  here->start_with_keys();
  auto clients = bind_and_stop(server, 1);
  ASSERT_EQ(clients.size(), 1U);
  std::thread caller([&] { (void)clients[0].Null(); });  // the stopping lrpc-netd waits for this call
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  there->netd().send(SIGTERM);
  EXPECT_TRUE(eventually([&] { return !is_pending(there->netd().pid(), SIGTERM); })) << "it stops";
  there->netd().send(SIGUSR1);
  there->netd().send(SIGHUP);
  server.send(SIGCONT);
  siginfo_t ended{};
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(there->netd().pid()), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(ended.si_code, CLD_EXITED);
  EXPECT_EQ(ended.si_status, 0);
  caller.join();
}

TEST_F(TwoMachines, netd_takes_as_many_descriptors_as_it_may_have) {
  const rlimit before = [] {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return limit;
  }();
  const rlimit fewer{before.rlim_max / 2, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &fewer), 0);
  here->start_netd({"--insecure"});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit limit{};
  ASSERT_EQ(::prlimit(here->netd().pid(), RLIMIT_NOFILE, nullptr, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, limit.rlim_max);
}

TEST_F(TwoMachines, files_are_copied_there_and_back_by_the_same_programs) {
  share_key();
  const std::string tree = here->file("tree");
  std::filesystem::create_directories(tree + "/sub/empty");
  std::ofstream(tree + "/small") << "hello\n";
  std::ofstream(tree + "/sub/large") << std::string(300'000, 'x') << "the end";
  std::filesystem::create_directories(there->file("exported"));
  const Process server = there->start({LRPC_FILES_SERVER, there->file("exported"), "--nameserver", there->socket()});
  there->start_with_keys({"--export", "files"});
  here->start_with_keys();
  const std::string files = std::string(LRPC_FILES) + " --nameserver " + here->socket() + " --name files@10.7.0.2 ";
  const Ran put = run(files + "put " + tree + " backup");
  ASSERT_EQ(put.status, 0) << put.output;
  const Ran get = run(files + "get backup " + here->file("back"));
  ASSERT_EQ(get.status, 0) << get.output;
  const Ran same =
      run("diff -r " + tree + " " + here->file("back") + " && diff -r " + tree + " " + there->file("exported/backup"));
  EXPECT_EQ(same.status, 0) << same.output;
}

}  // namespace
}  // namespace lrpc::netd::test
