#include "explore.h"

#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace explore {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;
/// A run that takes more does not end.
constexpr std::uint64_t kMostSteps = 20'000;

/// What may still be seen: of each location, the number of the oldest value; and how far each thread is known.
struct View {
  std::vector<std::uint32_t> oldest;
  std::array<std::uint32_t, kMostThreads> clock{};

  [[nodiscard]] std::uint32_t of(std::size_t location) const { return location < oldest.size() ? oldest[location] : 0; }
  void raise(std::size_t location, std::uint32_t to) {
    if (location >= oldest.size()) oldest.resize(location + 1);
    oldest[location] = std::max(oldest[location], to);
  }
  void join(const View& other) {
    for (std::size_t i = 0; i < other.oldest.size(); ++i) raise(i, other.oldest[i]);
    for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other.clock[i]);
  }
};

struct Value {
  std::uint64_t bits = 0;
  View view;  ///< What who acquires it knows then.
};
struct Location {
  std::size_t number = 0;
  std::vector<Value> values;  ///< In the order of modification.
};

struct Mutex {
  bool held = false;
  View view;
};

struct PlainUse {
  std::size_t writer = kMostThreads;
  std::uint32_t written = 0;
  std::array<std::uint32_t, kMostThreads> read{};
};

enum class State : std::uint8_t { runnable, lets_others, waits, sleeps, finished };

struct Thread {
  ucontext_t context{};
  std::unique_ptr<std::byte[]> stack = std::make_unique<std::byte[]>(kStackBytes);
  State state = State::runnable;
  View view;
  View acquired;                   ///< Of values that it has seen without order: an acquire fence joins it.
  View released;                   ///< At its last release fence.
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

bool acquires(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}
bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}
const char* name_of(std::memory_order order) {
  switch (order) {
    case std::memory_order_acquire: return "acquire";
    case std::memory_order_release: return "release";
    case std::memory_order_acq_rel: return "acq_rel";
    case std::memory_order_seq_cst: return "seq_cst";
    default: return "relaxed";
  }
}
std::string place_of(const Where& where) {
  const std::string file = where.file_name();
  return file.substr(file.rfind('/') + 1) + ':' + std::to_string(where.line());
}

/// By what it says, not by where that stands: "put: lease->in_call.store(0, std::memory_order_release);".
std::string name_of(const Where& where, const char* what, std::memory_order order) {
  std::string function = where.function_name();
  function.resize(std::min(function.find('('), function.size()));
  function.erase(0, function.find_last_of(": ") + 1);
  // Named from where the compiler stood, somewhere within the sources.
  std::string path = where.file_name();
  while (path.starts_with("../")) path.erase(0, 3);
  std::ifstream file(path.starts_with('/') ? path : LRPC_SOURCES "/" + path);
  std::string line;
  for (unsigned i = 0; i < where.line(); ++i) std::getline(file, line);
  line.erase(0, line.find_first_not_of(' '));
  line.resize(std::min(line.find("  //"), line.size()));
  return function + ": " + line + " [" + what + ' ' + name_of(order) + ']';
}

/// The search: the choices of the run that goes on, and its state.
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
  void forget(const void* at) { places_.erase(at); }
  void add_local(void* at, std::size_t size) { locals_.push_back({static_cast<std::byte*>(at), size}); }

  /// 0: the plain way to go on; others are departures.
  unsigned choose(unsigned count);
  /// Before an access of what threads share: perhaps another one runs first.
  void step();
  /// The running thread's state says why it does not go on.
  void run_another();
  void note(const char* what, const Where& where, std::uint64_t value) {
    trace_.push_back({current_, what, where, value, std::exchange(departed_, false)});
  }
  /// Something has changed: who lets others go first may look again.
  void changed() {
    for (Thread& thread : threads_)
      if (thread.state == State::lets_others) thread.state = State::runnable;
  }
  Location& at(const void* place, std::uint64_t newest);
  /// Notes who uses it. True: more than one thread, and one of them writes.
  bool shared(const void* place, bool writes);
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
  struct Users {
    unsigned any = 0;
    unsigned writers = 0;
  };

  Bounds bounds_;
  Outcome outcome_;
  std::vector<Choice> choices_;
  std::size_t next_choice_ = 0;
  std::map<const void*, Users> users_;
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
  std::unordered_map<const void*, std::size_t> places_;
  std::vector<Location> locations_;
  std::size_t used_locations_ = 0;
  View sequential_;  ///< What sequentially consistent operations have seen and done.
  std::unordered_map<const void*, Mutex> mutexes_;
  std::unordered_map<const void*, PlainUse> plains_;
};

Search search;

// ---- Choices ----

