// Where the boxes and lines of a graph's picture are, in columns and rows of characters.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

struct PictureBox {
  int x = 0;
  int y = 0;
  int width = 0;   ///< With its border,
  int height = 0;  ///< and so is this.
  std::vector<std::string> lines;
  Service gives = Service::datagram;
};

/// From the bottom of a box to the tops of what it stands on, or one part of that on its way past boxes between them:
/// down from `from`, along `row`, down again at each of `to`.
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

/// The same picture every time. Nothing: it is too large to draw.
[[nodiscard]] std::optional<Picture> lay_out(const std::vector<InstanceDescription>& instances);

}  // namespace lrpc::netrpc
