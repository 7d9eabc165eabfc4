// The state of a run of the search: its threads, what each of them may see, and the choices so far. search.cpp chooses
// and switches threads; memory.cpp implements loads, stores and fences (explore.h).
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "explore.h"

namespace explore {

/// The number of a value in its location's order, or of a step of a thread. Of this type SSE2 compares eight at once.
using Number = std::int16_t;

/// What may still be seen: for each location the number of the oldest value, and how far each thread's steps are known.
/// Views are copied and joined at each step of each run, so they lie in one piece.
struct View {
  static constexpr std::size_t kMostLocations = 128;
  std::array<Number, kMostLocations> oldest{};
  std::array<Number, kMostThreads> clock{};

  void raise(std::size_t location, Number to) { oldest[location] = std::max(oldest[location], to); }
  void join(const View& other) {
    for (std::size_t i = 0; i < oldest.size(); ++i) oldest[i] = std::max(oldest[i], other.oldest[i]);
    for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other.clock[i]);
  }
};

struct Value {
  std::uint64_t bits = 0;
  View view;  ///< What a thread knows after it has acquired the value.
};
struct Location {
  std::size_t number = 0;
  std::vector<Value> values;  ///< In the order of modification.

  [[nodiscard]] Number last() const { return static_cast<Number>(values.size() - 1); }
};

struct Mutex {
  bool held = false;
  View view;
};

struct PlainUse {
  std::size_t writer = kMostThreads;
  Number written = 0;
  std::array<Number, kMostThreads> read{};
};

enum class State : std::uint8_t { runnable, lets_others, waits, sleeps, finished };

struct Thread {
  static constexpr std::size_t kStackBytes = 256 * 1024;
  ucontext_t context{};
  std::unique_ptr<std::byte[]> stack = std::make_unique<std::byte[]>(kStackBytes);
  State state = State::runnable;
  View view;
  View acquired;  ///< Joined from values that it has loaded without acquire; an acquire fence joins it to `view`.
  View released;  ///< `view` at its last release fence.
  std::function<bool()> until;     ///< While it waits.
  std::vector<const void*> words;  ///< While it sleeps.
  std::uint32_t kinds = 0;
  std::vector<std::byte> locals;
};

struct Step {
  std::size_t thread;
  const char* what;
  Where where;
  std::uint64_t value;
  bool departure;
};

struct Choice {
  unsigned chosen;
  unsigned count;
};

/// The search: the choices of the current run, and its state.
class Search {
 public:
  Outcome go(const Program& program, const Bounds& bounds);

  [[nodiscard]] bool running() const { return running_; }
  [[nodiscard]] Thread& self() { return threads_[current_]; }
  [[nodiscard]] std::size_t current() const { return current_; }
  [[nodiscard]] View& sequential() { return sequential_; }
  [[nodiscard]] std::vector<Thread>& threads() { return threads_; }
  [[nodiscard]] Mutex& mutex(const void* at) { return mutexes_[at]; }
  [[nodiscard]] PlainUse& plain(const void* at) { return plains_[at]; }
  void forget(const void* at) { places_[at].run = 0; }
  void add_local(void* at, std::size_t size) { locals_.push_back({static_cast<std::byte*>(at), size}); }

  /// Returns 0 for the plain choice; other numbers are departures.
  unsigned choose(unsigned count);
  /// Call it before an access of a shared object: another thread may run first.
  void step();
  /// Runs another thread. The running thread's state says why it does not continue.
  void run_another();
  void note(const char* what, const Where& where, std::uint64_t value) {
    trace_.push_back({current_, what, where, value, std::exchange(departed_, false)});
  }
  /// Something has changed: threads that wait for others may check again.
  void changed() {
    for (Thread& thread : threads_)
      if (thread.state == State::lets_others) thread.state = State::runnable;
  }
  Location& at(const void* address, std::uint64_t newest);
  /// Records that the running thread uses it. True: more than one thread uses it, and one of them writes.
  bool shared(const void* address, bool writes);
  std::memory_order asked(std::memory_order order, const char* what, const Where& where);
  bool asked_by_name(const char* name);
  void fence(Thread& thread);
  [[noreturn]] void fail(const std::string& what);
  void fail_at_end(const std::string& what) {
    if (outcome_.failure.empty()) outcome_.failure = what;
  }

 private:
  void run_once(const Program& program);
  [[nodiscard]] bool next_choices();
  void switch_to(std::size_t thread);
  [[nodiscard]] bool can_run(const Thread& thread) const {
    return thread.state == State::runnable || (thread.state == State::waits && thread.until());
  }
  void save_locals(Thread& thread) const;
  void load_locals(const Thread& thread) const;
  static void enter();

  struct Local {
    std::byte* at;
    std::size_t size;
  };
  /// An address. Its users are those of all runs; its location is that of `run` (0: none).
  struct Place {
    unsigned users = 0;
    unsigned writers = 0;
    std::uint64_t run = 0;
    std::size_t location = 0;
  };

  Bounds bounds_;
  Outcome outcome_;
  std::vector<Choice> choices_;
  std::size_t next_choice_ = 0;
  std::unordered_map<const void*, Place> places_;
  bool more_is_shared_ = false;
  std::vector<Local> locals_;
  std::map<std::tuple<const char*, unsigned, unsigned, const char*, int>, bool> weakened_;

  bool running_ = false;
  ucontext_t outside_{};
  const Program* program_ = nullptr;
  std::vector<Thread> threads_;
  std::size_t current_ = 0;
  std::uint64_t steps_ = 0;
  bool departed_ = false;
  std::vector<Step> trace_;
  std::array<Location, View::kMostLocations> locations_;
  std::size_t used_locations_ = 0;
  View sequential_;  ///< What sequentially consistent operations have seen and stored.
  std::unordered_map<const void*, Mutex> mutexes_;
  std::unordered_map<const void*, PlainUse> plains_;
};

extern Search search;

/// "file:line".
[[nodiscard]] std::string place_of(const Where& where);

}  // namespace explore