unsigned Search::choose(unsigned count) {
  if (count <= 1) return 0;
  if (next_choice_ == choices_.size()) choices_.push_back({0, count});
  const Choice& choice = choices_[next_choice_++];
  if (choice.count != count) fail("the program does not do the same each time: it cannot be searched");
  if (choice.chosen != 0) departed_ = true;
  return choice.chosen;
}

/// The next sequence of choices, depth first. False: there is none within the bound.
bool Search::next_choices() {
  auto departures = static_cast<unsigned>(std::ranges::count_if(choices_, [](Choice c) { return c.chosen != 0; }));
  while (!choices_.empty()) {
    Choice& last = choices_.back();
    const unsigned before = departures - (last.chosen != 0 ? 1 : 0);
    if (last.chosen + 1 < last.count && before + 1 <= bounds_.departures) {
      ++last.chosen;
      return true;
    }
    departures = before;
    choices_.pop_back();
  }
  return false;
}

Outcome Search::go(const Program& program, const Bounds& bounds) {
  bounds_ = bounds;
  outcome_ = {};
  choices_.clear();
  users_.clear();
  weakened_.clear();
  program_ = &program;
  threads_.resize(program.threads.size());
  while (outcome_.runs < bounds_.runs) {
    run_once(program);
    ++outcome_.runs;
    if (!outcome_.failure.empty()) break;
    if (std::exchange(more_is_shared_, false)) {
      choices_.clear();  // choices that were none before
    } else if (!next_choices()) {
      outcome_.complete = true;
      break;
    }
  }
  return outcome_;
}

// ---- A run ----

void Search::enter() {
  search.program_->threads[search.current_]();
  search.self().state = State::finished;
  search.changed();
  search.run_another();
}

void Search::run_once(const Program& program) {
  next_choice_ = 0;
  steps_ = 0;
  departed_ = false;
  trace_.clear();
  places_.clear();
  used_locations_ = 0;
  sequential_ = {};
  mutexes_.clear();
  plains_.clear();
  program.set_up();
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    Thread& thread = threads_[i];
    thread.state = State::runnable;
    thread.view = thread.acquired = thread.released = {};
    thread.view.clock[i] = 1;
    save_locals(thread);
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = kStackBytes;
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, &Search::enter, 0);
  }
  running_ = true;
  current_ = 0;
  load_locals(threads_[0]);
  swapcontext(&outside_, &threads_[0].context);
  running_ = false;
  if (outcome_.failure.empty()) program.at_end();
}

void Search::save_locals(Thread& thread) const {
  thread.locals.clear();
  for (const Local& local : locals_) thread.locals.insert(thread.locals.end(), local.at, local.at + local.size);
}

void Search::load_locals(const Thread& thread) const {
  const std::byte* from = thread.locals.data();
  for (const Local& local : locals_) {
    std::memcpy(local.at, from, local.size);
    from += local.size;
  }
}

void Search::switch_to(std::size_t next) {
  if (next == current_) return;
  Thread& from = self();
  save_locals(from);
  current_ = next;
  load_locals(self());
  swapcontext(&from.context, &self().context);
}

void Search::step() {
  if (++steps_ > kMostSteps) fail("this does not end");
  std::array<std::size_t, kMostThreads> next{current_};
  unsigned count = 1;
  for (std::size_t i = 1; i < threads_.size(); ++i) {
    const std::size_t other = (current_ + i) % threads_.size();
    if (can_run(threads_[other])) next[count++] = other;
  }
  switch_to(next[choose(count)]);
  self().state = State::runnable;
}

void Search::run_another() {
  if (++steps_ > kMostSteps) fail("this does not end");
  std::array<std::size_t, kMostThreads> next{};
  unsigned count = 0;
  const auto gather = [&] {
    for (std::size_t i = 1; i <= threads_.size(); ++i) {
      const std::size_t other = (current_ + i) % threads_.size();
      if (can_run(threads_[other])) next[count++] = other;
    }
  };
  gather();
  if (count == 0) {
    changed();  // nobody else does anything: those that let others go first look again
    gather();
  }
  if (count == 0) {
    const bool all = std::ranges::all_of(threads_, [](const Thread& t) { return t.state == State::finished; });
    if (!all) fail("all that have not ended sleep or wait");
    setcontext(&outside_);
  }
  switch_to(next[choose(count)]);
  self().state = State::runnable;
}

void Search::fail(const std::string& what) {
  std::string text = what + "\n";
  for (const Step& step : trace_) {
    text += "  " + std::string(step.thread * 30, ' ') + (step.departure ? "* " : "  ") + place_of(step.where) + ' ' +
            step.what + ' ';
    char value[20];
    std::snprintf(value, sizeof value, "%llx", static_cast<unsigned long long>(step.value));
    text += value;
    text += '\n';
  }
  outcome_.failure = text;
  setcontext(&outside_);
  __builtin_unreachable();
}

