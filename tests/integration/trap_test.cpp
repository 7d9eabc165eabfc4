// The trap gate: sealed programs, and the server that serves them beside other clients.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "early_child.h"
#include "eventually.h"
#include "length.h"
#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/binder/growth.h"
#include "lrpc/detail/shim/trap/trap.h"
#include "lrpc/sealed.h"
#include "trap_world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using lrpc::Gate;
using lrpc::SealedDomain;
using lrpc::SealedOptions;
using Trap = TrapWorld;
using namespace std::chrono_literals;

TEST_F(Trap, carries_arguments_and_results_of_a_sealed_program) {
  EXPECT_EQ(run({"call", "host"}), 0);
  EXPECT_TRUE(refused_.empty()) << refused_.front();
  EXPECT_EQ(server_.statistics().traps_refused, 0U);
  EXPECT_EQ(server_.statistics().estacks, 0U);
  expect_nothing_left();
}

TEST_F(Trap, serves_ordinary_bindings_beside_sealed_ones) {
  auto ordinary = world_.import("host");
  ASSERT_TRUE(ordinary);
  std::atomic<bool> stop{false};
  std::thread caller([&] {
    for (int i = 0; !stop; ++i) ASSERT_EQ(ordinary->Add(i, 1).value(), i + 1);
  });
  std::vector<std::thread> runs;
  runs.reserve(3);
  for (int i = 0; i < 3; ++i) runs.emplace_back([&] { EXPECT_EQ(run({"call", "host"}), 0); });
  for (auto& one : runs) one.join();
  stop = true;
  caller.join();
}

TEST_F(Trap, binds_privately_to_a_host_without_any_name) {
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends);
  ASSERT_TRUE(Conformance::serve_over(server_, std::move(ends->first), service_));
  SealedOptions options;
  options.name = "plug-in.host";
  options.socket = std::move(ends->second);
  options.pdl = &Conformance::kPdl;
  EXPECT_EQ(run({"call", "plug-in.host"}, std::move(options)), 0);
}

TEST_F(Trap, serves_a_sealed_program_on_a_thread_that_is_scheduled_as_the_export_asks) {
  struct Scheduled : ConformanceService {
    void Null(CallContext&) {
      policy = sched_getscheduler(0);
      niceness = getpriority(PRIO_PROCESS, 0);
    }
    std::atomic<int> policy{-1};
    std::atomic<int> niceness{-1};
  } service;
  lrpc::Server server({.nameserver = world_.nameserver()});
  lrpc::ExportOptions as_asked;
  as_asked.scheduling = lrpc::Scheduling{.policy = lrpc::Scheduling::Policy::batch, .nice = 7};
  ASSERT_TRUE(Conformance::export_to(server, "scheduled", service, as_asked));
  SealedOptions options;
  options.name = "scheduled";
  EXPECT_EQ(run({"call", "scheduled"}, std::move(options)), 0);
  EXPECT_EQ(service.policy, SCHED_BATCH);
  EXPECT_EQ(service.niceness, 7);
}

TEST_F(Trap, refuses_and_names_what_a_sealed_program_may_not_do) {
  EXPECT_EQ(run({"refused", "host"}), 0);
  for (const char* name : {"socket", "io_uring_setup", "kill", "execve", "execveat", "ptrace", "dup", "memfd_create",
                           "mmap", "system call 12345"}) {
    EXPECT_TRUE(was_refused(name)) << name;
  }
  EXPECT_TRUE(was_refused("open") || was_refused("openat"));
  EXPECT_TRUE(was_refused("fork") || was_refused("clone"));
}

TEST_F(Trap, kills_at_the_first_refusal_if_told_to) {
  SealedOptions options;
  options.kill_on_refusal = true;
  EXPECT_EQ(run({"refused", "host"}, std::move(options)), -1000 - SIGKILL);
  EXPECT_EQ(refused_.size(), 1U);
  expect_nothing_left();
}

TEST_F(Trap, allows_more_system_calls_only_by_name) {
  SealedOptions options;
  options.allow = {"dup", "no_such_call"};
  EXPECT_EQ(start({"status", "0"}, std::move(options)).code(), Errc::invalid_argument);
  SealedOptions known;
  known.allow = {"dup"};
  EXPECT_EQ(run({"refused", "host"}, std::move(known)), 1);
  EXPECT_FALSE(was_refused("dup"));
}

