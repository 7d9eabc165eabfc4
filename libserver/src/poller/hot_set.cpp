// How A-stacks enter a poller's hot set, and how they leave it for their E-stack or another poller.
#include <utility>

#include "call/call_path.h"
#include "hot_places.h"
#include "lrpc/detail/shim/call/step.h"
#include "lrpc/detail/shim/system/processor.h"
#include "poller.h"
#include "poller_team.h"

namespace lrpc::server {

/// A hot A-stack without a call for this many windows is demoted while others keep the poller busy.
constexpr std::uint64_t kColdWindows = 64;
/// How long an A-stack without a place is not offered again: each offer takes locks, and may wake the poller.
constexpr std::uint64_t kFullBackOffUs = 10'000;

void Poller::take_offers(shim::Moment now) {
  offers_seen_ = offered_.look();  // P2: before the offers are taken
  {
    std::lock_guard lock(mutex_);
    taken_.swap(offers_);
  }
  for (Hot& offer : taken_) {
    if (offer.binding->revoked() || !make_room_for(offer)) {
      offer.astack->not_before.store(now.after(kFullBackOffUs), std::memory_order_relaxed);
      offer.astack->polled.store(Polled::no);
      continue;
    }
    offer.last_hit = now.ticks;
    if (polling_) say_polled(*offer.astack);
    hot_[hot_count_++] = std::move(offer);
  }
  taken_.clear();
  if (hot_count_ != 0 && !remembered_.empty()) take_back_remembered(now);
}

/// False: all places are taken, and none has to be given up. An A-stack that gives its place up leaves like a cold one
/// (H6, P4).
bool Poller::make_room_for(const Hot& offer) {
  if (hot_count_ < kHotSet) return true;
  std::array<HotPlace, kHotSet> places;
  for (std::size_t i = 0; i < kHotSet; ++i)
    places[i] = {.holder = hot_[i].binding->holder(), .last_hit = hot_[i].last_hit};
  const auto place = place_for(offer.binding->holder(), places);
  if (place) demote(*place);
  return place.has_value();
}

void Poller::take_back_remembered(shim::Moment now) {
  for (const Remembered& one : remembered_) {
    auto binding = one.binding.lock();
    if (binding == nullptr || binding->revoked() || hot_count_ == kHotSet) continue;
    if (one.astack->poller.load(std::memory_order_relaxed) != index_) continue;  // another poller's by now
    if (now.before(one.astack->not_before.load(std::memory_order_relaxed))) continue;
    // H3: not one whose E-stack sleeps for long by now (no), nor one that has been offered again (yes).
    if (Polled before = Polled::remembered; !one.astack->polled.compare_exchange_strong(before, Polled::yes)) continue;
    if (polling_) say_polled(*one.astack);
    hot_[hot_count_++] = {.binding = std::move(binding), .astack = one.astack, .last_hit = now.ticks};
  }
  remembered_.clear();
}

/// H6, for a caller that has just rung. This comes after the fence: if the caller still saw the hint, its call is seen
/// here; if it did not, it wakes the E-stack itself (T4).
void Poller::last_look(const Hot& hot, Polled then) {
  LRPC_STEP("poller last look");
  (void)serve<Scanner::poller>(*hot.astack, context_);
  hot.astack->polled.store(then);  // P4: may be offered again, unless `then` says that another poller has it
}

void Poller::demote(std::size_t index) {
  shim::take_hint_back(*hot_[index].astack->head);
  fence();
  drop(index, Polled::no);
  mark_ = shim::ticks();  // this time does not count for the next call
}

/// Removes an A-stack from the hot set. Its hint is off already, and the fence done.
void Poller::drop(std::size_t index, Polled then) {
  Hot& hot = hot_[index];
  last_look(hot, then);
  --hot_count_;
  if (index != hot_count_) hot = std::move(hot_[hot_count_]);
  hot_[hot_count_] = {};
}

/// Removes all for which leaves(hot) is true from the hot set, and hands them to `heir`, if there is one.
template <class Leaves>
void Poller::drop_those(Leaves&& leaves, Poller* heir) {
  bool any = false;
  for (std::size_t i = 0; i < hot_count_; ++i) {
    if (!leaves(hot_[i])) continue;
    shim::take_hint_back(*hot_[i].astack->head);
    hot_[i].leaves = any = true;
  }
  if (!any) return;
  fence();  // one for all of them
  for (std::size_t i = 0; i < hot_count_;) {
    if (!hot_[i].leaves) {
      ++i;
      continue;
    }
    const auto binding = hot_[i].binding;
    ServedAStack& astack = *hot_[i].astack;
    // H3: with an heir it stays marked as polled, so that its E-stack does not sleep for long meanwhile.
    drop(i, heir != nullptr ? Polled::yes : Polled::no);
    if (heir != nullptr) heir->take_over(binding, astack);
  }
  mark_ = shim::ticks();
}

void Poller::drop_cold(shim::Moment now) {
  const std::uint64_t cold = kColdWindows * static_cast<std::uint64_t>(window_.count());
  drop_those([&](const Hot& hot) { return hot.binding->revoked() || now.since(hot.last_hit) >= cold; }, nullptr);
}

/// Once in a period of the load. If callers queue, hands the A-stacks of every second one to a helper. If few call, a
/// poller other than the first hands all to another.
void Poller::balance(shim::Moment now) {
  note_callers(std::exchange(noted_, now.ticks), now);
  has_room_.store(load_.has_room() && 2 * hot_count_ <= kHotSet, std::memory_order_relaxed);
  if (load_.crowded() && shim::is_processor(seat())) {
    static_assert(EverySecondCaller::kMost >= kHotSet);
    EverySecondCaller goes;
    const auto leaves = [&](const Hot& hot) { return goes(hot.caller, hot.binding.get()); };
    if (Poller* helper = team_.helper_for(*this, now)) {
      drop_those(leaves, helper);
      load_.begin(now);
    }
  } else if (index_ != 0 && load_.quiet()) {
    Poller* other = team_.room_beside(*this);
    if (other == nullptr) return;
    team_.helper_ended(policy_.lasted_us(now), now);
    drop_those([](const Hot&) { return true; }, other);
  }
}

void Poller::cool_down() {
  for (std::size_t i = 0; i < hot_count_; ++i) shim::take_hint_back(*hot_[i].astack->head);
  fence();
  remembered_.clear();
  for (std::size_t i = 0; i < hot_count_; ++i) {
    const bool remembers = !policy_.evicted() && !hot_[i].binding->revoked();
    if (remembers) remembered_.push_back({hot_[i].binding, hot_[i].astack});
    last_look(hot_[i], remembers ? Polled::remembered : Polled::no);
    hot_[i] = {};
  }
  hot_count_ = 0;
}

}  // namespace lrpc::server
