// The standard error of a daemon, where its log goes: a reader who is slow, or does not read, holds no daemon up.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

namespace lrpc::daemon {

class LogStream {
 public:
  constexpr explicit LogStream(int fd) noexcept : fd_(fd) {}

  /// From now on a pipe or terminal is written to through a description of this process's own, which never waits: by
  /// this, and by whatever else writes to the descriptor. Where it cannot be opened (another user's), a write may wait
  /// if others write there, too, or if a terminal is stopped. Nor does it help who writes without this to a socket (the
  /// journal's). To be called before any write.
  void open_own() noexcept;
  /// Writes `line`, which has its end, or leaves it out if it cannot be written at once. Before the next one that can
  /// be written, a line says how many were left out. Any thread.
  void write(std::string_view line) noexcept;
  /// Counts a line that could not even be made.
  void leave_out() noexcept;

 private:
  [[nodiscard]] bool put(std::string_view text) noexcept;

  const int fd_;
  std::mutex mutex_;
  std::uint64_t left_out_ = 0;
  bool torn_ = false;  ///< The last line that was written lacks its end.
};

}  // namespace lrpc::daemon
