#include "allocator.h"

#include <algorithm>
#include <set>
#include <utility>

namespace lrpc::nameserver {
namespace {

/// The most calls per tick that are believed of a server.
constexpr std::uint64_t kMostCallsPerTick = 10'000'000;
/// The least processor time that a server needs for a call.
constexpr std::chrono::nanoseconds kLeastCallTime{20};
/// A call through the handoff gate takes so many times as long as with a poller. It counts as so many calls, because
/// what counts is how many the domain would get with a poller.
constexpr std::uint64_t kHandoffWeight = 8;
/// How many processors must be idle for a new poller: one, less some noise.
constexpr double kIdleForPoller = 0.75;
/// By how much more threads than processors must want to run to count as pressure: by more than noise.
constexpr double kPressure = 0.5;
constexpr std::size_t kLoadsKept = 4;
/// A domain without a poller displaces one that has it if it is more than so many times as active.
constexpr double kMuchMoreActive = 2.0;
/// How many ticks a domain must wait after its poller was withdrawn as useless: doubling, from the first to the last.
constexpr std::uint32_t kFirstBar = 10;
constexpr std::uint32_t kLastBar = 160;
/// Active ticks with a poller after which its earlier failures are forgotten.
constexpr std::uint32_t kForgetAfter = 40;

/// The increase of an untrusted counter; 0 if it went down, which is a lie or a restart.
std::uint64_t increment(std::uint64_t before, std::uint64_t now) noexcept {
  return now > before ? std::min(now - before, kMostCallsPerTick) : 0;
}

}  // namespace

void Allocator::add(DomainId id, uid_t user) { domains_[id] = {.user = user, .last = {}, .granted = {}}; }

void Allocator::remove(DomainId id) {
  if (const auto found = domains_.find(id); found != domains_.end()) {
    if (found->second.granted.value_or(false)) loads_.clear();
    domains_.erase(found);
  }
}

std::optional<std::uint32_t> Allocator::ruling(DomainId id) const {
  const auto found = domains_.find(id);
  if (found == domains_.end() || !found->second.granted) return std::nullopt;
  return *found->second.granted ? 1 : 0;
}

std::uint32_t Allocator::granted() const noexcept {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(domains_, [](const auto& one) { return one.second.granted.value_or(false); }));
}

bool Allocator::contended() const noexcept {
  const auto active = std::ranges::count_if(domains_, [](const auto& one) {
    return one.second.active || (one.second.seen && one.second.score >= 1 && one.second.quiet_ticks < kTicksToLose);
  });
  return static_cast<std::uint32_t>(active) > most();
}

void Allocator::begin(std::span<const Look> looks) {
  for (auto& [id, domain] : domains_) domain = {.user = domain.user, .last = {}, .granted = {}};
  for (const Look& look : looks) {
    if (const auto found = domains_.find(look.id); found != domains_.end()) {
      found->second.last = look;
      found->second.seen = true;
    }
  }
  loads_.clear();
  quiet_ticks_ = 0;
}

void Allocator::tick(std::span<const Look> looks, const MachineLoad& load) {
  bool any_active = false;
  for (const Look& look : looks) {
    const auto found = domains_.find(look.id);
    if (found == domains_.end()) continue;
    take(found->second, look);
    any_active = any_active || found->second.active;
  }
  quiet_ticks_ = any_active ? 0 : quiet_ticks_ + 1;
  note_load(load);
  count_users();
  withdraw_useless();
  if (loads_.size() < kTicksToGain) return;  // the load does not show the last change yet
  rule_over_newcomers();
  relieve_pressure();
  grant_to_the_most_active();
  displace();
}

void Allocator::take(Domain& domain, const Look& look) {
  const Look before = std::exchange(domain.last, look);
  domain.wants = look.counters.wants_poller;
  domain.polling = look.counters.polling;
  if (domain.barred_ticks > 0) --domain.barred_ticks;
  if (!std::exchange(domain.seen, true)) return;

  const shim::CountersCopy& then = before.counters;
  const shim::CountersCopy& now = look.counters;
  const std::uint64_t hits = increment(then.hits, now.hits);
  const std::uint64_t hot = increment(then.hot_calls, now.hot_calls);
  const std::uint64_t misses = increment(then.misses, now.misses);
  std::uint64_t calls = hits + kHandoffWeight * hot;
  if (look.processor_time && before.processor_time) {
    const auto used = std::max(*look.processor_time - *before.processor_time, std::chrono::nanoseconds(0));
    calls = std::min(calls, static_cast<std::uint64_t>(used / kLeastCallTime));
  }
  domain.active = calls > 0;
  domain.active_ticks = domain.active ? domain.active_ticks + 1 : 0;
  domain.quiet_ticks = domain.active ? 0 : domain.quiet_ticks + 1;
  if (!domain.active || !domain.wants) domain.challenge = 0;
  domain.score = domain.score / 2 + static_cast<double>(calls) / 2;

  const bool bad = now.evictions > then.evictions || misses > hits;
  if (bad && domain.granted.value_or(false)) {
    ++domain.bad_ticks;
  } else if (domain.bad_ticks > 0) {
    --domain.bad_ticks;
  } else if (domain.granted.value_or(false) && domain.active_ticks > kForgetAfter) {
    domain.next_bar = 0;
  }
}

