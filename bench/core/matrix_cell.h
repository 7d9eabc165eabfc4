// The scenario matrix: what a caller may find around it, and the cells that follow.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "placement.h"

namespace lrpc::bench {

/// What else goes on on the machine, or what is odd about the caller.
enum class Load { idle, one_hog, hog_everywhere, hog_in_other_group, unequal_weights, fifo_caller };
/// What the caller does between two calls: nothing, compute for 20 µs, sleep for 1 ms.
enum class Pace { back_to_back, apart_20us, apart_1ms };

inline constexpr Load kLoads[] = {
    Load::idle,       Load::one_hog, Load::hog_everywhere, Load::hog_in_other_group, Load::unequal_weights,
    Load::fifo_caller};
inline constexpr Pace kPaces[] = {Pace::back_to_back, Pace::apart_20us, Pace::apart_1ms};

/// What --load says for the third party's table, which is no load of a cell.
inline constexpr std::string_view kThirdParty = "third-party";

/// "idle", "one-hog", "every-core", "other-group", "weights", "fifo".
[[nodiscard]] std::string_view name(Load load) noexcept;
/// "back-to-back", "20us", "1ms".
[[nodiscard]] std::string_view name(Pace pace) noexcept;
/// Whether somebody else computes all the time, so that the bars against plain futexes hold.
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

/// --load, --placement, --pace, --clients; what is empty matches everything.
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

/// The cells of a run: those that the filter wants; if it says nothing, all, or for a quick run a representative part.
/// Without a second processor there are no cells on two.
[[nodiscard]] std::vector<Cell> cells_of(const CellFilter& filter, bool quick, bool has_two_processors);

}  // namespace lrpc::bench
