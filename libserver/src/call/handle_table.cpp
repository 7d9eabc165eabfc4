#include "lrpc/detail/server/handle_table.h"

#include <algorithm>

#include "lrpc/detail/shim/most_of_one.h"

namespace lrpc::server {

bool HandleCount::take_for(HandleCount& host) noexcept {
  const std::lock_guard lock(of_hosts_);
  if (!shim::one_may_take(1, host.open(), open(), most_)) return false;
  open_.fetch_add(1, std::memory_order_relaxed);
  host.open_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void HandleCount::give_for(HandleCount& host, std::size_t count) noexcept {
  const std::lock_guard lock(of_hosts_);
  open_.fetch_sub(count, std::memory_order_relaxed);
  host.open_.fetch_sub(count, std::memory_order_relaxed);
}

std::uint64_t HandleTable::grant(std::uint32_t tag, std::type_index type, std::shared_ptr<void> object) {
  std::lock_guard lock(mutex_);
  if (closed_) return 1;  // not kept, and counts for nobody: no entry has this value
  if (free_.empty() && entries_.size() == kMaxHandles) return 0;
  std::uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(entries_.size());
    if (entries_.size() == entries_.capacity()) entries_.reserve(std::max<std::size_t>(2 * entries_.size(), 8));
    free_.reserve(entries_.capacity());  // so that giving one back needs no memory
    entries_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  if (count_ != nullptr && !count_->take()) {
    free_.push_back(slot);
    return 0;
  }
  if (++last_serial_ == 0) ++last_serial_;  // 0 marks a free entry
  entries_[slot] = {last_serial_, tag, type, std::move(object)};
  return std::uint64_t{last_serial_} << 32 | (slot + 1);
}

HandleTable::Entry* HandleTable::open_locked(std::uint64_t value) {
  const auto slot = static_cast<std::uint32_t>(value);
  if (slot == 0 || slot > entries_.size()) return nullptr;
  Entry& entry = entries_[slot - 1];
  return entry.serial != 0 && entry.serial == value >> 32 ? &entry : nullptr;
}

HandleTable::Entry* HandleTable::find_locked(std::uint64_t value, std::uint32_t tag, std::type_index type) {
  Entry* entry = open_locked(value);
  return entry != nullptr && entry->tag == tag && entry->type == type ? entry : nullptr;
}

/// Frees the slot of an entry that is being closed, and uncounts it.
void HandleTable::free_locked(std::uint64_t value) {
  free_.push_back(static_cast<std::uint32_t>(value) - 1);
  if (count_ != nullptr) count_->give(1);
}

std::shared_ptr<void> HandleTable::resolve(std::uint64_t value, std::uint32_t tag, std::type_index type) {
  std::lock_guard lock(mutex_);
  const Entry* entry = find_locked(value, tag, type);
  return entry != nullptr ? entry->object : nullptr;
}

std::shared_ptr<void> HandleTable::close(std::uint64_t value, std::uint32_t tag, std::type_index type) {
  std::lock_guard lock(mutex_);
  Entry* entry = find_locked(value, tag, type);
  if (entry == nullptr) return nullptr;
  free_locked(value);
  return std::exchange(*entry, Entry{}).object;
}

bool HandleTable::close_together(std::span<const std::uint64_t> values) {
  std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto before = values.first(i);
    if (open_locked(values[i]) == nullptr || std::ranges::find(before, values[i]) != before.end()) return false;
  }
  for (const std::uint64_t value : values) {
    *open_locked(value) = Entry{};
    free_locked(value);
  }
  return true;
}

void HandleTable::close_all() {
  std::vector<Entry> dying;
  std::lock_guard lock(mutex_);
  closed_ = true;
  if (count_ != nullptr) count_->give(entries_.size() - free_.size());
  dying.swap(entries_);
  free_.clear();
  // `lock` is released first, then `dying` is destroyed: an object's destructor may use this table.
}

std::size_t HandleTable::size() {
  std::lock_guard lock(mutex_);
  return entries_.size() - free_.size();
}

}  // namespace lrpc::server
