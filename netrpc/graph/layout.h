// The positions of the boxes and lines of a graph's picture, in columns and rows of characters.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

struct PictureBox {
  int x = 0;
  int y = 0;
  int width = 0;   ///< With the border.
  int height = 0;  ///< With the border.
  std::vector<std::string> lines;
  Service gives = Service::datagram;
};

/// A line from the bottom of a box to the tops of the boxes that it stands on, or the part of it between two layers:
/// down from `from`, along `row`, down again at each column of `to`.
struct PictureWire {
  int top = 0;  ///< The first row below the box above.
  int from = 0;
  int row = 0;
  int bottom = 0;       ///< The last row above the boxes below.
  std::vector<int> to;  ///< Columns.
};

struct Picture {
  /// A picture with more cells than this is not drawn: nobody could read it, and a hostile description could ask for
  /// it.
  static constexpr long kMostCells = 4'000'000;
  int width = 0;
  int height = 0;
  std::vector<PictureBox> boxes;
  std::vector<PictureWire> wires;
};

/// Always the same picture for the same instances. Nullopt: too large to draw.
[[nodiscard]] std::optional<Picture> lay_out(const std::vector<InstanceDescription>& instances);

}  // namespace lrpc::netrpc
