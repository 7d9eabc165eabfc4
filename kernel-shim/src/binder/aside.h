// Threads that strangers may delay without harm. Those that close descriptors are close_aside()'s (peer_socket.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "lrpc/detail/shim/binder/peer_socket.h"

namespace lrpc::shim {

/// How many threads one user and all users may hold up at a time, counted apart for closing and for receiving; a user
/// that holds up none may always hold up one. Beyond that, closing waits for its turn, and messages are not received.
inline constexpr unsigned kMostAsideOfOne = 4;
inline constexpr unsigned kMostAside = 64;
/// How many descriptors of one user may wait to be closed; with so many, nothing is received from the user. Any that
/// still come (refused connections) are closed by the end of a thread, which does not linger.
inline constexpr unsigned kMostToClose = 256;
/// The same for all users together, but at most one kPartToClose-th of what the process can have.
inline constexpr unsigned kMostToCloseOfAll = 1024;
inline constexpr unsigned kPartToClose = 8;

/// A thread's descriptor table: an empty one of its own, the process's, or none (it could not get its own).
enum class Table : std::uint8_t { own, shared, none };

/// Runs `work` at once on a new thread, which has a descriptor table of its own if that is wanted (`apart`) and if
/// kernel and sandbox allow it. Waits at most `patience` while this user holds up too many threads or descriptors.
/// False: it still does, or there is no memory or no thread. Thread-safe.
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
