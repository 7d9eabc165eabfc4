// Where the two domains of a row run: on one core, on two, or wherever the scheduler puts them.
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

/// The processors that this program may use, and the two that the pinned rows use.
class Cores {
 public:
  /// Reads the caller's affinity mask and the topology in /sys. The second core is, if possible, another physical core
  /// of the same package.
  static Result<Cores> find();

  /// False if only one processor may be used.
  [[nodiscard]] bool has_two() const noexcept { return second_.has_value(); }
  /// Which processors were chosen, in words.
  [[nodiscard]] std::string describe() const;
  /// Precondition: has_two() unless one_core.
  [[nodiscard]] Seats seats(Placement placement) const noexcept;
  /// One seat for each usable processor; those of seats(two_cores) come first, in that order.
  [[nodiscard]] std::vector<Seat> each() const;
  /// How many processors may be used.
  [[nodiscard]] unsigned count() const noexcept;
  /// One seat that spans the first `processors` of each(). Precondition: there are that many.
  [[nodiscard]] Seat among(unsigned processors) const;
  /// The processor number of the second core.
  [[nodiscard]] std::optional<int> second() const noexcept { return second_; }

 private:
  int first_ = 0;
  std::optional<int> second_;
  bool siblings_ = false;  ///< The two are hardware threads of one core: no other core may be used.
  Seat all_{};
};

/// The processors on which the calling thread may run.
[[nodiscard]] Seat own_seat() noexcept;
/// Pins the calling thread to `seat`.
void sit(const Seat& seat) noexcept;
/// Sets the affinity of every thread of a process, as taskset -a -p does.
void seat_process(pid_t process, const Seat& seat);

}  // namespace lrpc::bench
