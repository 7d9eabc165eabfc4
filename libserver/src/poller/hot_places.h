// Which A-stacks keep their places in a poller's full hot set. Pure: no system call, no clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "call/served_binding.h"

namespace lrpc::server {

/// An A-stack of the hot set.
struct HotPlace {
  Holder holder = {};
  std::uint64_t last_hit = 0;  ///< ticks()
  std::size_t of_user = 0;     ///< Places of its user, and of its holder: place_for() counts.
  std::size_t of_holder = 0;
};

/// The place that an A-stack of `newcomer` gets in a full hot set; nothing: it gets none. The user with the most places
/// gives one to a user that even then has fewer. Other hosts are one user; among them the host with the most gives one
/// in the same way. So no place goes back and forth, and no user keeps the calls of another user out, however many of
/// its own A-stacks it calls, however rarely. The A-stack that was called least recently leaves.
[[nodiscard]] inline std::optional<std::size_t> place_for(Holder newcomer, std::span<HotPlace> places) noexcept {
  // Each holder's places are counted once, so this takes time proportional to places times holders.
  for (HotPlace& place : places) place.of_user = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].of_user != 0) continue;
    std::size_t of_user = 0;
    std::size_t of_holder = 0;
    for (const HotPlace& other : places) {
      of_user += other.holder.user == places[i].holder.user ? 1U : 0U;
      of_holder += other.holder == places[i].holder ? 1U : 0U;
    }
    for (HotPlace& other : places.subspan(i)) {
      if (other.holder != places[i].holder) continue;
      other.of_user = of_user;
      other.of_holder = of_holder;
    }
  }
  std::size_t most_of_user = 0;
  std::size_t of_own_user = 0;
  std::size_t own = 0;
  for (const HotPlace& place : places) {
    most_of_user = std::max(most_of_user, place.of_user);
    if (place.holder.user == newcomer.user) of_own_user = place.of_user;
    if (place.holder == newcomer) own = place.of_holder;
  }
  const bool from_another_user = of_own_user + 1 < most_of_user;
  std::optional<std::size_t> gives;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const HotPlace& place = places[i];
    const bool may_give = from_another_user ? place.of_user == most_of_user
                                            : place.holder.user == newcomer.user && own + 1 < place.of_holder;
    if (!may_give) continue;
    if (!gives || place.of_holder > places[*gives].of_holder ||
        (place.of_holder == places[*gives].of_holder && place.last_hit < places[*gives].last_hit))
      gives = i;
  }
  return gives;
}

}  // namespace lrpc::server
