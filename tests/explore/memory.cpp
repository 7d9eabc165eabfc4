// Loads, stores, updates, fences, mutexes and sleeps, in terms of what each thread may see (explore.h).
#include "search.h"

namespace explore {
namespace {

bool acquires(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}
bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}
void see(Thread& thread, const Location& location, Number number, std::memory_order order) {
  thread.view.raise(location.number, number);
  const View& view = location.values[static_cast<std::size_t>(number)].view;
  if (acquires(order)) {
    thread.view.join(view);
  } else {
    thread.acquired.join(view);
  }
}

/// `before`: the view of the value that an update has read; the update continues that value's release sequence.
void put(Thread& thread, Location& location, std::uint64_t bits, std::memory_order order, const View* before) {
  const auto number = static_cast<Number>(location.values.size());
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

std::uint64_t load(const void* at, std::uint64_t newest, std::memory_order order, const Where& where) {
  if (!search.running()) return newest;
  const bool shared = search.shared(at, false);
  if (shared) search.step();
  order = search.asked(order, "load", where);
  Location& location = search.at(at, newest);
  Thread& self = search.self();
  Number oldest = self.view.oldest[location.number];
  if (order == std::memory_order_seq_cst) oldest = std::max(oldest, search.sequential().oldest[location.number]);
  const unsigned older = search.choose(static_cast<unsigned>(location.last() - oldest) + 1);
  const auto seen = static_cast<Number>(location.last() - static_cast<Number>(older));
  see(self, location, seen, order);
  const std::uint64_t bits = location.values[static_cast<std::size_t>(seen)].bits;
  if (shared) search.note("load", where, bits);
  return bits;
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
  see(self, location, location.last(), order);
  if (order == std::memory_order_seq_cst) self.view.raise(location.number, search.sequential().oldest[location.number]);
  const View before = location.values.back().view;
  put(self, location, stored, order, &before);
}

void end_look(const void* at, std::memory_order order, const Where& where) {
  if (!search.running()) return;
  order = search.asked(order, "failed update", where);
  const Location& location = search.at(at, 0);
  see(search.self(), location, location.last(), order);
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
  search.fence(search.self());  // the kernel's own fence and lock: they order sleepers and wakers
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
