// Calls that cannot be sent yet: first come, first served.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc {

/// Each call waits in its Transaction, with its request and its deadline; nothing is allocated.
class WaitingCalls {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Precondition: not empty().
  [[nodiscard]] const Transaction& first() const noexcept { return *first_; }
  void add(Transaction& transaction, Message&& request) noexcept {
    transaction.waiting_request = std::move(request);
    transaction.next_waiting = nullptr;
    (first_ == nullptr ? first_ : last_->next_waiting) = &transaction;
    last_ = &transaction;
    ++size_;
  }
  /// Takes the first one out of the queue, with its request. Precondition: not empty().
  [[nodiscard]] Transaction& take_first() noexcept {
    Transaction& taken = *first_;
    unlink(nullptr, taken);
    return taken;
  }
  /// Takes the call out of the queue, and drops its request. False: it does not wait here.
  bool drop(const Transaction& transaction) noexcept {
    return drop_if([&](const Transaction& one) { return &one == &transaction; }) != nullptr;
  }
  /// The same for the first one whose deadline has passed. Null: there is none.
  [[nodiscard]] Transaction* drop_expired(Time now) noexcept {
    return drop_if([now](const Transaction& one) { return one.deadline <= now; });
  }
  /// Time::max(): none has a deadline.
  [[nodiscard]] Time earliest_deadline() const noexcept {
    Time earliest = Time::max();
    for (const Transaction* at = first_; at != nullptr; at = at->next_waiting)
      earliest = std::min(earliest, at->deadline);
    return earliest;
  }

 private:
  template <class Condition>
  [[nodiscard]] Transaction* drop_if(Condition condition) noexcept {
    Transaction* before = nullptr;
    for (Transaction* at = first_; at != nullptr; before = at, at = at->next_waiting) {
      if (!condition(*at)) continue;
      unlink(before, *at);
      at->waiting_request.clear();
      return at;
    }
    return nullptr;
  }
  void unlink(Transaction* before, Transaction& transaction) noexcept {
    (before == nullptr ? first_ : before->next_waiting) = transaction.next_waiting;
    if (last_ == &transaction) last_ = before;
    transaction.next_waiting = nullptr;
    --size_;
  }

  Transaction* first_ = nullptr;
  Transaction* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace lrpc::netrpc
