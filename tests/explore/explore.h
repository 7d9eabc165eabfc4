// Runs a small multi-threaded program in every way that the C++ memory model allows, up to a bound.
//
// The threads are contexts of one real thread. Before each access of a shared atomic, the search chooses the thread
// that runs next. Each load chooses among all values that it may see, the newest first. A run is a sequence of such
// choices; the search tries them depth first. A departure is a choice that differs from the plain one: the running
// thread continues, a load sees the newest value. The search bounds the departures in one run, because faults in such
// code need few. See "Iterative context bounding" (Musuvathi and Qadeer, PLDI 2007); here stale loads count as
// departures, too.
//
// The memory follows the model of "Repairing sequential consistency in C/C++11" (Lahav and others, PLDI 2017), as
// views: each thread and each stored value knows, for every location, the oldest value that may still be seen. The
// stores of one location are ordered as they are executed. Two things are left out: load buffering (a load that sees a
// store which comes later in its own thread's program order), and stores of two locations that two threads order in
// opposite ways.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <source_location>
#include <string>
#include <vector>

namespace explore {

/// The program. `set_up` and `at_end` run without other threads. Each run executes all of it again, so the objects that
/// it uses must be the same each time, at the same addresses (static storage).
struct Program {
  std::function<void()> set_up;
  std::vector<std::function<void()>> threads;  ///< At most kMostThreads.
  std::function<void()> at_end = [] {};
};
inline constexpr std::size_t kMostThreads = 4;

struct Bounds {
  unsigned departures = 2;              ///< In one run.
  std::uint64_t runs = 3'000'000;       ///< After these the search ends incomplete.
  std::set<std::string> weakened = {};  ///< Of Outcome::ordered: treated as relaxed; a membarrier(2) is left out.
};

struct Outcome {
  std::string failure;  ///< What went wrong, and the steps of that run. Empty: nothing.
  std::uint64_t runs = 0;
  bool complete = false;  ///< No run within the bound was left out.
  /// Each place that asks for more than relaxed order: function, text of the line, and which operation of that line.
  std::set<std::string> ordered;
};

/// Searches until something goes wrong or a bound is reached. Call it on one thread at a time.
[[nodiscard]] Outcome explore(const Program& program, const Bounds& bounds);

// ---- For the threads of a program ----

/// Fails the run if `holds` is false.
void expect(bool holds, const char* what);
/// Other threads may run here.
void pass();
/// This thread does nothing more before another thread has done something.
void wait_for_others();
/// Waits until `is_so` of plain memory; other threads run meanwhile. For conditions that the code under test leaves to
/// the kernel.
void wait_until(const std::function<bool()>& is_so);
/// Orders as a system call does: what was done before one such call is seen after the next.
void kernel_orders();
/// Declares bytes that each thread has a copy of (thread_local in the code under test). Call it before explore().
void add_thread_local(void* at, std::size_t size);

/// A plain object. Two unordered accesses, of which one writes, fail the run.
class Plain {
 public:
  void write(std::uint64_t value, std::source_location where = std::source_location::current());
  [[nodiscard]] std::uint64_t read(std::source_location where = std::source_location::current()) const;

 private:
  std::uint64_t value_ = 0;
};

// ---- For the replacements of the standard library and of the kernel ----

using Where = std::source_location;
/// A load of the object at `at`, whose newest value is `newest`. Returns the value that is seen.
[[nodiscard]] std::uint64_t load(const void* at, std::uint64_t newest, std::memory_order order, const Where& where);
/// Call it before the object is overwritten: `newest` becomes `stored`.
void store(const void* at, std::uint64_t newest, std::uint64_t stored, std::memory_order order, const Where& where);
/// The same for a read-modify-write: call begin_update(), read the newest value, then call end_update().
void begin_update(const void* at, std::uint64_t newest, const char* what, const Where& where);
void end_update(const void* at, std::uint64_t stored, std::memory_order order, const Where& where);
/// Ends an update that stored nothing: a failed comparison.
void end_look(const void* at, std::memory_order order, const Where& where);
void fence(std::memory_order order, const Where& where);
/// A new object begins here: forgets what was at this address before.
void forget(const void* at);

void lock(const void* mutex);
[[nodiscard]] bool try_lock(const void* mutex);
void unlock(const void* mutex);

/// futex(2): sleeps if `is_so` (of newest values), until a wake() of that word and kind (a set of bits).
bool sleep_on(const std::vector<const void*>& words, std::uint32_t kinds, const std::function<bool()>& is_so);
/// Returns how many were woken.
int wake(const void* word, std::uint32_t kinds, int most);
/// membarrier(2): before it returns, every thread passes a fence, each at its own time. `name`: in Outcome::ordered.
void fence_everybody(const char* name);

}  // namespace explore
