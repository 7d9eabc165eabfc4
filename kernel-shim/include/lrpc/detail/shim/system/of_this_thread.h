// One object per thread, in a process that may run out of memory.
#pragma once

#include <pthread.h>

#include <memory>
#include <new>

namespace lrpc::shim {

/// The calling thread's T, which is destroyed with the thread. It uses a key (pthread_key_create(3)): the C library
/// needs memory to register a thread_local's destructor, and without memory ends the process.
template <class T>
class OfThisThread {
 public:
  /// Null: none has been made yet.
  [[nodiscard]] static T* if_made() noexcept { return mine_; }
  /// Made by the first call. Throws std::bad_alloc.
  [[nodiscard]] static T& get() {
    if (mine_ != nullptr) return *mine_;
    static pthread_key_t key;
    static const bool have_key = pthread_key_create(&key, &drop) == 0;
    auto made = std::make_unique<T>();
    if (!have_key || pthread_setspecific(key, made.get()) != 0) throw std::bad_alloc();
    return *(mine_ = made.release());
  }

 private:
  static void drop(void* mine) noexcept {
    mine_ = nullptr;
    delete static_cast<T*>(mine);
  }

  static inline constinit thread_local T* mine_ = nullptr;
};

}  // namespace lrpc::shim
