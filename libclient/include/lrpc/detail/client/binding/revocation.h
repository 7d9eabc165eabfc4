// Tells the program that a binding has been revoked.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "lrpc/detail/shim/escaped.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::client {

/// Makes a descriptor readable, and calls each registered function once. Costs nothing until it is used.
/// Thread-safe, except where a comment says otherwise.
class RevocationNews {
 public:
  ~RevocationNews();

  /// The descriptor, made by the first call; owned by this. `revoked` is the flag that is set before signal().
  Result<int> descriptor(const std::atomic<bool>& revoked);
  /// The binding is revoked: makes the descriptor readable, if there is one. No other system call than write(2).
  void signal() noexcept;
  /// Adds a function that tell() will call, after those added before. Once tell() has called all of them, calls it at
  /// once; prints an exception.
  void call(std::function<void()> told);
  /// Calls the functions, each once, also those that are added meanwhile. Prints exceptions. None of them may destroy
  /// this. One thread at a time.
  void tell() noexcept;
  /// In a forked child, which has no other thread: replaces the descriptor by a readable one that it does not share
  /// with the parent.
  void forget_after_fork() noexcept;

 private:
  static void tell(const std::function<void()>& told, shim::EscapedExceptions& escaped) noexcept;

  std::atomic<int> fd_{-1};  ///< Set once.
  std::mutex mutex_;
  std::vector<std::function<void()>> to_call_;
  bool told_ = false;  ///< tell() has called all of to_call_.
};

}  // namespace lrpc::client
