// A child process that is forked before its parent has threads.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

#include "ended.h"
#include "lrpc/detail/shim/system/fd.h"

namespace testing_lrpc {

/// A process that runs `action(told)` as `user`, after begin() has sent it `told`, such as the nameserver's socket. Its
/// exit status is the value of `action`.
///
/// Make it before this process has threads. A lock that another thread holds during the fork, such as that of a
/// sanitizer's allocator, stays locked in the child for ever.
class EarlyChild {
 public:
  template <class Action>
  EarlyChild(uid_t user, Action action) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    pid_ = ::fork();
    begin_.reset(ends[pid_ == 0 ? 0 : 1]);
    ::close(ends[pid_ == 0 ? 1 : 0]);
    if (pid_ != 0) return;
    std::array<char, 256> told{};
    const ssize_t size = ::read(begin_.get(), told.data(), told.size());
    if (size <= 0) ::_exit(254);  // begin() was not called
    const bool changed = user == ::geteuid() || (::setgroups(0, nullptr) == 0 && ::setresgid(user, user, user) == 0 &&
                                                 ::setresuid(user, user, user) == 0);
    ::_exit(changed ? action(std::string(told.data(), static_cast<std::size_t>(size))) : 255);
  }
  EarlyChild(const EarlyChild&) = delete;
  EarlyChild& operator=(const EarlyChild&) = delete;
  ~EarlyChild() {
    begin_.reset();
    if (pid_ > 0) (void)wait();
  }
  /// `told`: at most 256 bytes.
  void begin(const std::string& told) {
    EXPECT_EQ(::write(begin_.get(), told.data(), told.size()), static_cast<ssize_t>(told.size()));
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Its exit status, or minus the signal that ended it.
  int wait() {
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  /// Whether it has ended. Then wait() does not block.
  [[nodiscard]] bool ended() const { return has_ended(pid_); }

 private:
  pid_t pid_ = -1;
  lrpc::UniqueFd begin_;  ///< This process's end of the pipe.
};

}  // namespace testing_lrpc
