// Runs a small program of several threads in every way that the C++ memory model allows, as far as a bound goes.
//
// The threads are contexts of one real thread. Before each access of a shared atomic the next one to run is chosen; and
// each load that is not ordered chooses among all the values that it may see, the newest first. A run is a sequence of
// such choices; the search goes through them depth first, and bounds how often one run departs from the plain one (the
// running thread goes on, a load sees the newest value), for the faults of such code need few departures.
// "Iterative context bounding" (Musuvathi and Qadeer, PLDI 2007), with stale loads counted as departures, too.
//
// The memory is the model of "Repairing sequential consistency in C/C++11" (Lahav and others, PLDI 2017) without what
// loads may see of stores that come later in their own thread's program order, as views: each thread and each stored
// value knows, for every location, the oldest value that may still be seen. Stores of one location are ordered as they
// are executed. What these two leave out: load buffering, and stores of two locations that two threads order in
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

/// The program: `set_up` and `at_end` run alone. All of it is executed again for each run: what it touches must be the
/// same each time, at the same addresses (static storage).
struct Program {
  std::function<void()> set_up;
  std::vector<std::function<void()>> threads;  ///< At most kMostThreads.
  std::function<void()> at_end = [] {};
};
inline constexpr std::size_t kMostThreads = 4;

struct Bounds {
  unsigned departures = 2;              ///< In one run.
  std::uint64_t runs = 3'000'000;       ///< Then the search ends without having been complete.
  std::set<std::string> weakened = {};  ///< What the code asks for and does not get, of Outcome::ordered.
};

struct Outcome {
  std::string failure;  ///< What went wrong, and how it came to that; empty: nothing.
  std::uint64_t runs = 0;
  bool complete = false;  ///< No run within the bound was left out.
  /// Every place that asked for more than a relaxed order: function, the line's text, and which operation of that line.
  std::set<std::string> ordered;
};

/// Searches until something goes wrong or the bounds are reached. Not from two threads at a time.
[[nodiscard]] Outcome explore(const Program& program, const Bounds& bounds);

// ---- For the threads of a program ----

/// Ends the run as failed where `holds` is false.
void expect(bool holds, const char* what);
/// Others may run here.
void pass();
/// Nothing more to do before another thread has done something.
void wait_for_others();
/// Waits until `is_so` of plain memory; others run meanwhile. For what the code under test leaves to the kernel.
void wait_until(const std::function<bool()>& is_so);
/// What a system call orders: all that was done before one is seen after the next.
void kernel_orders();
/// Bytes that each thread has of its own (thread_local in the code under test). Before explore().
void add_thread_local(void* at, std::size_t size);

/// A plain object: two accesses of which one writes, and which nothing orders, fail the run.
class Plain {
 public:
  void write(std::uint64_t value, std::source_location where = std::source_location::current());
  [[nodiscard]] std::uint64_t read(std::source_location where = std::source_location::current()) const;

 private:
  std::uint64_t value_ = 0;
};

// ---- For the stand-ins of the standard library and of the kernel ----

using Where = std::source_location;
/// Of the object at `at`, whose newest value is `newest`. Returns what is seen.
[[nodiscard]] std::uint64_t load(const void* at, std::uint64_t newest, std::memory_order order, const Where& where);
/// Before the object is overwritten: `newest` becomes `stored`.
void store(const void* at, std::uint64_t newest, std::uint64_t stored, std::memory_order order, const Where& where);
/// The same for a read-modify-write: begin, then the newest value may be looked at, then end.
void begin_update(const void* at, std::uint64_t newest, const char* what, const Where& where);
void end_update(const void* at, std::uint64_t stored, std::memory_order order, const Where& where);
/// It only looked: a comparison that failed.
void end_look(const void* at, std::memory_order order, const Where& where);
void fence(std::memory_order order, const Where& where);
/// An object begins its life here: nothing is known of what was there before.
void forget(const void* at);

void lock(const void* mutex);
[[nodiscard]] bool try_lock(const void* mutex);
void unlock(const void* mutex);

/// futex(2): sleeps if `is_so` (of newest values), until a wake() of that word and kind (a set of bits).
bool sleep_on(const std::vector<const void*>& words, std::uint32_t kinds, const std::function<bool()>& is_so);
/// Returns how many were woken.
int wake(const void* word, std::uint32_t kinds, int most);
/// membarrier(2): every thread has passed a fence when it returns, each at a moment of its own. `name`: in
/// Outcome::ordered.
void fence_everybody(const char* name);

}  // namespace explore