// ---- Memory ----

Location& Search::at(const void* place, std::uint64_t newest) {
  const auto [entry, is_new] = places_.try_emplace(place, used_locations_);
  if (is_new) {
    if (used_locations_ == locations_.size()) locations_.emplace_back();
    Location& location = locations_[used_locations_];
    location.number = used_locations_++;
    location.values.assign(1, {newest, {}});
  }
  return locations_[entry->second];
}

bool Search::shared(const void* place, bool writes) {
  Users& users = users_[place];
  const auto is_shared = [&] { return users.writers != 0 && (users.any & (users.any - 1)) != 0; };
  const bool before = is_shared();
  users.any |= 1U << current_;
  if (writes) users.writers |= 1U << current_;
  if (!before && is_shared()) more_is_shared_ = true;
  return is_shared();
}

std::memory_order Search::asked(std::memory_order order, const char* what, const Where& where) {
  if (order == std::memory_order_relaxed) return order;
  const auto [entry, is_new] = weakened_.try_emplace(
      std::tuple(where.file_name(), where.line(), where.column(), what, static_cast<int>(order)), false);
  if (is_new) {
    const std::string name = name_of(where, what, order);
    outcome_.ordered.insert(name);
    entry->second = bounds_.weakened.contains(name);
  }
  return entry->second ? std::memory_order_relaxed : order;
}

bool Search::asked_by_name(const char* name) {
  outcome_.ordered.insert(name);
  return !bounds_.weakened.contains(name);
}

/// A sequentially consistent one.
void Search::fence(Thread& thread) {
  thread.view.join(thread.acquired);
  thread.view.join(sequential_);
  sequential_.join(thread.view);
  thread.released = thread.view;
  ++thread.view.clock[static_cast<std::size_t>(&thread - threads_.data())];
}

void see(Thread& thread, const Location& location, std::uint32_t number, std::memory_order order) {
  thread.view.raise(location.number, number);
  const View& view = location.values[number].view;
  if (acquires(order)) {
    thread.view.join(view);
  } else {
    thread.acquired.join(view);
  }
}

/// `before`: the view of the value that an update has read, for it goes on with that one's release sequence.
void put(Thread& thread, Location& location, std::uint64_t bits, std::memory_order order, const View* before) {
  const auto number = static_cast<std::uint32_t>(location.values.size());
  thread.view.raise(location.number, number);
  Value value{bits, releases(order) ? thread.view : thread.released};
  value.view.raise(location.number, number);
  if (before != nullptr) value.view.join(*before);
  location.values.push_back(std::move(value));
  if (order == std::memory_order_seq_cst) search.sequential().raise(location.number, number);
  ++thread.view.clock[search.current()];
  search.changed();
}

}  // namespace

Outcome explore(const Program& program, const Bounds& bounds) { return search.go(program, bounds); }

std::uint64_t load(const void* at, std::uint64_t newest, std::memory_order order, const Where& where) {
  if (!search.running()) return newest;
  const bool shared = search.shared(at, false);
  if (shared) search.step();
  order = search.asked(order, "load", where);
  Location& location = search.at(at, newest);
  Thread& self = search.self();
  const auto last = static_cast<std::uint32_t>(location.values.size() - 1);
  std::uint32_t oldest = self.view.of(location.number);
  if (order == std::memory_order_seq_cst) oldest = std::max(oldest, search.sequential().of(location.number));
  const std::uint32_t seen = last - search.choose(last - oldest + 1);
  see(self, location, seen, order);
  if (shared) search.note("load", where, location.values[seen].bits);
  return location.values[seen].bits;
}

void store(const void* at, std::uint64_t newest, std::uint64_t stored, std::memory_order order, const Where& where) {
  if (!search.running()) return;
  const bool shared = search.shared(at, true);
  if (shared) search.step();
  order = search.asked(order, "store", where);
  put(search.self(), search.at(at, newest), stored, order, nullptr);
  if (shared) search.note("store", where, stored);
}

void begin_update(const void* at, std::uint64_t newest, const char* what, const Where& where) {
  if (!search.running()) return;
  if (search.shared(at, true)) search.step();
  const Location& location = search.at(at, newest);
  search.note(what, where, location.values.back().bits);
}

void end_update(const void* at, std::uint64_t stored, std::memory_order order, const Where& where) {
  if (!search.running()) return;
  order = search.asked(order, "update", where);
  Location& location = search.at(at, stored);
  Thread& self = search.self();
  const auto last = static_cast<std::uint32_t>(location.values.size() - 1);
  see(self, location, last, order);
  if (order == std::memory_order_seq_cst) self.view.raise(location.number, search.sequential().of(location.number));
  const View before = location.values[last].view;
  put(self, location, stored, order, &before);
}

