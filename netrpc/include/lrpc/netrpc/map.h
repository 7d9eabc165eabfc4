// The map manager: maps one identifier to another in constant time (The x-Kernel §II.A and Figure 6).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace lrpc::netrpc {

/// Mixes the fields of a key into one hash: identifiers from the network are small and regular.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t value) noexcept {
  std::uint64_t x = seed ^ (value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2));
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ULL;
  x ^= x >> 32;
  return x;
}

/// The next number of splitmix64.
[[nodiscard]] constexpr std::uint64_t next_random(std::uint64_t& state) noexcept {
  std::uint64_t x = state += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// A hash table with linear probing and a cache of the last entry found, as the x-kernel's. `Key` is an integer, a
/// pointer, or a type with operator== and a member `std::uint64_t hash() const noexcept`, which should begin with a
/// secret seed where a peer chooses keys.
/// Without memory to grow, the table becomes fuller and slower. Not thread-safe: under the host's monitor. Pointers to
/// values are valid until the next bind() or unbind().
template <class Key, class Value>
class Map {
 public:
  explicit Map(std::size_t expected = 8) { grow(expected * 2); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// The value bound to `key`; null if there is none.
  [[nodiscard]] Value* resolve(const Key& key) noexcept {
    if (last_ < slots_.size() && slots_[last_].used && slots_[last_].key == key) return &slots_[last_].value;
    const std::size_t at = find(key);
    if (!slots_[at].used) return nullptr;
    last_ = at;
    return &slots_[at].value;
  }
  /// Binds `key` to `value`, in place of an older binding. Allocates only when the map has never been this large.
  /// Throws std::bad_alloc, and changes nothing, only if that allocation fails and seven of eight slots are taken.
  Value& bind(const Key& key, Value value) {
    if ((size_ + 1) * 2 > slots_.size()) make_room();
    const std::size_t at = find(key);
    if (!slots_[at].used) {
      slots_[at].used = true;
      slots_[at].key = key;
      ++size_;
    }
    slots_[at].value = std::move(value);
    return slots_[at].value;
  }
  /// False: there was none.
  bool unbind(const Key& key) noexcept {
    std::size_t hole = find(key);
    if (!slots_[hole].used) return false;
    // Destroyed at the return, when the map is consistent again: the destructor may use the map.
    [[maybe_unused]] const Value dropped = std::move(slots_[hole].value);
    slots_[hole] = Slot{};
    --size_;
    for (std::size_t at = next(hole); slots_[at].used; at = next(at)) {
      const std::size_t home = index(slots_[at].key);
      const bool between = hole <= at ? hole < home && home <= at : hole < home || home <= at;
      if (between) continue;
      slots_[hole] = std::move(slots_[at]);
      slots_[at] = Slot{};
      hole = at;
    }
    return true;
  }
  /// The same if `key` is bound to `value`. False: it is not.
  template <class Same>
  bool unbind(const Key& key, const Same& value) noexcept {
    const Value* const bound = resolve(key);
    return bound != nullptr && *bound == value && unbind(key);
  }
  /// Calls `visit(key, value)` for each; it must not bind or unbind.
  template <class Visit>
  void for_each(Visit visit) {
    for (Slot& slot : slots_)
      if (slot.used) visit(std::as_const(slot.key), slot.value);
  }
  /// Unbinds every entry for which `condition(key, value)` holds, and returns their number; O(capacity). Without memory
  /// some entries may stay.
  template <class Condition>
  std::size_t unbind_if(Condition condition) {
    std::vector<Key> doomed;
    for_each([&](const Key& key, Value& value) {
      if (!condition(key, value)) return;
      try {
        doomed.push_back(key);
      } catch (const std::bad_alloc&) {
      }
    });
    for (const Key& key : doomed) unbind(key);
    return doomed.size();
  }
  /// Without memory for an empty table it unbinds the entries one by one.
  void clear() noexcept {
    if (empty()) return;
    try {
      std::vector<Slot> old(slots_.size());
      std::swap(old, slots_);
      size_ = 0;
    } catch (const std::bad_alloc&) {
      for (Slot& slot : slots_)
        while (slot.used) unbind(Key(slot.key));
    }
  }

 private:
  struct Slot {
    bool used = false;
    Key key{};
    Value value{};
  };
  [[nodiscard]] static std::uint64_t hash_of(const Key& key) noexcept {
    if constexpr (std::is_integral_v<Key>) {
      return mix(0, key);
    } else if constexpr (std::is_pointer_v<Key>) {
      return mix(0, reinterpret_cast<std::uintptr_t>(key));
    } else {
      return key.hash();
    }
  }
  [[nodiscard]] std::size_t index(const Key& key) const noexcept { return hash_of(key) & (slots_.size() - 1); }
  [[nodiscard]] std::size_t next(std::size_t at) const noexcept { return (at + 1) & (slots_.size() - 1); }
  [[nodiscard]] std::size_t find(const Key& key) const noexcept {
    std::size_t at = index(key);
    while (slots_[at].used && !(slots_[at].key == key)) at = next(at);
    return at;
  }
  void make_room() {
    try {
      grow(slots_.size() * 2);
    } catch (const std::bad_alloc&) {
      if ((size_ + 1) * 8 > slots_.size() * 7) throw;
    }
  }
  void grow(std::size_t least) {
    std::size_t capacity = 16;
    while (capacity < least) capacity *= 2;
    std::vector<Slot> old(capacity);
    std::swap(old, slots_);
    for (Slot& slot : old)
      if (slot.used) slots_[find(slot.key)] = std::move(slot);
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
  std::size_t last_ = 0;
};

}  // namespace lrpc::netrpc
