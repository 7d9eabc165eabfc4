#include "secondary_astacks.h"

#include <algorithm>
#include <new>
#include <utility>

#include "lrpc/detail/client/binding/remote_path.h"
#include "lrpc/detail/shim/call/gates.h"

namespace lrpc::client {
namespace {

using shim::LinkageRecord;
using std::chrono::milliseconds;

/// How long the thread that asks waits for the answer before look() returns: many times what an awake clerk needs.
constexpr milliseconds kAnswerTime{10};
/// A request that has no answer after this time is given up: the clerk finds its line hung up.
constexpr milliseconds kGiveUp{1'000};
/// The pause before the next request: after a refusal, and after a request that was not answered.
constexpr milliseconds kRefusedPause{100};
constexpr milliseconds kSilencePause{1'000};
/// The fewest A-stacks that a request asks for, so that a class of one A-stack does not grow by one at a time.
constexpr std::uint32_t kLeastGrowth = 8;

/// In Secondary::used: the region was in use at the last look. No sum of generations gets so large.
constexpr std::uint64_t kInUse = ~std::uint64_t{0};

/// Resets a record, except for its number, and for `next`, which a thread in pop() may be reading.
void renew(LinkageRecord& record, const shim::AStack& astack, std::uint16_t astack_class) noexcept {
  record.astack = astack;
  record.astack.astack_class = astack_class;
  record.last = 0;
  record.below = nullptr;
  record.estack_may_sleep = true;
  record.quarantined = false;
  record.limited = false;
  record.slow_generation = 0;
  record.policy = {};
}

}  // namespace

SecondaryAStacks::SecondaryAStacks(BindingObject& binding) noexcept
    : binding_(binding), records_(binding.parts_.region.layout().astack_count()) {}

SecondaryAStacks::Look SecondaryAStacks::look(std::uint16_t astack_class, std::chrono::nanoseconds limit) noexcept {
  const std::unique_lock lock(asking_, std::try_to_lock);
  if (!lock.owns_lock()) return Look::waiting;  // another thread is asking
  try {
    if (asked_) return receive(milliseconds(0));
    if (distrusted_ || binding_.revoked() || Clock::now() < not_before_) return Look::refused;
    // Another thread's request may have been granted since the caller looked.
    if (binding_.lists_[astack_class].any_free()) return Look::added;
    if (!ask(astack_class)) return pause(kRefusedPause);
    if (!asked_) return Look::added;
    return receive(std::min(kAnswerTime, std::chrono::floor<milliseconds>(limit)));
  } catch (const std::bad_alloc&) {
    asked_.reset();
    return pause(kRefusedPause);
  }
}

/// Makes a request for as many A-stacks as the class has, so that a burst of any size is served after a few requests.
/// nullopt: no place is free, or even one A-stack would be too large.
std::optional<shim::GrowthRequest> SecondaryAStacks::request_for(std::uint16_t astack_class) {
  const AStackClass& declared = binding_.parts_.region.layout().classes()[astack_class].declared;
  std::uint32_t have = declared.count;
  std::optional<std::uint16_t> place;
  {
    const std::lock_guard lock(mutex_);
    for (std::uint16_t i = 0; i < shim::kMostSecondaryRegions; ++i) {
      if (!places_[i].region.mapped()) {
        if (!place) place = i;
      } else if (places_[i].astack_class == astack_class) {
        have += places_[i].count;
      }
    }
  }
  const auto wanted = std::clamp<std::uint32_t>(have, kLeastGrowth, shim::kMostAStacksInSecondary);
  const auto fits = shim::class_that_fits(declared, static_cast<std::uint16_t>(wanted), limits::kMaxRegionSize);
  if (!place || fits.count == 0) return std::nullopt;
  return shim::GrowthRequest{.astack_class = astack_class, .place = *place, .count = fits.count};
}

/// G1. True: asked_ is set, or the binding is remote and the A-stacks have been added without asking.
bool SecondaryAStacks::ask(std::uint16_t astack_class) {
  const auto request = request_for(astack_class);
  if (!request) return false;
  if (binding_.remote()) return accept(*request, request->count, {}, {});
  auto line = shim::ask_for_growth(binding_.bell(), *request);
  if (!line) return false;
  shim::PeerSocket kept(*std::move(line), shim::PeerSocket::Made::here, stranger());
  asked_.emplace(Asked{*request, std::move(kept), Clock::now()});
  binding_.schedule_return();  // it receives the answer if no caller is left to do so
  return true;
}

// G2
SecondaryAStacks::Look SecondaryAStacks::receive(milliseconds patience) {
  auto answer = shim::receive_growth(asked_->line.get(), patience, stranger());
  if (answer && !answer->has_value()) {
    if (Clock::now() - asked_->when < kGiveUp) return Look::waiting;
    asked_.reset();
    return pause(kSilencePause);
  }
  const shim::GrowthRequest request = asked_->request;
  shim::PeerSocket line = std::move(asked_->line);
  asked_.reset();
  distrusted_ = answer ? (*answer)->count > request.count : answer.code() == Errc::bad_message;
  const bool granted = answer && !distrusted_ && (*answer)->count != 0;
  if (granted && accept(request, (*answer)->count, std::move((*answer)->region), std::move(line))) return Look::added;
  return pause(kRefusedPause);
}

/// Adds the granted A-stacks to the binding. The layout follows from the binding's classes and the count that came over
/// the line; the region must fit that layout.
bool SecondaryAStacks::accept(const shim::GrowthRequest& request, std::uint16_t count, shim::ClosedAside fd,
                              shim::PeerSocket line) {
  AStackClass declared = binding_.parts_.region.layout().classes()[request.astack_class].declared;
  declared.count = count;
  line.take_nothing();  // the server has nothing more to send on this line
  auto layout = shim::RegionLayout::of({&declared, 1});
  if (!layout) return false;  // the line hangs up
  auto region = binding_.remote() ? shim::Region::private_to_this_domain(*std::move(layout))
                                  : shim::Region::map(fd.get(), *std::move(layout));
  if (region && !binding_.remote()) fd.release().reset();  // the mapping keeps the memory
  const auto block = records_.block(request.place);
  distrusted_ = !region && region.code() == Errc::bad_message;
  binding_.make_room_in_quarantine(records_.first(), request.place);
  if (!region || block.empty() || (binding_.remote() && !binding_.remote_path()->grow(request.place))) return false;
  for (std::uint32_t i = 0; i < count; ++i) renew(block[i], region->astack(i), request.astack_class);
  {
    const std::lock_guard lock(mutex_);
    if (binding_.revoked()) return false;  // G7: either the revocation sees the region, or we see it
    places_[request.place] = {*std::move(region), std::move(line), request.astack_class, count, kInUse};
    binding_.lists_[request.astack_class].add(block.first(count));
  }
  // Callers of other classes wait for their turn to ask.
  for (std::size_t i = 0; i < binding_.parts_.region.layout().classes().size(); ++i) binding_.lists_[i].wake_waiters();
  binding_.schedule_return();
  return true;
}

void SecondaryAStacks::revoke() noexcept {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t place = 0; place < places_.size(); ++place) {
    for (std::uint32_t i = 0; i < places_[place].count; ++i)
      shim::revoke_word(*places_[place].region.astack(i).head, shim::Sleeper::caller);
  }
}

void SecondaryAStacks::trust_no_longer() noexcept {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t place = 0; place < places_.size(); ++place) {
    if (!places_[place].region.mapped()) continue;
    for (LinkageRecord& record : records_.block(place).first(places_[place].count)) record.policy.trust_no_longer();
  }
}

void SecondaryAStacks::forget_after_fork() noexcept {
  // If another thread held a lock at the fork, it stays locked, and these descriptors stay open, unused.
  const std::unique_lock asking(asking_, std::try_to_lock);
  if (asking.owns_lock() && asked_) asked_->line.reset();
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (Secondary& one : places_) one.line.reset();
}

// ---- Back to the first size ----

/// Removes the A-stacks of unused regions from `idle`, and moves these regions from their places to `unused`.
void SecondaryAStacks::take_unused(std::uint16_t astack_class, std::vector<LinkageRecord*>& idle,
                                   std::vector<Secondary>& unused) {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t place = 0; place < places_.size(); ++place) {
    Secondary& one = places_[place];
    if (!one.region.mapped() || one.astack_class != astack_class) continue;
    const auto is_here = [&](const LinkageRecord* record) {
      return record->index >= records_.first() && records_.place_of(*record) == place;
    };
    std::uint64_t used = 0;  // how often its A-stacks were used so far, if all of them are idle
    for (const LinkageRecord* record : idle) used += is_here(record) ? record->generation() : 0;
    if (std::ranges::count_if(idle, is_here) != one.count) used = kInUse;
    const std::uint64_t before = std::exchange(one.used, used);
    if (used == kInUse || used != before || binding_.anybody_reads_quarantine()) continue;
    std::erase_if(idle, is_here);
    if (binding_.remote()) binding_.remote_path()->shrink(static_cast<std::uint16_t>(place));
    // G8: nobody in this domain can find these A-stacks any more. The clerk sees the end of the line, and lets go of
    // the region as soon as it can. The line ends before a request for the same place can be sent.
    one.line.reset();
    unused.push_back(std::exchange(one, {}));
  }
}

