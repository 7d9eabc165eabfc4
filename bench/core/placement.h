// Where the two domains of a row sit: on one core, on two, or wherever the scheduler puts them.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

enum class Placement { one_core, two_cores, unpinned };
inline constexpr Placement kPlacements[] = {Placement::one_core, Placement::two_cores, Placement::unpinned};
[[nodiscard]] std::string_view name(
    Placement placement) noexcept;  ///< As in the JSON: "one-core", "two-cores", "unpinned".

/// The processors a thread may use.
using Seat = cpu_set_t;
/// The seats of a client and of its server.
struct Seats {
  Seat client;
  Seat server;
};

/// The processors that this program may use, and the two that it uses for the pinned rows.
class Cores {
 public:
  /// Looks at the affinity mask of the caller and at the topology in /sys: the second core shares a package, but not
  /// the core, with the first where there is such a one.
  static Result<Cores> find();

  /// Unset if there is only one.
  [[nodiscard]] bool has_two() const noexcept { return second_.has_value(); }
  /// Which processors were chosen, for a person.
  [[nodiscard]] std::string describe() const;
  /// Precondition: has_two() unless one_core.
  [[nodiscard]] Seats seats(Placement placement) const noexcept;
  /// One seat for each processor that may be used: those of seats(two_cores) first, in that order.
  [[nodiscard]] std::vector<Seat> each() const;
  /// How many may be used.
  [[nodiscard]] unsigned count() const noexcept;
  /// One seat of the first of each(), so many. Precondition: there are so many.
  [[nodiscard]] Seat among(unsigned processors) const;
  /// The number of the second of the two.
  [[nodiscard]] std::optional<int> second() const noexcept { return second_; }

 private:
  int first_ = 0;
  std::optional<int> second_;
  bool siblings_ = false;  ///< The two are hardware threads of one core: there was nothing better.
  Seat all_{};
};

/// Where the calling thread may run.
[[nodiscard]] Seat own_seat() noexcept;
/// Moves the calling thread.
void sit(const Seat& seat) noexcept;
/// Moves every thread of a process, as taskset -a -p does.
void seat_process(pid_t process, const Seat& seat);

}  // namespace lrpc::bench
