// What the filter lets a sealed process do.
#include "filter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::sealed {
namespace {

class FilterOfASealedDomain : public testing::Test {
 protected:
  void SetUp() override {
    const auto filter = make_filter(Refuse::error, {});
    ASSERT_TRUE(filter) << filter.error().message();
    const int status = status_of_child(*filter, [] { return 0; });
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNotInstalled) GTEST_SKIP() << "no filter can be installed here";
  }
  /// Forks a child that installs the filter and exits with what `act` returns. Returns its wait status.
  static int status_of_child(const std::vector<sock_filter>& filter, const std::function<int()>& act) {
    const pid_t child = fork();
    if (child == 0) {
      if (install_filter(filter.data(), filter.size()) < 0) _exit(kNotInstalled);
      _exit(act());
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
  }

 private:
  static constexpr int kNotInstalled = 77;
};

int outcome(long result) { return result >= 0 ? 0 : errno; }
int open_root() { return outcome(syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY | O_CLOEXEC, 0)); }

TEST(FiltersOfSealedDomains, refuse_an_unknown_name) {
  const auto made = make_filter(Refuse::error, {"open_sesame"});
  EXPECT_EQ(made.code(), Errc::invalid_argument);
  EXPECT_NE(made.error().message().find("open_sesame"), std::string::npos);
}

TEST_F(FilterOfASealedDomain, lets_it_compute_and_refuses_the_rest) {
  const auto filter = make_filter(Refuse::error, {});
  ASSERT_TRUE(filter) << filter.error().message();
  const std::pair<const char*, std::function<int()>> refused[] = {
      {"opening files", open_root},
      {"making processes", [] { return outcome(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }},
      {"making sockets", [] { return outcome(syscall(SYS_socket, 1, 1, 0)); }},
      {"killing its parent", [] { return outcome(syscall(SYS_kill, getppid(), 0)); }},
      {"duplicating descriptors", [] { return outcome(syscall(SYS_fcntl, 1, F_DUPFD, 3)); }},
      {"raising limits", [] { return outcome(syscall(SYS_prlimit64, getppid(), RLIMIT_CORE, 0, 0)); }}};
  for (const auto& [what, act] : refused) {
    const int status = status_of_child(*filter, act);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == EPERM) << what << ": " << status;
  }
  const int status = status_of_child(*filter, [] {
    return outcome(syscall(SYS_write, 1, "", 0)) + outcome(syscall(SYS_mmap, 0, 4096, 1, 0x22, -1, 0));
  });
  EXPECT_EQ(status, 0) << "its streams and memory it has";
}

/// Otherwise a process could read and write an open file through memory.
TEST_F(FilterOfASealedDomain, maps_no_file_that_is_still_open) {
  const UniqueFd file(memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), 4096), 0);
  const UniqueFd seventh(fcntl(file.get(), F_DUPFD_CLOEXEC, 7));
  ASSERT_TRUE(seventh);
  const auto map = [](long flags, long fd) {
    return outcome(syscall(SYS_mmap, nullptr, 4096L, long{PROT_READ | PROT_WRITE}, flags, fd, 0L));
  };
  for (const Refuse refuse : {Refuse::error, Refuse::trace}) {
    const auto filter = make_filter(refuse, {});
    ASSERT_TRUE(filter) << filter.error().message();
    const int refused = refuse == Refuse::error ? EPERM : ENOSYS;  // without a tracer
    for (const int flags : {MAP_SHARED, MAP_PRIVATE}) {
      const int status = status_of_child(*filter, [&] { return map(flags, seventh.get()); });
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == refused) << flags << ": " << status;
    }
    EXPECT_EQ(status_of_child(*filter, [&] { return map(MAP_PRIVATE | MAP_ANONYMOUS, -1); }), 0);
  }
}

/// The two files of the binding. A program that starts sealed has nothing else at the descriptors 3 and 4.
TEST_F(FilterOfASealedDomain, maps_the_bindings_two_files_where_they_have_their_numbers) {
  for (const Refuse refuse : {Refuse::error, Refuse::trace}) {
    const auto filter = make_filter(refuse, {});
    ASSERT_TRUE(filter) << filter.error().message();
    for (const long fd : {3, 4}) {
      const int status = status_of_child(*filter, [fd] {
        // An offset that is not page-aligned: nothing is mapped.
        return outcome(syscall(SYS_mmap, nullptr, 4096L, long{PROT_READ}, long{MAP_SHARED}, fd, 1L));
      });
      const int expected = refuse == Refuse::trace ? EINVAL : EPERM;
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == expected) << fd << ": " << status;
    }
  }
}

TEST_F(FilterOfASealedDomain, lets_through_what_is_added_by_name) {
  const auto filter = make_filter(Refuse::error, {"openat"});
  ASSERT_TRUE(filter) << filter.error().message();
  const int status = status_of_child(*filter, open_root);
  EXPECT_EQ(status, 0);
}

TEST_F(FilterOfASealedDomain, ends_the_process_where_it_is_to_kill) {
  const auto filter = make_filter(Refuse::kill, {});
  ASSERT_TRUE(filter) << filter.error().message();
  const int status = status_of_child(*filter, open_root);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << status;
}

/// glibc makes this call when a stream is first used: a kill would end each program that calls printf.
TEST_F(FilterOfASealedDomain, refuses_without_killing_to_tell_the_kind_of_a_descriptor) {
  const auto filter = make_filter(Refuse::kill, {});
  ASSERT_TRUE(filter) << filter.error().message();
  const auto look = [](const char* path, long flags) {
    struct stat found {};
    return outcome(syscall(SYS_newfstatat, 1L, path, &found, flags));
  };
  const int status = status_of_child(*filter, [&] { return look("", AT_EMPTY_PATH); });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == EPERM) << status;
  const int killed = status_of_child(*filter, [&] { return look("/", 0); });
  EXPECT_TRUE(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGSYS) << killed;
}

TEST_F(FilterOfASealedDomain, leaves_no_core_file) {
  rlimit here{};
  ASSERT_EQ(getrlimit(RLIMIT_CORE, &here), 0);
  if (here.rlim_max <= 1) GTEST_SKIP() << "the hard limit (RLIMIT_CORE) allows no core files here";
  const auto filter = make_filter(Refuse::error, {"prlimit64"});
  ASSERT_TRUE(filter) << filter.error().message();
  const int status = status_of_child(*filter, [] {
    rlimit limit{};
    if (syscall(SYS_prlimit64, 0, RLIMIT_CORE, nullptr, &limit) != 0) return errno;
    return limit.rlim_max <= 1 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST(NamesOfSystemCalls, are_the_kernels) {
  EXPECT_EQ(name_of_system_call(SYS_openat), "openat");
  EXPECT_FALSE(name_of_system_call(999'999).empty());
}

}  // namespace
}  // namespace lrpc::sealed
