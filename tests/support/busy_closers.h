// While a BusyClosers exists, descriptors that are to be closed aside stay open. So a test sees, without a clock, that
// no other thread closes them.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "eventually.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "slow_to_close.h"

namespace testing_lrpc {

/// How many threads of this process are inside close(2).
inline std::size_t threads_in_close() {
  std::size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    long call = -1;
    if (std::ifstream(task.path() / "syscall") >> call && call == SYS_close) ++count;
  }
  return count;
}

/// Occupies all threads of this process that close descriptors for one user, once the constructor has returned. Only
/// one at a time. Do not fork before it is made: close(2) waits only for the last copy.
class BusyClosers {
 public:
  explicit BusyClosers(uid_t user = ::geteuid()) {
    constexpr unsigned kLooks = 20;
    unsigned looks = 0;
    EXPECT_TRUE(eventually([&] {
      if (still()) return true;
      // Those that were released need something else to close.
      const bool more = slow_.size() < kMoreThanAreClosedAtOnce || ++looks % kLooks == 0;
      if (more && slow_.size() < kMost) occupy_one(user);
      return false;
    }));
  }
  /// False: the threads were released. A signal, a stop or a freezer interrupts what close(2) waits for.
  [[nodiscard]] static bool still() { return threads_in_close() >= kClosedAtOnce; }

 private:
  void occupy_one(uid_t user) {
    LingeringConnection& one = slow_.emplace_back();
    lrpc::UniqueFd last(::fcntl(one.get(), F_DUPFD_CLOEXEC, 0));
    one.give_away();
    lrpc::shim::close_aside(std::move(last), {.user = user});
  }
  static constexpr std::size_t kClosedAtOnce = 4;  // aside.h: kMostAsideOfOne
  static constexpr std::size_t kMoreThanAreClosedAtOnce = kClosedAtOnce + 2;
  static constexpr std::size_t kMost = 100;
  std::deque<LingeringConnection> slow_;
};

/// How many descriptors of memfds of that name this process has.
inline std::size_t copies_of_memory(const std::string& name) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone).string().starts_with("/memfd:" + name + " ")) ++count;
  }
  return count;
}

/// `round`, which begins and ends with busy closers, receives memory of that name from a stranger. That memory must
/// still be open afterwards, since only the closers may close it. Repeats the round if the closers were released.
template <class Round>
void expect_left_to_closers(const std::string& name, Round&& round) {
  std::size_t copies = 0;
  EXPECT_TRUE(eventually([&] {
    if (copies_of_memory(name) != 0) return false;  // from the round before
    const BusyClosers closers;
    round();
    copies = copies_of_memory(name);
    return copies == 1 || BusyClosers::still();
  }));
  EXPECT_EQ(copies, 1U) << "who received it has closed it";
}

}  // namespace testing_lrpc
