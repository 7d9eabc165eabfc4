// Threads whose delay hurts nobody: they wait for strangers.
#pragma once

#include <chrono>
#include <functional>

#include "lrpc/shim/peer_socket.h"

namespace lrpc::shim {

/// Threads that are held up at a time, by one user and by all, in closing what was received and in taking in. What is
/// over that waits for its turn, or is not received.
inline constexpr unsigned kMostAsideOfOne = 4;
inline constexpr unsigned kMostAside = 64;
/// Descriptors of one user that wait to be closed: with more of them, nothing of its is received.
inline constexpr unsigned kMostToClose = 256;

/// Closes `fd` and then lets go of the account, on another thread, at some time. Does not wait. Where there is no memory
/// for that, both stay for good: better than to wait here. Thread-safe.
void close_aside(UniqueFd fd, Stranger stranger) noexcept;

/// Runs `work` at once on a thread of its own. `apart`: the thread's table of descriptors is not the process's, but empty
/// and its own; otherwise this kernel, a sandbox or a lack of something does not let it have one. False: this user holds up
/// too much already, or there is no memory for it. Thread-safe.
/// Waits for `patience` at most for what this user holds up.
[[nodiscard]] bool run_aside(uid_t user, std::function<void(bool apart)> work,
                             std::chrono::milliseconds patience) noexcept;

/// While it lives, the thread that has it counts as held up by the user.
class HeldUp {
 public:
  explicit HeldUp(uid_t user) noexcept;
  HeldUp(const HeldUp&) = delete;
  HeldUp& operator=(const HeldUp&) = delete;
  ~HeldUp();

 private:
  const uid_t user_;
  bool counted_ = false;
};

}  // namespace lrpc::shim
