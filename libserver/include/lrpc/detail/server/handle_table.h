// The handles of one binding: typed names for objects that the server keeps for its client.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <typeindex>
#include <utility>
#include <vector>

namespace lrpc::server {

/// How many handles a user has open, over the tables of all its bindings; each table holds it. Thread-safe.
///
/// The other hosts together are one user. Each of them has a count of its own, and its tables hold that. An open handle
/// cannot be taken back, so one host gets no more than its fair share (shim/most_of_one.h), and the next host finds
/// some.
class HandleCount {
 public:
  explicit HandleCount(std::size_t most) noexcept : most_(most) {}
  /// Of one of the hosts that together are `user`, whose count it keeps.
  explicit HandleCount(std::shared_ptr<HandleCount> user) noexcept : most_(user->most_), user_(std::move(user)) {}
  /// One more; false if there may be no more.
  [[nodiscard]] bool take() noexcept {
    if (user_ != nullptr) return user_->take_for(*this);
    if (open_.fetch_add(1, std::memory_order_relaxed) < most_) return true;
    give(1);
    return false;
  }
  void give(std::size_t count) noexcept {
    if (user_ != nullptr) return user_->give_for(*this, count);
    open_.fetch_sub(count, std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t open() const noexcept { return open_.load(std::memory_order_relaxed); }

 private:
  // What a host has and what all hosts have change together, under the lock of their user. A refused host changes
  // neither, so that however often it asks, no other host is refused for that.
  [[nodiscard]] bool take_for(HandleCount& host) noexcept;
  void give_for(HandleCount& host, std::size_t count) noexcept;

  const std::size_t most_;
  const std::shared_ptr<HandleCount> user_;  ///< Null: this is a user's.
  std::atomic<std::size_t> open_{0};
  std::mutex of_hosts_;  ///< Taken for hosts only, and nothing is locked under it.
};

/// Thread-safe; one table a binding, so no two bindings ever share its lock. A handle value is {serial: 32, slot + 1:
/// 32}; serials come round only after 2^32 grants, so a closed handle stays invalid in practice.
///
/// Rundown: when the client goes, close_all() drops every object; one that a running procedure still uses dies when
/// that procedure lets go of it. Objects granted later are dropped at once.
class HandleTable {
 public:
  static constexpr std::size_t kMaxHandles = 65'536;

  /// `count`: of all tables of the same user or host; null: nobody counts.
  explicit HandleTable(std::shared_ptr<HandleCount> count = nullptr) noexcept : count_(std::move(count)) {}

  /// Enters an object; 0 if the table is full or its user or host has as many as it may. After close_all() the object
  /// is not kept and the value is dead on arrival.
  [[nodiscard]] std::uint64_t grant(std::uint32_t tag, std::type_index type, std::shared_ptr<void> object);
  /// The object behind a value, or null if it is not open, was granted under another tag or is of another C++ type.
  [[nodiscard]] std::shared_ptr<void> resolve(std::uint64_t value, std::uint32_t tag, std::type_index type);
  /// The same, and takes the handle out of the table.
  [[nodiscard]] std::shared_ptr<void> close(std::uint64_t value, std::uint32_t tag, std::type_index type);
  /// Takes several out of the table, or none: false unless all are open and no two the same. Precondition: the caller
  /// holds what resolve() gave for each, so that no object ends in here.
  [[nodiscard]] bool close_together(std::span<const std::uint64_t> values);
  /// Rundown. Destructors of objects run in the calling thread, outside the lock.
  void close_all();
  /// How many are open.
  [[nodiscard]] std::size_t size();

 private:
  struct Entry {
    std::uint32_t serial = 0;
    std::uint32_t tag = 0;
    std::type_index type = typeid(void);
    std::shared_ptr<void> object;
  };
  [[nodiscard]] Entry* open_locked(std::uint64_t value);
  [[nodiscard]] Entry* find_locked(std::uint64_t value, std::uint32_t tag, std::type_index type);
  void free_locked(std::uint64_t value);

  const std::shared_ptr<HandleCount> count_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
  std::uint32_t last_serial_ = 0;
  bool closed_ = false;
};

}  // namespace lrpc::server
