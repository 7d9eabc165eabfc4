// The floor on one processor: two traps and two context switches, the paper's "theoretical minimum" (LRPC §2.3). On
// Linux, two processes on one core that take turns by sched_yield(2) cost just that.
#include <sched.h>

#include "floor_line.h"
#include "floors.h"

namespace lrpc::bench {
namespace {

struct Yield {
  static void once() noexcept { ::sched_yield(); }
};

}  // namespace

Result<std::unique_ptr<Contender>> make_yield_floor(const Seats& seats) {
  return LineFloor<Yield>::create("floor-yield", seats);
}

}  // namespace lrpc::bench