void end_look(const void* at, std::memory_order order, const Where& where) {
  if (!search.running()) return;
  order = search.asked(order, "failed update", where);
  Location& location = search.at(at, 0);
  see(search.self(), location, static_cast<std::uint32_t>(location.values.size() - 1), order);
}

void fence(std::memory_order order, const Where& where) {
  if (!search.running()) return;
  search.step();
  order = search.asked(order, "fence", where);
  Thread& self = search.self();
  if (order == std::memory_order_seq_cst) return search.fence(self);
  if (acquires(order)) self.view.join(self.acquired);
  if (releases(order)) self.released = self.view;
  ++self.view.clock[search.current()];
}

void forget(const void* at) {
  if (search.running()) search.forget(at);
}

// ---- Mutexes, sleeps, fences of others ----

void lock(const void* mutex) {
  if (!search.running()) return;
  search.step();
  while (search.mutex(mutex).held) {
    search.self().until = [mutex] { return !search.mutex(mutex).held; };
    search.self().state = State::waits;
    search.run_another();
  }
  search.mutex(mutex).held = true;
  search.self().view.join(search.mutex(mutex).view);
}

bool try_lock(const void* mutex) {
  if (!search.running()) return true;
  search.step();
  if (search.mutex(mutex).held) return false;
  lock(mutex);
  return true;
}

void unlock(const void* mutex) {
  if (!search.running()) return;
  search.mutex(mutex).held = false;
  search.mutex(mutex).view = search.self().view;
  ++search.self().view.clock[search.current()];
  search.changed();
}

bool sleep_on(const std::vector<const void*>& words, std::uint32_t kinds, const std::function<bool()>& is_so) {
  search.step();
  search.fence(search.self());  // the kernel's own, and its lock: sleepers and wakers come one after another
  search.note("sleep?", Where::current(), 0);
  if (!is_so()) return false;
  search.note("sleeps", Where::current(), 0);
  search.self().words = words;
  search.self().kinds = kinds;
  search.self().state = State::sleeps;
  search.run_another();
  return true;
}

int wake(const void* word, std::uint32_t kinds, int most) {
  search.step();
  search.fence(search.self());
  int woken = 0;
  for (Thread& thread : search.threads()) {
    if (woken == most || thread.state != State::sleeps || (thread.kinds & kinds) == 0) continue;
    if (std::ranges::find(thread.words, word) == thread.words.end()) continue;
    thread.state = State::runnable;
    ++woken;
  }
  search.note("wakes", Where::current(), static_cast<std::uint64_t>(woken));
  search.changed();
  return woken;
}

void fence_everybody(const char* name) {
  search.step();
  if (!search.asked_by_name(name)) return;
  search.fence(search.self());
  search.note(name, Where::current(), 0);
  const std::size_t self = search.current();
  for (std::size_t i = 0; i < search.threads().size(); ++i) {
    if (i == self) continue;
    search.step();
    search.fence(search.threads()[i]);
  }
  search.step();
  search.fence(search.self());
}

// ---- For the threads of a program ----

void expect(bool holds, const char* what) {
  if (holds) return;
  if (search.running()) search.fail(what);
  search.fail_at_end(what);
}

void pass() { search.step(); }

void kernel_orders() { search.fence(search.self()); }

void wait_for_others() {
  if (!search.running()) return;
  search.self().state = State::lets_others;
  search.run_another();
}

void wait_until(const std::function<bool()>& is_so) {
  search.step();
  while (!is_so()) {
    search.self().until = is_so;
    search.self().state = State::waits;
    search.run_another();
  }
}

void add_thread_local(void* at, std::size_t size) { search.add_local(at, size); }

void Plain::write(std::uint64_t value, std::source_location where) {
  if (search.running()) {
    PlainUse& use = search.plain(this);
    const View& view = search.self().view;
    bool ordered = use.writer == kMostThreads || view.clock[use.writer] >= use.written;
    for (std::size_t i = 0; i < kMostThreads; ++i) ordered = ordered && view.clock[i] >= use.read[i];
    search.note("writes plain", where, value);
    if (!ordered) search.fail("a plain object is written while another thread may use it: " + place_of(where));
    use.writer = search.current();
    use.written = view.clock[use.writer];
  }
  value_ = value;
}

std::uint64_t Plain::read(std::source_location where) const {
  if (search.running()) {
    PlainUse& use = search.plain(this);
    const View& view = search.self().view;
    search.note("reads plain", where, value_);
    if (use.writer != kMostThreads && view.clock[use.writer] < use.written)
      search.fail("a plain object is read while another thread may write it: " + place_of(where));
    use.read[search.current()] = view.clock[search.current()];
  }
  return value_;
}

}  // namespace explore
