// Threads whose delay hurts nobody: they wait for strangers. Those that close are close_aside()'s (peer_socket.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "lrpc/detail/shim/binder/peer_socket.h"

namespace lrpc::shim {

/// Threads that are held up at a time, by one user and by all, in closing what was received and in taking in; a user
/// who holds up none has always one more. Whatever exceeds that waits for its turn, or is not received.
inline constexpr unsigned kMostAsideOfOne = 4;
inline constexpr unsigned kMostAside = 64;
/// Descriptors of one user that wait to be closed: with more of them, nothing of its is received. What comes all the
/// same (connections that are turned away) is closed by the end of a thread, which lingers for nobody.
inline constexpr unsigned kMostToClose = 256;
/// The same of all users together, but no more than this part of what the process can have.
inline constexpr unsigned kMostToCloseOfAll = 1024;
inline constexpr unsigned kPartToClose = 8;

/// What a thread's table of descriptors is: empty and its own, that of the process, or neither could be had.
enum class Table : std::uint8_t { own, shared, none };

/// Runs `work` at once on a thread of its own, which has a table of its own if that is wanted (`apart`) and if this
/// kernel and sandbox let it. Waits at most `patience` for what this user holds up. False: that is too much, or there
/// is no memory for it. Thread-safe.
[[nodiscard]] bool run_aside(uid_t user, std::function<void(Table)> work, std::chrono::milliseconds patience,
                             bool apart) noexcept;

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
