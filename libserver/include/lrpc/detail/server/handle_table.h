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
class HandleCount {
 public:
  explicit HandleCount(std::size_t most) noexcept : most_(most) {}
  /// One more; false if there may be no more.
  [[nodiscard]] bool take() noexcept {
    if (open_.fetch_add(1, std::memory_order_relaxed) < most_) return true;
    give(1);
    return false;
  }
  void give(std::size_t count) noexcept { open_.fetch_sub(count, std::memory_order_relaxed); }
  [[nodiscard]] std::size_t open() const noexcept { return open_.load(std::memory_order_relaxed); }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> open_{0};
};

/// Thread-safe; one table a binding, so no two bindings ever share its lock. A handle value is {serial: 32, slot + 1:
/// 32}; serials come round only after 2^32 grants, so a closed handle stays invalid in practice.
///
/// Rundown: when the client goes, close_all() drops every object; one that a running procedure still uses dies when
/// that procedure lets go of it. Objects granted later are dropped at once.
class HandleTable {
 public:
  static constexpr std::size_t kMaxHandles = 65'536;

  /// `count`: of all tables of the same user; null: nobody counts.
  explicit HandleTable(std::shared_ptr<HandleCount> count = nullptr) noexcept : count_(std::move(count)) {}

  /// Enters an object; 0 if the table is full or its user has as many as it may. After close_all() the object is not
  /// kept and the value is dead on arrival.
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
