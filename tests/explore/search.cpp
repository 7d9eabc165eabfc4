#include "search.h"

#include <cstdio>
#include <cstring>
#include <fstream>

namespace explore {

Search search;

namespace {

/// A run with more steps is taken to be endless.
constexpr std::uint64_t kMostSteps = 20'000;

const char* name_of(std::memory_order order) {
  switch (order) {
    case std::memory_order_acquire: return "acquire";
    case std::memory_order_release: return "release";
    case std::memory_order_acq_rel: return "acq_rel";
    case std::memory_order_seq_cst: return "seq_cst";
    default: return "relaxed";
  }
}
/// Names an operation by the text of its line, not by its number: "put: lease->in_call.store(0,
/// std::memory_order_release);".
std::string name_of(const Where& where, const char* what, std::memory_order order) {
  std::string function = where.function_name();
  function.resize(std::min(function.find('('), function.size()));
  function.erase(0, function.find_last_of(": ") + 1);
  // The path is relative to the compiler's working directory, somewhere within the sources.
  std::string path = where.file_name();
  while (path.starts_with("../")) path.erase(0, 3);
  std::ifstream file(path.starts_with('/') ? path : LRPC_SOURCES "/" + path);
  std::string line;
  for (unsigned i = 0; i < where.line(); ++i) std::getline(file, line);
  line.erase(0, line.find_first_not_of(' '));
  line.resize(std::min(line.find("  //"), line.size()));
  return function + ": " + line + " [" + what + ' ' + name_of(order) + ']';
}

}  // namespace

std::string place_of(const Where& where) {
  const std::string file = where.file_name();
  return file.substr(file.rfind('/') + 1) + ':' + std::to_string(where.line());
}

Outcome explore(const Program& program, const Bounds& bounds) { return search.go(program, bounds); }

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
  places_.clear();
  weakened_.clear();
  program_ = &program;
  threads_.resize(program.threads.size());
  while (outcome_.runs < bounds_.runs) {
    run_once(program);
    ++outcome_.runs;
    if (!outcome_.failure.empty()) break;
    if (std::exchange(more_is_shared_, false)) {
      choices_.clear();  // accesses that offered no choice before offer one now
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
    thread.context.uc_stack.ss_size = Thread::kStackBytes;
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
    changed();  // nobody else can run: threads that wait for others check again
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

Location& Search::at(const void* address, std::uint64_t newest) {
  Place& place = places_[address];
  if (place.run != outcome_.runs + 1) {
    if (used_locations_ == locations_.size()) fail("too many locations");
    place.run = outcome_.runs + 1;
    place.location = used_locations_++;
    locations_[place.location].number = place.location;
    locations_[place.location].values.assign(1, {newest, {}});
  }
  return locations_[place.location];
}

bool Search::shared(const void* address, bool writes) {
  Place& place = places_[address];
  const auto is_shared = [&] { return place.writers != 0 && (place.users & (place.users - 1)) != 0; };
  const bool before = is_shared();
  place.users |= 1U << current_;
  if (writes) place.writers |= 1U << current_;
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

/// A sequentially consistent fence.
void Search::fence(Thread& thread) {
  thread.view.join(thread.acquired);
  thread.view.join(sequential_);
  sequential_.join(thread.view);
  thread.released = thread.view;
  ++thread.view.clock[static_cast<std::size_t>(&thread - threads_.data())];
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

}  // namespace explore
