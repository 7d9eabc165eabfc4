// The floor on two processors (LRPC §3.4): one cache line that moves to the other core and back, and nothing else.
#include "floor_line.h"
#include "floors.h"

namespace lrpc::bench {
namespace {

struct Relax {
  static void once() noexcept { relax(); }
};

}  // namespace

Result<std::unique_ptr<Contender>> make_polling_floor(const Seats& seats) {
  return LineFloor<Relax>::create("floor-polling", seats);
}

std::string_view name(Floor floor) noexcept { return floor == Floor::polling ? "polling" : "yield"; }

Seats floor_seats(Floor floor, const Cores& cores) noexcept {
  return cores.seats(floor == Floor::polling ? Placement::two_cores : Placement::one_core);
}

Result<std::unique_ptr<Contender>> make_floor(Floor floor, const Cores& cores) {
  const Seats seats = floor_seats(floor, cores);
  return floor == Floor::polling ? make_polling_floor(seats) : make_yield_floor(seats);
}

}  // namespace lrpc::bench
