// How much of a shared resource each user or host holds. Each may hold its fair share. Pure.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <memory>
#include <new>

#include "lrpc/detail/shim/most_of_one.h"

namespace lrpc::shim {

/// `Table`: amounts by keys, with the functions of UserTable. Not thread-safe. Must outlive its parts.
template <class Key, class Table>
class Shares {
  struct GiveBack {
    Key key;
    std::size_t amount;
    void operator()(Shares* of) const noexcept { of->give_back(key, amount); }
  };

 public:
  /// An amount that one user has taken. It is given back when this is overwritten or destroyed.
  using Part = std::unique_ptr<Shares, GiveBack>;

  Shares() = default;
  Shares(const Shares&) = delete;
  Shares& operator=(const Shares&) = delete;

  /// Whether `key` may take `amount` of `all`, and so much is free.
  [[nodiscard]] bool has_room(const Key& key, std::size_t amount, std::size_t all) noexcept {
    return one_may_take(amount, taken_by(key), taken_, all);
  }
  /// Takes `amount` without asking for room. False: there is no memory.
  [[nodiscard]] Part take(const Key& key, std::size_t amount) noexcept try {
    return add(key, amount);
  } catch (const std::bad_alloc&) {
    return {};
  }
  /// For a user with a quota of `all`. False: quota_beside_others() is less. Throws std::bad_alloc.
  [[nodiscard]] Part take_within(std::size_t quota, const Key& key, std::size_t amount, std::size_t all) {
    const std::size_t has = taken_by(key);
    if (has + amount > quota_beside_others(quota, amount, has, taken_, all)) return {};
    return add(key, amount);
  }
  [[nodiscard]] std::size_t taken() const noexcept { return taken_; }

 private:
  [[nodiscard]] std::size_t taken_by(const Key& key) noexcept {
    const std::size_t* const known = table_.resolve(key);
    return known != nullptr ? *known : 0;
  }
  [[nodiscard]] Part add(const Key& key, std::size_t amount) {
    std::size_t* const known = table_.resolve(key);
    (known != nullptr ? *known : table_.bind(key, 0)) += amount;
    taken_ += amount;
    return Part(this, {key, amount});
  }
  /// The entry of a part of 0 may be gone.
  void give_back(const Key& key, std::size_t amount) noexcept {
    taken_ -= amount;
    if (std::size_t* const known = table_.resolve(key); known != nullptr && (*known -= amount) == 0) table_.unbind(key);
  }

  std::size_t taken_ = 0;
  Table table_;
};

/// Amounts by users.
struct UserTable : std::map<uid_t, std::size_t> {
  [[nodiscard]] std::size_t* resolve(uid_t user) noexcept {
    const auto known = find(user);
    return known != end() ? &known->second : nullptr;
  }
  std::size_t& bind(uid_t user, std::size_t amount) { return (*this)[user] = amount; }
  void unbind(uid_t user) noexcept { erase(user); }
};
using UserShares = Shares<uid_t, UserTable>;

}  // namespace lrpc::shim