class Storm : public Trap, public testing::WithParamInterface<const char*> {};

TEST_P(Storm, executes_each_call_once_whatever_signals_come) {
  int out[2];
  ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
  const int saved = dup(STDOUT_FILENO);
  dup2(out[1], STDOUT_FILENO);
  auto domain = start({GetParam(), "host"});
  dup2(saved, STDOUT_FILENO);
  close(saved);
  close(out[1]);
  ASSERT_TRUE(domain) << domain.error().message();
  char ready = 0;
  ASSERT_EQ(read(out[0], &ready, 1), 1);
  std::atomic<bool> stop{false};
  std::thread signals([&] {
    while (!stop) {
      domain->signal(SIGUSR1);
      std::this_thread::sleep_for(300us);
    }
  });
  EXPECT_EQ(domain->wait(), 0);
  stop = true;
  signals.join();
  close(out[0]);
}

INSTANTIATE_TEST_SUITE_P(signals, Storm, testing::Values("storm", "storm-restarted"), [](const auto& tested) {
  return std::string(tested.param) == "storm" ? "interrupting" : "restarting";
});

TEST_F(Trap, frees_everything_of_a_killed_program) {
  for (int i = 0; i < 5; ++i) {
    auto domain = start({"loop", "host"});
    ASSERT_TRUE(domain) << domain.error().message();
    std::this_thread::sleep_for(20ms);
    domain->signal(SIGKILL);
    EXPECT_EQ(WTERMSIG(domain->wait()), SIGKILL);
  }
  { auto dropped = start({"loop", "host"}); }  // the destructor kills it
  expect_nothing_left();
}

TEST_F(Trap, fails_the_call_when_the_server_dies) {
  Process mortal = world_.start_server({"mortal"});
  int out[2];
  ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
  const int saved = dup(STDOUT_FILENO);
  dup2(out[1], STDOUT_FILENO);
  SealedOptions options;
  options.name = "mortal";
  auto domain = start({"server-dies", "mortal"}, std::move(options));
  dup2(saved, STDOUT_FILENO);
  close(saved);
  close(out[1]);
  ASSERT_TRUE(domain) << domain.error().message();
  char ready = 0;
  ASSERT_EQ(read(out[0], &ready, 1), 1);
  close(out[0]);
  std::this_thread::sleep_for(50ms);
  mortal.kill_and_wait();
  EXPECT_EQ(domain->wait(), 0);
}

