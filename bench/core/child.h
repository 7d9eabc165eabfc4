// Child processes that never outlive the bench, and the memory they share with it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string_view>
#include <utility>

#include "lrpc/detail/shim/result.h"
#include "placement.h"

namespace lrpc::bench {

/// One child process. Its destructor kills and reaps it; the kernel kills it if the bench dies first. Move-only.
/// Precondition of spawn(): the calling process has one thread, and that thread outlives the child.
class Child {
 public:
  /// Forks; the child takes `seat`, runs `body` and exits with its value. `name` is what ps shows (≤ 15 characters).
  static Result<Child> spawn(std::string_view name, const Seat& seat, const std::function<int()>& body);
  /// The same, as the leader of a process group of its own: kill() and the destructor end the whole group.
  static Result<Child> spawn_leader(std::string_view name, const Seat& seat, const std::function<int()>& body);

  Child() noexcept = default;
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Waits for the child to end by itself. Its exit status if it does so in time; else it is killed and the error says
  /// so.
  Result<int> wait(std::chrono::milliseconds limit);
  void kill() noexcept;

 private:
  pid_t pid_ = -1;
  bool leads_ = false;
};

/// Sleeps until the process has used no processor time for `quiet`, at most for `limit`: then its pollers have parked.
/// Sleeps, because they may need the caller's core to get there.
void wait_until_idle(pid_t pid, std::chrono::microseconds quiet, std::chrono::milliseconds limit) noexcept;

namespace detail {
Result<void*> map_shared(std::size_t size);
void unmap_shared(void* memory, std::size_t size) noexcept;
}  // namespace detail

/// A zeroed T on pages of its own (a memfd) that children forked later share. T must make sense when all its bytes are
/// zero.
template <class T>
class Shared {
 public:
  static Result<Shared> create() {
    auto memory = detail::map_shared(sizeof(T));
    if (!memory) return memory.error();
    return Shared(static_cast<T*>(*memory));
  }
  Shared(Shared&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Shared& operator=(Shared&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() {
    if (object_ != nullptr) detail::unmap_shared(object_, sizeof(T));
  }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }

 private:
  explicit Shared(T* object) noexcept : object_(object) {}
  T* object_ = nullptr;
};

/// What a child process tells the bench of an error; lies in Shared. The first one stays.
class SharedError {
 public:
  void set(const Error& error) noexcept;
  [[nodiscard]] Status status() const;

 private:
  std::atomic<bool> is_set_;
  Errc code_;
  char text_[512];
};

/// Runs `body` in a client process of its own, so that this one keeps the threads that it has; blocks until it is done.
/// Errors: those of Child, what `body` returns, and call_failed if it exits with another status than 0.
Status run_client(const Seat& seat, std::chrono::milliseconds limit, const std::function<Status()>& body);

}  // namespace lrpc::bench
