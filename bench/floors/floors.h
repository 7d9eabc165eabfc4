// The floors: the barest crossing from one process to another and back that the hardware and the kernel allow.
#pragma once

#include <memory>

#include "core/contender.h"
#include "core/placement.h"

namespace lrpc::bench {

enum class Floor {
  polling,  ///< Two processes poll one cache line from two cores.
  yield,    ///< Two processes take turns on one core by sched_yield: two traps and two context switches.
};
[[nodiscard]] std::string_view name(Floor floor) noexcept;

/// The seats during floor blocks. Floors are always pinned, whatever the row's own placement. Precondition for polling:
/// cores.has_two().
[[nodiscard]] Seats floor_seats(Floor floor, const Cores& cores) noexcept;

/// Starts the responder process, parked: it sleeps on a futex of its own between blocks.
Result<std::unique_ptr<Contender>> make_polling_floor(const Seats& seats);
Result<std::unique_ptr<Contender>> make_yield_floor(const Seats& seats);
Result<std::unique_ptr<Contender>> make_floor(Floor floor, const Cores& cores);

}  // namespace lrpc::bench
