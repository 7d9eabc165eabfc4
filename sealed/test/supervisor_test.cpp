// How the supervisor of a sealed program treats system calls that the filter does not allow.
#include "supervisor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "filter.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::sealed {
namespace {

/// A child under the filter, supervised by this thread.
class SupervisorOfAChild : public testing::Test {
 protected:
  /// Forks a child that exits with what `act` returns. Returns its wait status; records its refused calls in `told`.
  int status_of_child(const std::function<int()>& act, bool kill_on_refusal = false) {
    const auto filter = make_filter(Refuse::trace, {});
    EXPECT_TRUE(filter) << filter.error().message();
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    UniqueFd reading(pipe[0]);
    UniqueFd writing(pipe[1]);
    const pid_t child = fork();
    if (child == 0) {
      char traced = 0;
      if (::read(pipe[0], &traced, 1) != 1) _exit(kNotHere);
      if (install_filter(filter->data(), filter->size()) < 0) _exit(kNotHere);
      _exit(act());
    }
    reading.reset();
    Supervisor supervisor(child, kill_on_refusal, [&](const Refusal& refusal) {
      EXPECT_EQ(refusal.pid, child);
      told.push_back(refusal.name);
      if (cannot_tell) throw std::runtime_error("it cannot be told");
    });
    if (supervisor.seize()) {
      EXPECT_EQ(::write(writing.get(), "", 1), 1);
    } else {
      writing.reset();  // this process may not trace here
    }
    const int status = supervisor.wait_for_end();
    EXPECT_EQ(supervisor.status(), status);
    return status;
  }
  static bool not_here(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == kNotHere; }

  std::vector<std::string> told;
  bool cannot_tell = false;

 private:
  static constexpr int kNotHere = 77;
};

int tried(long result) { return result >= 0 ? 0 : errno; }
int open_a_directory() { return tried(syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY | O_CLOEXEC, 0)); }

TEST_F(SupervisorOfAChild, refuses_and_tells_each_call_and_lets_the_program_go_on) {
  const int status = status_of_child([] {
    const int first = open_a_directory();
    const int second = tried(syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0));
    return first == EPERM && second == EPERM ? 0 : 1;
  });
  if (not_here(status)) GTEST_SKIP() << "nothing can be supervised here";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(told, (std::vector<std::string>{"openat", "socket"}));
}

TEST_F(SupervisorOfAChild, kills_at_the_first_refusal_if_told_to) {
  const int status = status_of_child([] { return open_a_directory(); }, true);
  if (not_here(status)) GTEST_SKIP() << "nothing can be supervised here";
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_EQ(told, std::vector<std::string>{"openat"});
}

TEST_F(SupervisorOfAChild, refuses_and_kills_although_the_refusal_cannot_be_told) {
  cannot_tell = true;
  for (const bool kills : {false, true}) {
    const int status = status_of_child([] { return open_a_directory() == EPERM ? 0 : 1; }, kills);
    if (not_here(status)) GTEST_SKIP() << "nothing can be supervised here";
    EXPECT_EQ(status, kills ? SIGKILL : 0);
  }
  EXPECT_EQ(told, (std::vector<std::string>{"openat", "openat"}));
}

TEST_F(SupervisorOfAChild, lets_the_offer_of_the_start_pass_once) {
  const int status = status_of_child([] {
    msghdr message{};
    const int first = tried(syscall(SYS_sendmsg, -1, &message, 0));
    const int second = tried(syscall(SYS_sendmsg, -1, &message, 0));
    return first == EBADF && second == EPERM ? 0 : 1;
  });
  if (not_here(status)) GTEST_SKIP() << "nothing can be supervised here";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(told, std::vector<std::string>{"sendmsg"});
}

TEST_F(SupervisorOfAChild, refuses_without_a_word_what_the_c_library_asks_in_every_program) {
  const int status = status_of_child([] {
    std::array<char, 256> room{};
    const int link = tried(syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", room.data(), room.size()));
    const int stream = tried(syscall(SYS_newfstatat, 9, "", room.data(), AT_EMPTY_PATH));
    const int file = tried(syscall(SYS_newfstatat, AT_FDCWD, "/", room.data(), 0));
    return link == EPERM && stream == EPERM && file == EPERM ? 0 : 1;
  });
  if (not_here(status)) GTEST_SKIP() << "nothing can be supervised here";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(told, std::vector<std::string>{"newfstatat"}) << "of the file alone";
}

/// From now on this thread and its children cannot use process_vm_readv(2), as in some containers.
bool forbid_process_vm_readv() {
  std::array<sock_filter, 4> steps{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
                                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  sock_fprog program{steps.size(), steps.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

TEST_F(SupervisorOfAChild, knows_what_the_c_library_asks_where_process_vm_readv_is_refused) {
  bool forbidden = false;
  int status = -1;
  std::thread([&] {
    forbidden = forbid_process_vm_readv();
    if (!forbidden) return;
    status = status_of_child([] {
      std::array<char, 256> room{};
      // An empty text at the very end of a page.
      const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
      void* const pages = mmap(nullptr, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (pages == MAP_FAILED || munmap(static_cast<char*>(pages) + page, page) != 0) return 2;
      const char* const last = static_cast<char*>(pages) + page - 1;
      const int link = tried(syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", room.data(), room.size()));
      const int stream = tried(syscall(SYS_newfstatat, 9, last, room.data(), AT_EMPTY_PATH));
      return link == EPERM && stream == EPERM ? 0 : 1;
    });
  }).join();
  if (!forbidden || not_here(status)) GTEST_SKIP() << "nothing can be supervised here";
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(told.empty()) << told.front();
}

TEST_F(SupervisorOfAChild, lets_a_signal_to_itself_pass) {
  const int status = status_of_child([] {
    (void)syscall(SYS_tgkill, getpid(), getpid(), SIGTERM);
    return 1;
  });
  if (not_here(status)) GTEST_SKIP() << "nothing can be supervised here";
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  EXPECT_TRUE(told.empty());
}

TEST_F(SupervisorOfAChild, says_that_a_program_has_ended_before_it_was_started) {
  const pid_t child = fork();
  if (child == 0) _exit(5);
  Supervisor supervisor(child, false, {});
  EXPECT_FALSE(supervisor.wait_for_start());
  EXPECT_TRUE(WIFEXITED(supervisor.status()) && WEXITSTATUS(supervisor.status()) == 5) << supervisor.status();
}

}  // namespace
}  // namespace lrpc::sealed