void Allocator::note_load(const MachineLoad& load) {
  processors_ = load.processors;
  if (loads_.size() == kLoadsKept) loads_.erase(loads_.begin());
  loads_.push_back(load);
  idle_ = running_ = 0;
  for (const MachineLoad& one : loads_) {
    idle_ += one.idle / static_cast<double>(loads_.size());
    running_ += one.running / static_cast<double>(loads_.size());
  }
}

/// Once a tick: done for each domain, it would take quadratic time.
void Allocator::count_users() {
  held_by_.clear();
  std::set<uid_t> active;
  for (const auto& [id, domain] : domains_) {
    if (domain.granted.value_or(false)) ++held_by_[domain.user];
    if (domain.active) active.insert(domain.user);
  }
  const auto count = static_cast<std::uint32_t>(std::max<std::size_t>(active.size(), 1));
  share_ = (most() + count - 1) / count;
}

void Allocator::change(Domain& domain, bool granted) {
  // A poller more or less changes the load: measure it anew.
  if (domain.granted.value_or(domain.polling) != granted) loads_.clear();
  if (domain.granted.value_or(false) != granted) held_by_[domain.user] += granted ? 1U : -1U;
  domain.granted = granted;
  domain.challenge = 0;
  domain.bad_ticks = 0;
}

void Allocator::withdraw_useless() {
  for (auto& [id, domain] : domains_) {
    const bool useless = domain.bad_ticks >= kTicksToLose;
    if (!domain.granted.value_or(false) || (!useless && domain.quiet_ticks < kTicksToLose)) continue;
    if (useless) domain.barred_ticks = domain.next_bar = std::clamp(domain.next_bar * 2, kFirstBar, kLastBar);
    change(domain, false);
  }
}

template <class Chosen>
std::vector<Allocator::Domain*> Allocator::most_active_first(Chosen chosen) {
  std::vector<Domain*> found;
  for (auto& [id, domain] : domains_)
    if (chosen(domain)) found.push_back(&domain);
  std::ranges::stable_sort(found, std::ranges::greater(), &Domain::score);
  return found;
}

/// Makes the first ruling on new domains. Those that poll by their own rule keep their poller, as far as the processors
/// and their user's share allow; the others get none yet.
void Allocator::rule_over_newcomers() {
  std::uint32_t held = granted();
  for (Domain* one : most_active_first(
           [](const Domain& domain) { return domain.active_ticks + domain.quiet_ticks > 0 && !domain.granted; })) {
    const bool keeps = one->active && one->polling && held < most() && held_by_[one->user] < share_;
    if (keeps) ++held;
    change(*one, keeps);
  }
}

void Allocator::relieve_pressure() {
  if (loads_.size() < kTicksToGain || running_ <= processors_ + kPressure) return;
  if (Domain* weakest = weakest_holder(); weakest != nullptr) change(*weakest, false);
}

std::vector<Allocator::Domain*> Allocator::candidates() {
  return most_active_first([](const Domain& domain) {
    const bool asks = domain.granted == false && domain.wants && domain.active_ticks >= kTicksToGain;
    return asks && domain.barred_ticks == 0;
  });
}

void Allocator::grant_to_the_most_active() {
  if (loads_.size() < kTicksToGain) return;
  double idle = idle_;
  for (const auto& [id, domain] : domains_)
    if (domain.granted.value_or(false) && !domain.polling) idle -= 1;  // granted, and not used yet
  std::uint32_t held = granted();
  std::vector<Domain*> asking = candidates();
  // First everybody's share, then what is left over.
  for (const bool shares_only : {true, false}) {
    for (Domain*& one : asking) {
      if (held >= most() || idle < kIdleForPoller) return;
      if (one == nullptr || (shares_only && held_by_[one->user] >= share_)) continue;
      change(*one, true);
      one = nullptr;
      ++held;
      idle -= 1;
    }
  }
}

/// When nothing is left to grant: moves the weakest holder's poller to a domain that is much more active, of the same
/// user or of one below its share; or to any domain of a user below its share if the holder's user is above.
void Allocator::displace() {
  if (loads_.size() < kTicksToGain) return;
  Domain* const weakest = weakest_holder();
  Domain* challenger = nullptr;
  for (Domain* one : candidates()) {
    const bool fairer = weakest != nullptr && one->user != weakest->user && held_by_[weakest->user] > share_ &&
                        held_by_[one->user] < share_;
    const bool better = weakest != nullptr && one->score > kMuchMoreActive * weakest->score &&
                        (one->user == weakest->user || held_by_[one->user] < share_);
    if (!fairer && !better) {
      one->challenge = 0;
    } else if (challenger == nullptr) {
      challenger = one;
    }
  }
  if (challenger == nullptr || ++challenger->challenge < kTicksToGain) return;
  change(*weakest, false);
  change(*challenger, true);
}

/// The least active holder among the users over their share, if there are any; otherwise among all.
Allocator::Domain* Allocator::weakest_holder() {
  Domain* weakest = nullptr;
  // False is less than true: users over their share come first.
  const auto rank = [this](const Domain& domain) { return std::pair(held_by_[domain.user] <= share_, domain.score); };
  for (auto& [id, domain] : domains_)
    if (domain.granted.value_or(false) && (weakest == nullptr || rank(domain) < rank(*weakest))) weakest = &domain;
  return weakest;
}

}  // namespace lrpc::nameserver
