// lrpc::seal(): a process with one thread, a child of the test, seals itself.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "early_child.h"
#include "length.h"
#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/trap/trap.h"
#include "lrpc/sealed.h"
#include "trap_world.h"

namespace testing_lrpc {
namespace {

#ifndef __SANITIZE_THREAD__  // its runtime has a thread of its own, and does not like threads in fork children

using lrpc::Errc;
using lrpc::SealedDomain;

/// What a child does; it gets the nameserver's socket. Returns its exit status.
using ChildBody = int (*)(const std::string& nameserver);

/// A base, so that the child is made before World and its threads.
class BodyToCome {
 protected:
  EarlyChild child_{::geteuid(), [](const std::string& told) {
                      ChildBody body = nullptr;
                      std::memcpy(&body, told.data(), sizeof body);
                      return body(told.substr(sizeof body));
                    }};
};

class TrapOfAChild : BodyToCome, public TrapWorld {
 protected:
  /// Runs `body` in a process with one thread. Returns its exit status.
  int in_a_child(ChildBody body) {
    child_.begin(std::string(reinterpret_cast<const char*>(&body), sizeof body) + world_.nameserver());
    return child_.wait();
  }
};

TEST_F(TrapOfAChild, is_refused_clearly_where_a_listener_is_in_place_already) {
  EXPECT_EQ(in_a_child([](const std::string& nameserver) {
              sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
              const sock_fprog filter{1, allow};
              prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
              if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter) < 0)
                return 2;
              const auto second =
                  SealedDomain::start({LRPC_TEST_SEALED, "status", "0"}, {.name = "host", .nameserver = nameserver});
              if (second.code() != Errc::not_supported) return 3;
              return second.error().message().find("in place already") != std::string::npos ? 0 : 4;
            }),
            0);
}

TEST_F(TrapOfAChild, lets_a_process_seal_itself) {
  EXPECT_EQ(in_a_child([](const std::string& nameserver) {
              auto client = import_by_trap(nameserver);
              if (!client) return 2;
              if (client->Null().code() != Errc::not_supported) return 3;  // the server does not listen yet
              if (!lrpc::seal(client->binding())) return 4;
              for (int i = 0; i < 1000; ++i) {
                const auto sum = client->Add(i, 1);
                if (!sum || *sum != i + 1) return 5;
              }
              if (client->Caller()->pid != getpid()) return 6;
              if (open("/dev/null", O_RDONLY) >= 0 || errno != EPERM) return 7;
              rlimit core{};
              if (getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_cur > 1 || core.rlim_max > 1) return 9;
              if (lrpc::seal(client->binding()).code() != Errc::invalid_argument) return 8;
              return 0;
            }),
            0);
  expect_nothing_left();
}

TEST_F(TrapOfAChild, ends_its_binding_although_a_refusal_would_kill_it) {
  if (kSanitized) GTEST_SKIP() << "what a sanitizer's runtime calls by itself would kill";
  EXPECT_EQ(in_a_child([](const std::string& nameserver) {
              {
                auto client = import_by_trap(nameserver);
                if (!client || !lrpc::seal(client->binding(), {.kill_on_refusal = true})) return 2;
                if (!client->Null()) return 3;
              }
              _exit(0);
            }),
            0);
  expect_nothing_left();
}

constexpr int kNoChroot = 78;

TEST_F(TrapOfAChild, seals_no_process_that_has_another_thread_even_where_there_is_no_proc_to_count_them) {
  const int status = in_a_child([](const std::string& nameserver) {
    auto client = import_by_trap(nameserver);
    if (!client) return 2;
    std::thread([] {
      for (;;) pause();
    }).detach();
    if (lrpc::seal(client->binding()).code() != Errc::invalid_argument) return 3;
    // A removed directory is an empty one.
    char directory[] = "/tmp/lrpc-empty-XXXXXX";
    if (mkdtemp(directory) == nullptr || chdir(directory) != 0 || rmdir(directory) != 0 || chroot(".") != 0)
      return kNoChroot;
    if (lrpc::seal(client->binding())) return 4;
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? 0 : 5;
  });
  if (status == kNoChroot) GTEST_SKIP() << "this process cannot change its root directory";
  EXPECT_EQ(status, 0);
}

/// Whether every thread of a process is stopped by a signal.
bool is_stopped(pid_t pid) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream status(task.path() / "status");
    std::string line;
    while (std::getline(status, line) && !line.starts_with("State:")) continue;
    if (line.find("T (stopped)") == std::string::npos) return false;
  }
  return true;
}

/// Waiting for room needs poll(2), which a sealed process may not call.
TEST_F(TrapOfAChild, is_told_at_once_and_lives_where_the_bell_is_full) {
  if (kSanitized) GTEST_SKIP() << "what a sanitizer's runtime calls by itself would kill";
  const Process server = world_.start_server({"stopped"});
  EXPECT_EQ(in_a_child([](const std::string& nameserver) {
              auto client =
                  Conformance::Client::import("stopped", {.nameserver = nameserver, .gate = lrpc::Gate::trap});
              if (!client) return 2;
              auto& object = lrpc::detail::StubAccess::object(client->binding());
              const pid_t pid = object.server().pid;
              kill(pid, SIGSTOP);
              while (!is_stopped(pid)) std::this_thread::yield();
              const char ring = static_cast<char>(lrpc::shim::BellMessage::ring);
              while (send(object.bell(), &ring, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) continue;
              if (errno != EAGAIN) return 3;
              const auto sealed = lrpc::seal(client->binding(), {.kill_on_refusal = true});
              _exit(sealed.code() == Errc::timed_out ? 0 : 4);
            }),
            0);
}

/// A client without the library, whose children share its filter. The kernel tells the server which process calls.
TEST_F(TrapOfAChild, serves_no_process_but_the_one_that_was_bound) {
  EXPECT_EQ(
      in_a_child([](const std::string& nameserver) {
        auto client = import_by_trap(nameserver);
        if (!client || !lrpc::seal(client->binding(), {.allow = {"clone", "wait4", "clone3"}})) return 2;
        const auto id = lrpc::shim::in_registers(lrpc::detail::StubAccess::object(client->binding()).nonce());
        const pid_t impostor = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
        if (impostor == 0) {
          syscall(SYS_exit_group,
                  lrpc::shim::trap({.binding = id, .procedure = 0, .astack = 0, .generation = 1}) == -EPERM ? 0 : 1);
        }
        int status = 0;
        if (syscall(SYS_wait4, impostor, &status, 0, nullptr) != impostor) return 3;
        // No destructors: the binding's end may start a thread, which is allowed here, but AddressSanitizer then lacks
        // system calls that it needs.
        _exit(WIFEXITED(status) && WEXITSTATUS(status) == 0 && client->Null() ? 0 : 4);
      }),
      0);
}

#endif

}  // namespace
}  // namespace testing_lrpc
