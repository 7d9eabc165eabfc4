#include "matrix_cell.h"

#include <fmt/format.h>

namespace lrpc::bench {
namespace {

std::string_view clients_name(int clients) noexcept { return clients == 1 ? "one" : "two"; }

/// Every load and placement once; other paces and two clients only where they matter most.
bool in_quick_run(const Cell& cell) noexcept {
  if (cell.pace == Pace::back_to_back && cell.clients == 1) return true;
  const bool plain = cell.load == Load::idle || cell.load == Load::one_hog;
  return plain && cell.placement == Placement::unpinned && (cell.pace == Pace::back_to_back || cell.clients == 1);
}

}  // namespace

std::string_view name(Load load) noexcept {
  switch (load) {
    case Load::idle: return "idle";
    case Load::one_hog: return "one-hog";
    case Load::hog_everywhere: return "every-core";
    case Load::hog_in_other_group: return "other-group";
    case Load::unequal_weights: return "weights";
    case Load::fifo_caller: return "fifo";
  }
  return "?";
}

std::string_view name(Pace pace) noexcept {
  switch (pace) {
    case Pace::back_to_back: return "back-to-back";
    case Pace::apart_20us: return "20us";
    case Pace::apart_1ms: return "1ms";
  }
  return "?";
}

std::string name(const Cell& cell) {
  return fmt::format("{}/{}/{}/{}", name(cell.load), name(cell.placement), name(cell.pace), cell.clients);
}

bool CellFilter::wants(const Cell& cell) const {
  const auto matches = [](std::string_view asked, std::string_view is) { return asked.empty() || asked == is; };
  return matches(load, name(cell.load)) && matches(placement, name(cell.placement)) && matches(pace, name(cell.pace)) &&
         matches(clients, clients_name(cell.clients));
}

std::vector<Cell> cells_of(const CellFilter& filter, bool quick, bool has_two_processors) {
  std::vector<Cell> cells;
  for (const Load load : kLoads) {
    for (const Placement placement : kPlacements) {
      if (placement == Placement::two_cores && !has_two_processors) continue;
      for (const Pace pace : kPaces) {
        for (const int clients : {1, 2}) {
          const Cell cell{load, placement, pace, clients};
          if (!filter.wants(cell) || (quick && !filter.any() && !in_quick_run(cell))) continue;
          cells.push_back(cell);
        }
      }
    }
  }
  return cells;
}

}  // namespace lrpc::bench
