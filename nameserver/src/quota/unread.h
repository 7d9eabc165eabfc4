// Decides whether a peer still reads what it is sent: pure; each check and its time are passed in.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace lrpc::nameserver {

class Unread {
 public:
  using Clock = std::chrono::steady_clock;

  /// A check finds `bytes` that the peer has not read. True: it has read nothing for `patience` although there was
  /// something to read. Messages that are sent meanwhile can hide that it reads, but not at every check, because a
  /// socket's buffer is small.
  bool stays(std::uint64_t bytes, Clock::time_point now, Clock::duration patience) noexcept {
    if (bytes == 0) {
      since_.reset();
    } else if (!since_ || bytes < bytes_) {
      since_ = now;
    }
    bytes_ = bytes;
    return since_ && now - *since_ >= patience;
  }
  /// The peer has read everything since the last check.
  void has_been_read() noexcept { since_.reset(); }
  /// There was something to read at the last check.
  [[nodiscard]] bool any() const noexcept { return since_.has_value(); }

 private:
  std::uint64_t bytes_ = 0;
  std::optional<Clock::time_point> since_;
};

}  // namespace lrpc::nameserver
