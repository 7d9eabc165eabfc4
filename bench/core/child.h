// Child processes that never outlive the bench, and the memory they share with it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "lrpc/detail/shim/result.h"
#include "placement.h"

namespace lrpc::bench {

/// One child process. Its destructor kills and reaps it; the kernel kills it if the bench dies first. Move-only.
/// Precondition of spawn(): the calling process has one thread, and that thread outlives the child.
class Child {
 public:
  /// Forks. The child pins itself to `seat`, runs `body` and exits with its value. `name` is what ps shows (≤ 15
  /// characters).
  static Result<Child> spawn(std::string_view name, const Seat& seat, const std::function<int()>& body);
  /// As spawn(), but the child leads a new process group: kill() and the destructor end the whole group.
  static Result<Child> spawn_leader(std::string_view name, const Seat& seat, const std::function<int()>& body);

  Child() noexcept = default;
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Waits for the child to end by itself and returns its exit status. Errors: timed_out after `limit` and call_aborted
  /// after an interruption, both of which kill it; peer_gone if a signal has killed it.
  Result<int> wait(std::chrono::milliseconds limit);
  void kill() noexcept;

 private:
  pid_t pid_ = -1;
  bool leads_ = false;
};

/// Sleeps until the process has used no processor time for `quiet` (its pollers have parked), at most for `limit`. It
/// sleeps instead of polling, because the process may need the caller's core to get there.
void wait_until_idle(pid_t pid, std::chrono::microseconds quiet, std::chrono::milliseconds limit) noexcept;

namespace detail {
Result<void*> map_shared(std::size_t size);
void unmap_shared(void* memory, std::size_t size) noexcept;
}  // namespace detail

/// A zeroed T in a shared mapping of its own (a memfd), which children forked later share. T must be valid when all its
/// bytes are zero.
template <class T>
class Shared {
 public:
  static Result<Shared> create() {
    auto memory = detail::map_shared(sizeof(T));
    if (!memory) return memory.error();
    return Shared(static_cast<T*>(*memory));
  }
  T* operator->() const noexcept { return object_.get(); }
  T& operator*() const noexcept { return *object_; }

 private:
  struct Unmap {
    void operator()(T* object) const noexcept { detail::unmap_shared(object, sizeof(T)); }
  };
  explicit Shared(T* object) noexcept : object_(object) {}
  std::unique_ptr<T, Unmap> object_;
};

/// Carries an error from a child process to the bench; lies in Shared. Later errors do not replace the first one.
class SharedError {
 public:
  void set(const Error& error) noexcept;
  [[nodiscard]] Status status() const;

 private:
  std::atomic<bool> is_set_;
  Errc code_;
  char text_[512];
};

/// Forks a client process that runs `body`, so that the bench itself stays single-threaded. Blocks until it has ended.
/// Errors: those of Child, what `body` returns, and call_failed if the client exits with a status other than 0.
Status run_client(const Seat& seat, std::chrono::milliseconds limit, const std::function<Status()>& body);

}  // namespace lrpc::bench
