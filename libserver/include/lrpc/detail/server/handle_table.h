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

/// The number of handles that a user has open, in the tables of all its bindings, which share this count. Thread-safe.
///
/// All other hosts together are one user. Each of them also has a count of its own, which its tables share. An open
/// handle cannot be taken back, so one host gets no more than its fair share (shim/most_of_one.h), and the next host
/// finds some.
class HandleCount {
 public:
  explicit HandleCount(std::size_t most) noexcept : most_(most) {}
  /// The count of one host. `user` is the count of all hosts together, which this keeps alive.
  explicit HandleCount(std::shared_ptr<HandleCount> user) noexcept : most_(user->most_), user_(std::move(user)) {}
  /// Counts one more; false if there may be no more.
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
  // The count of a host and that of all hosts change together, under the lock of the latter. A refused host changes
  // neither count, so its attempts never cause the refusal of another host.
  [[nodiscard]] bool take_for(HandleCount& host) noexcept;
  void give_for(HandleCount& host, std::size_t count) noexcept;

  const std::size_t most_;
  const std::shared_ptr<HandleCount> user_;  ///< Null: this is the count of a user.
  std::atomic<std::size_t> open_{0};
  std::mutex of_hosts_;  ///< Taken for hosts only; no other lock is taken under it.
};

/// Thread-safe; one table for each binding, so no two bindings ever share its lock. A handle value is {serial: 32, slot
/// + 1: 32}; serials wrap around only after 2^32 grants, so a closed handle stays invalid in practice.
///
/// Rundown: when the binding ends, close_all() releases every object; one that a running procedure still uses lives
/// until that procedure releases it. Objects granted later are released at once.
class HandleTable {
 public:
  static constexpr std::size_t kMaxHandles = 65'536;

  /// `count`: shared by all tables of the same user or host; null: handles are not counted.
  explicit HandleTable(std::shared_ptr<HandleCount> count = nullptr) noexcept : count_(std::move(count)) {}

  /// Adds an object; 0 if the table is full or its user or host has as many as it may. After close_all() the object is
  /// not kept, and the value that this returns is not valid.
  [[nodiscard]] std::uint64_t grant(std::uint32_t tag, std::type_index type, std::shared_ptr<void> object);
  /// The object behind a value, or null if it is not open, was granted under another tag or is of another C++ type.
  [[nodiscard]] std::shared_ptr<void> resolve(std::uint64_t value, std::uint32_t tag, std::type_index type);
  /// Like resolve(), and removes the handle from the table.
  [[nodiscard]] std::shared_ptr<void> close(std::uint64_t value, std::uint32_t tag, std::type_index type);
  /// Removes several from the table, or none: false unless all are open and no two are the same. Precondition: the
  /// caller holds what resolve() returned for each, so that no object is destroyed under the lock.
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
