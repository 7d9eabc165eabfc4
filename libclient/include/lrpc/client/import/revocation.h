// Who is told that a binding has been revoked.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "lrpc/shim/result.h"

namespace lrpc::client {

/// A descriptor that becomes readable and functions that are called, each once. Costs nothing until somebody asks.
/// Thread-safe, where nothing else is said.
class RevocationNews {
 public:
  RevocationNews() noexcept = default;
  RevocationNews(const RevocationNews&) = delete;
  RevocationNews& operator=(const RevocationNews&) = delete;
  ~RevocationNews();

  /// The descriptor, made by the first call; owned by this. `revoked` is the flag that is set before signal().
  Result<int> descriptor(const std::atomic<bool>& revoked);
  /// The binding is revoked: makes the descriptor readable, if there is one. No other system call than write(2).
  void signal() noexcept;
  /// Has `told` called by tell(), after those before it; if tell() has been, by this.
  void call(std::function<void()> told);
  /// Calls what is to be called; never the same twice. Exceptions are printed.
  void tell() noexcept;
  /// In a fork child, which has no other thread: the descriptor becomes one of its own, which is readable. The one of
  /// the parent is none of its business.
  void forget_after_fork() noexcept;

 private:
  std::atomic<int> fd_{-1};  ///< Set once.
  std::mutex mutex_;
  std::vector<std::function<void()>> to_call_;
  bool told_ = false;
};

}  // namespace lrpc::client
