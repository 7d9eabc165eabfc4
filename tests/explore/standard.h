// Replaces <atomic> and <mutex>: code that is included after this file uses the explored ones. Everything else of the
// standard library must be included before. So a source that includes it must not get lrpc's headers in any other way.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <source_location>
#include <thread>
#include <type_traits>

#include "explore.h"

namespace std {

template <class T>
class explored_atomic {
  static constexpr size_t kSize = sizeof(T);  // NOLINT(bugprone-sizeof-expression): T may be a pointer
  static_assert(kSize <= 8 && is_trivially_copyable_v<T>);
  using Where = std::source_location;

 public:
  using value_type = T;
  static constexpr bool is_always_lock_free = true;

  constexpr explored_atomic() noexcept : explored_atomic(T{}) {}
  constexpr explored_atomic(T value) noexcept : value_(value) {  // NOLINT: implicit, as std::atomic's
    if (!is_constant_evaluated()) explore::forget(this);
  }
  explored_atomic(const explored_atomic&) = delete;
  explored_atomic& operator=(const explored_atomic&) = delete;

  T load(memory_order order = memory_order_seq_cst, Where where = Where::current()) const noexcept {
    return from(explore::load(this, bits(value_), order, where));
  }
  void store(T value, memory_order order = memory_order_seq_cst, Where where = Where::current()) noexcept {
    explore::store(this, bits(value_), bits(value), order, where);
    value_ = value;
  }
  operator T() const noexcept { return load(); }  // NOLINT: as std::atomic's
  T operator=(T value) noexcept {                 // NOLINT: as std::atomic's
    store(value);
    return value;
  }
  T exchange(T value, memory_order order = memory_order_seq_cst, Where where = Where::current()) noexcept {
    return update([&](T) { return value; }, "exchange", order, where);
  }
  T fetch_add(T value, memory_order order = memory_order_seq_cst, Where where = Where::current()) noexcept {
    return update([&](T now) { return static_cast<T>(now + value); }, "fetch_add", order, where);
  }
  T fetch_sub(T value, memory_order order = memory_order_seq_cst, Where where = Where::current()) noexcept {
    return update([&](T now) { return static_cast<T>(now - value); }, "fetch_sub", order, where);
  }
  T fetch_or(T value, memory_order order = memory_order_seq_cst, Where where = Where::current()) noexcept {
    return update([&](T now) { return static_cast<T>(now | value); }, "fetch_or", order, where);
  }
  T fetch_and(T value, memory_order order = memory_order_seq_cst, Where where = Where::current()) noexcept {
    return update([&](T now) { return static_cast<T>(now & value); }, "fetch_and", order, where);
  }
  T operator++() noexcept { return fetch_add(1) + 1; }
  T operator++(int) noexcept { return fetch_add(1); }
  T operator--() noexcept { return fetch_sub(1) - 1; }

  bool compare_exchange_strong(T& expected, T value, memory_order done, memory_order failed,
                               Where where = Where::current()) noexcept {
    explore::begin_update(this, bits(value_), "compare_exchange", where);
    if (bits(value_) != bits(expected)) {
      explore::end_look(this, failed, where);
      expected = value_;
      return false;
    }
    value_ = value;
    explore::end_update(this, bits(value), done, where);
    return true;
  }
  bool compare_exchange_strong(T& expected, T value, memory_order order = memory_order_seq_cst,
                               Where where = Where::current()) noexcept {
    return compare_exchange_strong(expected, value, order, without_release(order), where);
  }
  bool compare_exchange_weak(T& expected, T value, memory_order done, memory_order failed,
                             Where where = Where::current()) noexcept {
    return compare_exchange_strong(expected, value, done, failed, where);
  }
  bool compare_exchange_weak(T& expected, T value, memory_order order = memory_order_seq_cst,
                             Where where = Where::current()) noexcept {
    return compare_exchange_strong(expected, value, order, without_release(order), where);
  }

 private:
  static memory_order without_release(memory_order order) noexcept {
    if (order == memory_order_acq_rel) return memory_order_acquire;
    return order == memory_order_release ? memory_order_relaxed : order;
  }
  static uint64_t bits(T value) noexcept {
    uint64_t all = 0;
    memcpy(&all, &value, kSize);
    return all;
  }
  static T from(uint64_t bits) noexcept {
    T value;
    memcpy(&value, &bits, kSize);
    return value;
  }
  template <class Change>
  T update(Change change, const char* what, memory_order order, const Where& where) noexcept {
    explore::begin_update(this, bits(value_), what, where);
    const T old = value_;
    value_ = change(old);
    explore::end_update(this, bits(value_), order, where);
    return old;
  }

  alignas(kSize) T value_;  ///< The newest value.
};

inline void explored_thread_fence(memory_order order, source_location where = source_location::current()) noexcept {
  explore::fence(order, where);
}
inline void explored_signal_fence(memory_order /*order*/) noexcept {}

class explored_mutex {
 public:
  constexpr explored_mutex() noexcept = default;
  explored_mutex(const explored_mutex&) = delete;
  explored_mutex& operator=(const explored_mutex&) = delete;
  void lock() noexcept { explore::lock(this); }
  bool try_lock() noexcept { return explore::try_lock(this); }
  void unlock() noexcept { explore::unlock(this); }

 private:
  [[maybe_unused]] char place_ = 0;
};

}  // namespace std

#define atomic explored_atomic
#define atomic_thread_fence explored_thread_fence
#define atomic_signal_fence explored_signal_fence
#define mutex explored_mutex