std::size_t SecondaryAStacks::count(std::optional<std::uint16_t> astack_class) const {
  const std::lock_guard lock(mutex_);
  std::size_t all = 0;
  for (const Secondary& one : places_)
    if (!astack_class || one.astack_class == *astack_class) all += one.count;
  return all;
}

bool SecondaryAStacks::return_unused() {
  if (binding_.revoked()) return false;  // the regions end with the binding, as the primary one does
  {
    const std::unique_lock lock(asking_, std::try_to_lock);
    try {
      if (lock.owns_lock() && asked_) (void)receive(milliseconds(0));
    } catch (const std::bad_alloc&) {
      asked_.reset();
    }
  }
  std::vector<Secondary> unused;
  unused.reserve(places_.size());
  std::vector<LinkageRecord*> idle;
  idle.reserve(binding_.records_.size() + count());
  for (std::uint16_t i = 0; i < binding_.parts_.region.layout().classes().size(); ++i) {
    if (count(i) == 0) continue;
    AStackList& list = binding_.lists_[i];
    (void)binding_.release_quarantined(list);
    binding_.trim_phase_.fetch_add(1, std::memory_order_seq_cst);
    idle.clear();
    list.take_idle(idle);
    take_unused(i, idle, unused);
    // The first places on top, so that the regions in the last places become unused first. Primary A-stacks keep their
    // order.
    std::ranges::stable_sort(idle, std::ranges::greater(), [&](const LinkageRecord* record) {
      return record->index < records_.first() ? 0 : record->index;
    });
    list.put_idle(idle);
    binding_.trim_phase_.fetch_add(1, std::memory_order_release);
  }
  unused.clear();
  const bool any_left = count() != 0;
  const std::unique_lock lock(asking_, std::try_to_lock);
  return any_left || !lock.owns_lock() || asked_;
}

}  // namespace lrpc::client
