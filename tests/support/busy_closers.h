// What is to be closed aside stays open while this lives: so a test sees, without a clock, that nobody else closes it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "lrpc/shim/binder/peer_socket.h"
#include "slow_to_close.h"

namespace testing_lrpc {

/// Occupies the threads of this process that close for one user.
class BusyClosers {
 public:
  explicit BusyClosers(uid_t user = ::geteuid()) {
    for (LingeringConnection& one : slow_) {
      lrpc::UniqueFd last(::fcntl(one.get(), F_DUPFD_CLOEXEC, 0));
      one.give_away();
      lrpc::shim::close_aside(std::move(last), {.user = user});
    }
  }

 private:
  static constexpr std::size_t kMoreThanAreClosedAtOnce = 6;
  std::array<LingeringConnection, kMoreThanAreClosedAtOnce> slow_;
};

/// How many descriptors this process has of memfds of that name.
inline std::size_t copies_of_memory(const std::string& name) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone).string().starts_with("/memfd:" + name + " ")) ++count;
  }
  return count;
}

}  // namespace testing_lrpc
