#include "netrpc/composite/suite/unacknowledged.h"

#include <algorithm>
#include <new>
#include <utility>

#include "netrpc/composite/suite/window.h"

namespace lrpc::netrpc::composite {

namespace {

/// The time from a message's first transmission until it is given up, if this host does not stand still: the pauses are
/// 1, 2, 4, 8, 8, ... intervals.
Duration regular_time(Duration interval, std::uint64_t tries) noexcept {
  constexpr std::uint64_t kMany = 1U << 31;
  const auto pauses = static_cast<Duration::rep>(tries < 3 ? (1U << tries) - 1 : 8 * std::min(tries, kMany) - 17);
  return interval < Duration::max() / pauses ? interval * pauses : Duration::max();
}

}  // namespace

Unacknowledged::Unacknowledged(MicroParts& parts, const Raisable<Sent>* timeout)
    : parts_(parts),
      timeout_(timeout),
      interval_(parts.options.duration("interval", std::chrono::milliseconds(50))),
      tries_(parts.options.number("tries", 8)),
      most_(parts.options.number("most", 1024)),
      window_(parts.options.number("window", 128)),
      memory_(parts.options.number("memory", 16 << 20)),
      repeats_(std::max(regular_time(interval_, tries_),
                        parts.options.duration("idle", std::chrono::seconds(60)) * kReceiversRemember / 2)),
      flights_(peer_table<Flow, Flight>(parts)) {}

HostShares* Unacknowledged::room(const ItemRef& item, const Flight& flight, const Sent& sent) noexcept {
  const auto of = [&](HostShares& places, std::uint64_t all) {
    return places.has_room(host_of(sent.flow), 1, all) ? &places : nullptr;
  };
  if (item->answers())
    return flight.room(sent.number, std::max(window_, Window::kSize / 2)) ? of(replies_, 4 * most_) : nullptr;
  if (!flight.room(sent.number, window_)) return nullptr;
  return flight.answered ? of(to_known_, most_ - to_unknown_.taken())
                         : of(to_unknown_, std::min(most_ / 2, most_ - to_known_.taken()));
}

bool Unacknowledged::keep(const ItemRef& item, const Sent& sent) noexcept {
  Flight* const flight = flights_.find_or_make(sent.flow);
  HostShares* const places = flight != nullptr ? room(item, *flight, sent) : nullptr;
  if (places == nullptr) return false;
  const HostKey host = host_of(sent.flow);
  const std::size_t bytes = std::max(item->message.footprint(), std::size_t{1});
  if (!bytes_.has_room(host, bytes, item->answers() ? 4 * memory_ : memory_)) return false;
  Kept kept{.item = parts_.bag().copy_of(item),
            .bytes = bytes_.take(host, bytes),
            .place = places->take(host, 1),
            .tries = 1};
  try {
    if (kept.item && kept.bytes && kept.place)
      kept.timer = parts_.events().set_timer(*timeout_, interval_, Repeat::once, sent);
    if (kept.timer == 0) return false;
    kept.until = deadline_after(parts_.events().due(kept.timer) - interval_, repeats_);
    kept_.bind(sent, std::move(kept));
  } catch (const std::bad_alloc&) {
    parts_.events().cancel_timer(kept.timer);
    return false;
  }
  flight->sent(sent.number);
  return true;
}

void Unacknowledged::acknowledged(const Sent& sent) noexcept {
  if (kept_.resolve(sent) == nullptr) return;
  if (Flight* const flight = flights_.find(sent.flow)) flight->answered = true;
  forget(sent);
}

void Unacknowledged::forget(const Sent& sent) noexcept {
  Kept* const kept = kept_.resolve(sent);
  if (kept == nullptr) return;
  parts_.events().cancel_timer(kept->timer);
  kept_.unbind(sent);
  if (Flight* const flight = flights_.find(sent.flow))
    flight->settle([&](std::uint64_t number) { return kept_.resolve({sent.flow, number}) != nullptr; });
}

bool Unacknowledged::timed_out(const Sent& sent) noexcept {
  Kept* const kept = kept_.resolve(sent);
  if (kept == nullptr) return true;
  kept->timer = 0;
  if (kept->tries < tries_ && parts_.host().now() < kept->until) {
    const Duration pause = interval_ * (1U << std::min<std::uint64_t>(kept->tries, 3));
    ++kept->tries;
    kept->timer = parts_.events().set_timer(*timeout_, pause, Repeat::once, sent);
    if (kept->timer != 0) {
      parts_.bag().insert(parts_.bag().copy_of(kept->item));
      return true;
    }
  }
  forget(sent);
  return false;
}

}  // namespace lrpc::netrpc::composite