TEST_F(Trap, lets_garbage_in_the_registers_harm_nobody) {
  EXPECT_EQ(run({"garbage", "host"}), 0);
  EXPECT_GT(server_.statistics().traps_refused, 10'000U);
  EXPECT_EQ(run({"call", "host"}), 0);
}

TEST_F(Trap, lets_garbage_in_registers_and_region_harm_nobody) {
  auto ordinary = world_.import("host");
  ASSERT_TRUE(ordinary) << ordinary.error().message();
  for (int round = 0; round < rounds(1); ++round) {
    const std::string seed = std::to_string(test_seed() + static_cast<unsigned>(round));
    std::atomic<bool> stop{false};
    std::thread bystander([&] {
      for (int i = 0; !stop; ++i) ASSERT_EQ(ordinary->Add(i, 1).value(), i + 1);
    });
    EXPECT_EQ(run({"region", "host", seed}), 0) << "seed " << seed;
    stop = true;
    bystander.join();
  }
  EXPECT_EQ(run({"call", "host"}), 0);
  EXPECT_TRUE(eventually([&] { return ordinary->LiveObjects().value() == 0; }))
      << "what the garbage opened is closed with its binding";
}

TEST_F(Trap, gives_a_sealed_program_the_one_name_only) { EXPECT_EQ(run({"another-name", "elsewhere", "host"}), 0); }

TEST_F(Trap, denies_a_sealed_program_more_astacks_and_serves_it_with_what_it_has) {
  EXPECT_EQ(run({"grow", "host"}), 0);
  EXPECT_EQ(server_.statistics().astacks_grown, 0U);
  expect_nothing_left();
}

/// A client that does not use the library asks over its bell, which the library never does with this gate.
TEST_F(Trap, has_no_growth_for_a_client_that_asks_all_the_same) {
  auto client = world_.import("host", {.gate = Gate::trap});
  ASSERT_TRUE(client) << client.error().message();
  const int bell = lrpc::detail::StubAccess::object(client->binding()).bell();
  auto line = lrpc::shim::ask_for_growth(bell, {.astack_class = 0, .place = 0, .count = 1});
  ASSERT_TRUE(line) << line.error().message();
  const auto answer = lrpc::shim::receive_growth(line->get(), kPatience);
  ASSERT_TRUE(answer && answer->has_value());
  EXPECT_EQ((*answer)->count, 0U);
  EXPECT_EQ((*answer)->refusal, Errc::invalid_argument);
  EXPECT_FALSE((*answer)->region);
  EXPECT_EQ(server_.statistics().growths_refused, 1U);
  EXPECT_EQ(server_.statistics().astacks_grown, 0U);
}

TEST_F(Trap, passes_exit_status_and_fatal_signals_on) {
  EXPECT_EQ(run({"status", "7"}), 7);
  EXPECT_EQ(run({"abort", "host"}), -1000 - SIGABRT);
}

TEST_F(Trap, says_why_a_program_cannot_run_sealed) {
  SealedOptions options;
  options.name = "host";
  options.nameserver = world_.nameserver();
  const auto dynamic = SealedDomain::start({"/proc/self/exe"}, std::move(options));
  EXPECT_EQ(dynamic.code(), Errc::invalid_argument);
  EXPECT_NE(dynamic.error().message().find("-static-pie"), std::string::npos) << dynamic.error().message();
  SealedOptions nowhere;
  nowhere.name = "nobody-exports-this";
  EXPECT_EQ(start({"status", "0"}, std::move(nowhere)).code(), Errc::name_unknown);
}

#ifndef __SANITIZE_THREAD__  // its runtime has a thread of its own, and does not like threads in fork children

/// Whether a thread of this process is inside ioctl(2), as the server's thread is after a trap was stolen from it.
bool a_thread_waits_in_ioctl() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream call(task.path() / "syscall");
    if (std::string number; call >> number && number == std::to_string(SYS_ioctl)) return true;
  }
  return false;
}

/// A client without the library that keeps a descriptor of its listener. Its children trap without end, and one of them
/// receives the traps before the server does. Those that trap are one process group, outside the session of the tests.
/// Otherwise, when a process ends whose parent is in another group, the kernel sends SIGHUP to a group with stopped
/// processes, as other tests may have.
[[noreturn]] int be_a_thief(const std::string& nameserver) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setsid();
  auto client = import_by_trap(nameserver);
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(lrpc::shim::kTrapNumber), 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{4, filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const auto listener =
      static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
  if (!client || listener < 0) _exit(1);
  if (!lrpc::shim::offer_on_bell(lrpc::detail::StubAccess::object(client->binding()).bell(),
                                 lrpc::shim::BellMessage::trap, listener))
    _exit(1);
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    for (;;) {
      seccomp_notif stolen{};
      if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &stolen) != 0) continue;
      seccomp_notif_resp answer{};
      answer.id = stolen.id;
      (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
  }
  if (fork() == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) (void)lrpc::shim::trap({});
}

TEST(TrapServer, ends_although_a_client_takes_traps_from_under_its_hands) {
  EarlyChild thief(::geteuid(), be_a_thief);
  World world;
  ConformanceService service;
  bool robbed = false;
  {
    lrpc::Server server({.nameserver = world.nameserver()});
    ASSERT_TRUE(Conformance::export_to(server, "host", service));
    thief.begin(world.nameserver());
    EXPECT_TRUE(eventually([&] { return server.statistics().trap_listeners != 0; }));
    for (int i = 0; i < rounds(150) && !robbed; ++i) {
      std::this_thread::sleep_for(4ms);
      kill(-thief.pid(), SIGSTOP);
      std::this_thread::sleep_for(4ms);
      robbed = a_thread_waits_in_ioctl();
      if (!robbed) kill(-thief.pid(), SIGCONT);
    }
  }  // the server ends here, unless it hangs
  kill(-thief.pid(), SIGKILL);
  EXPECT_EQ(thief.wait(), -SIGKILL);
  if (!robbed) GTEST_SKIP() << "the server was always faster";
}

#endif

}  // namespace
}  // namespace testing_lrpc
