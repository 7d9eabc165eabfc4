#include "matrix_cell.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

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
  static constexpr std::array kNames{"idle", "one-hog", "every-core", "other-group", "weights", "fifo"};
  static_assert(kNames.size() == std::size(kLoads));
  return kNames[static_cast<std::size_t>(load)];
}

std::string_view name(Pace pace) noexcept {
  static constexpr std::array kNames{"back-to-back", "20us", "1ms"};
  static_assert(kNames.size() == std::size(kPaces));
  return kNames[static_cast<std::size_t>(pace)];
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
