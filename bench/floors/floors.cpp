#include "floors.h"

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "core/child.h"
#include "core/futex.h"

namespace lrpc::bench {
namespace {

/// What two processes share: a sequence number that they pass to and fro on one cache line. Odd numbers are requests,
/// the next even number is the answer. kPark asks the responder to go to sleep.
struct FloorLine {
  static constexpr std::uint64_t kPark = ~std::uint64_t{0} - 1;  // even: no request
  alignas(128) std::atomic<std::uint64_t> sequence;
  alignas(128) std::atomic<std::uint32_t> awake;  ///< The responder sleeps on this word while it is 0.
};

/// A floor whose two sides call `Wait::once()` in a loop until the line changes.
template <class Wait>
class LineFloor final : public RoundTrips<LineFloor<Wait>> {
 public:
  static Result<std::unique_ptr<Contender>> create(std::string_view name, const Seats& seats) {
    auto line = Shared<FloorLine>::create();
    if (!line) return line.error();
    auto responder = Child::spawn(name, seats.server, [&] { return respond(**line); });
    if (!responder) return responder.error();
    return std::unique_ptr<Contender>(new LineFloor(std::move(*line), std::move(*responder)));
  }

  void resume() override {
    line_->sequence.store(next_ - 1, std::memory_order_relaxed);
    line_->awake.store(1, std::memory_order_release);
    futex_wake(line_->awake);
  }

  void round_trip() noexcept {
    line_->sequence.store(next_, std::memory_order_release);
    while (line_->sequence.load(std::memory_order_acquire) != next_ + 1) Wait::once();
    next_ += 2;
  }

  /// The responder acknowledges kPark and then gets time to enter the futex wait.
  void pause() override {
    line_->sequence.store(FloorLine::kPark, std::memory_order_release);
    while (line_->awake.load(std::memory_order_acquire) != 0) Wait::once();
    for (int i = 0; i < 8; ++i) Wait::once();
  }

 private:
  LineFloor(Shared<FloorLine> line, Child responder) : line_(std::move(line)), responder_(std::move(responder)) {}

  [[noreturn]] static int respond(FloorLine& line) {
    for (;;) {
      while (line.awake.load(std::memory_order_acquire) == 0) futex_wait(line.awake, 0);
      for (;;) {
        const std::uint64_t seen = line.sequence.load(std::memory_order_acquire);
        if ((seen & 1) != 0) {
          line.sequence.store(seen + 1, std::memory_order_release);
        } else if (seen == FloorLine::kPark) {
          break;
        } else {
          Wait::once();
        }
      }
      line.awake.store(0, std::memory_order_release);
    }
  }

  Shared<FloorLine> line_;
  Child responder_;
  std::uint64_t next_ = 1;
};

/// On two processors (LRPC §3.4): one cache line that moves to the other core and back, and nothing else.
struct Relax {
  static void once() noexcept { relax(); }
};

/// On one processor: two traps and two context switches, the paper's "theoretical minimum" (LRPC §2.3). On Linux, two
/// processes on one core that take turns by sched_yield(2) cost just that.
struct Yield {
  static void once() noexcept { ::sched_yield(); }
};

}  // namespace

std::string_view name(Floor floor) noexcept { return floor == Floor::polling ? "polling" : "yield"; }

Seats floor_seats(Floor floor, const Cores& cores) noexcept {
  return cores.seats(floor == Floor::polling ? Placement::two_cores : Placement::one_core);
}

Result<std::unique_ptr<Contender>> make_polling_floor(const Seats& seats) {
  return LineFloor<Relax>::create("floor-polling", seats);
}

Result<std::unique_ptr<Contender>> make_yield_floor(const Seats& seats) {
  return LineFloor<Yield>::create("floor-yield", seats);
}

Result<std::unique_ptr<Contender>> make_floor(Floor floor, const Cores& cores) {
  const Seats seats = floor_seats(floor, cores);
  return floor == Floor::polling ? make_polling_floor(seats) : make_yield_floor(seats);
}

}  // namespace lrpc::bench
