// The cells of the scenario matrix: combinations of load, placement, pace and number of clients.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "placement.h"

namespace lrpc::bench {

/// What else runs on the machine, or how the scheduler treats the caller differently.
enum class Load { idle, one_hog, hog_everywhere, hog_in_other_group, unequal_weights, fifo_caller };
/// What the caller does between two calls: nothing, compute for 20 µs, sleep for 1 ms.
enum class Pace { back_to_back, apart_20us, apart_1ms };

inline constexpr Load kLoads[] = {
    Load::idle,       Load::one_hog, Load::hog_everywhere, Load::hog_in_other_group, Load::unequal_weights,
    Load::fifo_caller};
inline constexpr Pace kPaces[] = {Pace::back_to_back, Pace::apart_20us, Pace::apart_1ms};

/// The value of --load that selects the third party's table; it is not the load of any cell.
inline constexpr std::string_view kThirdParty = "third-party";

/// "idle", "one-hog", "every-core", "other-group", "weights", "fifo".
[[nodiscard]] std::string_view name(Load load) noexcept;
/// "back-to-back", "20us", "1ms".
[[nodiscard]] std::string_view name(Pace pace) noexcept;
/// Whether another process computes all the time, so that the bars against plain futexes apply.
[[nodiscard]] constexpr bool has_hog(Load load) noexcept {
  return load == Load::one_hog || load == Load::hog_everywhere || load == Load::hog_in_other_group;
}

struct Cell {
  Load load = Load::idle;
  Placement placement = Placement::unpinned;
  Pace pace = Pace::back_to_back;
  int clients = 1;  ///< Client processes of one server, 1 or 2.
  friend bool operator==(const Cell&, const Cell&) = default;
};
/// "one-hog/unpinned/20us/1".
[[nodiscard]] std::string name(const Cell& cell);

/// The values of --load, --placement, --pace, --clients; an empty one matches everything.
struct CellFilter {
  std::string load;
  std::string placement;
  std::string pace;
  std::string clients;
  [[nodiscard]] bool any() const noexcept {
    return !load.empty() || !placement.empty() || !pace.empty() || !clients.empty();
  }
  [[nodiscard]] bool wants(const Cell& cell) const;
};

/// The cells of a run: those that the filter wants. Without a filter: all, or for a quick run a representative part.
/// With a single processor there are no two-cores cells.
[[nodiscard]] std::vector<Cell> cells_of(const CellFilter& filter, bool quick, bool has_two_processors);

}  // namespace lrpc::bench
