// A box is one layer above the highest box that it stands on. The order within a layer follows that of the neighbouring
// layers. A line that passes a layer has a place of its own there. Between two layers a line runs down, along one row,
// and down again. Lines never share a column: those that leave boxes have even columns; those that enter a box, but not
// straight from above, have odd ones.
#include "netrpc/graph/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace lrpc::netrpc {

namespace {

constexpr std::size_t kMostNodes = 20'000;
constexpr std::size_t kMostOptionText = 30;
constexpr std::size_t kMostInsideText = 60;
constexpr int kGap = 3;

/// A box, or the place (one column) where a line passes a layer.
struct Node {
  std::size_t layer = 0;
  std::optional<std::size_t> instance{};
  std::vector<std::size_t> below{};
  std::vector<std::size_t> above{};
  int x = 0;
  int width = 1;
  int height = 0;
  double place = 0;  ///< Its index in its layer; in place(), its preferred column.
  [[nodiscard]] int port() const noexcept { return x + width / 2; }
};

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

void shorten(std::string& line, std::size_t most) {
  if (line.size() > most) line.replace(most - 3, std::string::npos, "...");
}

std::vector<std::string> label_of(const InstanceDescription& instance) {
  std::vector<std::string> lines;
  const bool same = lower_case(instance.name) == lower_case(instance.kind);
  lines.push_back(same ? instance.kind : instance.name + ": " + instance.kind);
  for (const auto& [name, value] : instance.options.all()) lines.push_back(name + " = " + value);
  for (std::string& line : lines) shorten(line, kMostOptionText);
  for (const MicroDescription& micro : instance.inside) {
    std::vector<std::string> options;
    for (const auto& [name, value] : micro.options.all()) options.push_back(name + " = " + value);
    lines.push_back(options.empty() ? micro.kind : fmt::format("{}({})", micro.kind, fmt::join(options, ", ")));
    shorten(lines.back(), kMostInsideText);
  }
  for (const std::string& line : instance.drawn_inside) shorten(lines.emplace_back(line), kMostInsideText);
  return lines;
}

class Layout {
 public:
  explicit Layout(const std::vector<InstanceDescription>& instances) : instances_(instances) {}

  std::optional<Picture> run() {
    if (!make_nodes()) return std::nullopt;
    for (int i = 0; i < 4; ++i) {
      sort(false);
      sort(true);
    }
    place();
    if (!draw()) return std::nullopt;
    return std::move(picture_);
  }

 private:
  bool make_nodes() {
    std::unordered_map<std::string, std::size_t> named;
    for (const InstanceDescription& instance : instances_) {
      Node node;
      node.instance = nodes_.size();
      for (const std::string& lower : instance.below) {
        const std::size_t below = named.at(lower);
        node.layer = std::max(node.layer, nodes_[below].layer + 1);
        if (std::find(node.below.begin(), node.below.end(), below) == node.below.end()) node.below.push_back(below);
      }
      named.emplace(instance.name, nodes_.size());
      nodes_.push_back(std::move(node));
      labels_.push_back(label_of(instance));
    }
    // Nodes for lines that pass layers.
    for (std::size_t i = 0; i < instances_.size(); ++i) {
      for (std::size_t j = 0; j < nodes_[i].below.size(); ++j) {
        const std::size_t target = nodes_[i].below[j];
        std::size_t last = target;
        for (std::size_t layer = nodes_[target].layer + 1; layer < nodes_[i].layer; ++layer) {
          if (nodes_.size() == kMostNodes) return false;
          nodes_.push_back({.layer = layer, .below = {last}});
          last = nodes_.size() - 1;
        }
        nodes_[i].below[j] = last;
      }
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].layer >= layers_.size()) layers_.resize(nodes_[i].layer + 1);
      layers_[nodes_[i].layer].push_back(i);
      for (const std::size_t below : nodes_[i].below) nodes_[below].above.push_back(i);
    }
    for (std::size_t i = 0; i < instances_.size(); ++i) {
      std::size_t inner = 2 * nodes_[i].above.size() + 2;  // a column for each line that enters
      for (const std::string& line : labels_[i]) inner = std::max(inner, line.size() + 2);
      nodes_[i].width = static_cast<int>(inner) + 2;
      nodes_[i].height = static_cast<int>(labels_[i].size()) + 2;
    }
    return true;
  }

  /// Orders each layer by the mean place of each node's neighbours above (going down) or below (going up).
  void sort(bool down) {
    for (std::vector<std::size_t>& layer : layers_)
      for (std::size_t at = 0; at < layer.size(); ++at) nodes_[layer[at]].place = static_cast<double>(at);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      std::vector<std::size_t>& layer = layers_[down ? layers_.size() - 1 - i : i];
      std::vector<std::pair<double, std::size_t>> keys;
      for (const std::size_t at : layer) {
        const std::vector<std::size_t>& neighbours = down ? nodes_[at].above : nodes_[at].below;
        double sum = 0;
        for (const std::size_t neighbour : neighbours) sum += nodes_[neighbour].place;
        keys.emplace_back(neighbours.empty() ? nodes_[at].place : sum / static_cast<double>(neighbours.size()), at);
      }
      std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (std::size_t at = 0; at < keys.size(); ++at) {
        layer[at] = keys[at].second;
        nodes_[layer[at]].place = static_cast<double>(at);
      }
    }
  }

  /// Assigns columns, from the top layer down: each node under the middle of those above it, as far as there is room.
  void place() {
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const std::vector<std::size_t>& layer = layers_[i];
      int cursor = 0;
      for (const std::size_t at : layer) {
        Node& node = nodes_[at];
        double sum = 0;
        for (const std::size_t above : node.above) sum += nodes_[above].port();
        const int middle = cursor + node.width / 2;
        node.place = node.above.empty() ? middle : sum / static_cast<double>(node.above.size());
        cursor += node.width + kGap;
      }
      place(layer, 0);
      double shift = 0;
      for (const std::size_t at : layer) shift += nodes_[at].port() - nodes_[at].place;
      shift /= static_cast<double>(layer.size());
      if (shift >= 1) place(layer, shift);
    }
  }
  void place(const std::vector<std::size_t>& layer, double shift) {
    std::optional<int> cursor;
    for (const std::size_t at : layer) {
      Node& node = nodes_[at];
      node.x = static_cast<int>(node.place - shift) - node.width / 2;
      if (cursor.has_value()) node.x = std::max(node.x, *cursor);
      while (node.port() % 2 != 0 || (!node.instance && below_a_port(node))) ++node.x;
      cursor = node.x + node.width + kGap;
    }
  }
  /// Whether a passing line would lie under a line that leaves another node.
  [[nodiscard]] bool below_a_port(const Node& node) const {
    const std::vector<std::size_t>& above = layers_[node.layer + 1];
    return std::any_of(above.begin(), above.end(), [&](std::size_t at) {
      return nodes_[at].port() == node.x && at != node.above.front() && !nodes_[at].below.empty();
    });
  }

  bool draw() {
    int least = nodes_.front().x;
    int most = 0;
    for (const Node& node : nodes_) {
      least = std::min(least, node.x);
      most = std::max(most, node.x + node.width);
    }
    picture_.width = most - least;
    int y = 0;
    picture_.boxes.resize(instances_.size());
    for (std::size_t i = layers_.size(); i-- > 0;) {
      int height = 0;
      for (const std::size_t at : layers_[i]) height = std::max(height, nodes_[at].height);
      for (const std::size_t at : layers_[i]) {
        const Node& node = nodes_[at];
        if (!node.instance) continue;
        picture_.boxes[at] = {node.x, y, node.width, node.height, labels_[at], instances_[at].gives};
      }
      y = i == 0 ? y + height : wire(i, y, y + height);
      if (static_cast<long>(y) * picture_.width > Picture::kMostCells) return false;
    }
    picture_.height = y;
    // Only now, because the columns must stay even or odd until here.
    for (PictureBox& box : picture_.boxes) box.x -= least;
    for (PictureWire& wire : picture_.wires) {
      wire.from -= least;
      for (int& to : wire.to) to -= least;
    }
    return true;
  }

  /// Places the lines from a layer to the one below it. Returns the first row of the layer below.
  int wire(std::size_t upper, int layer_top, int top) {
    std::unordered_map<std::size_t, std::vector<int>> entries;  // columns, by the upper node
    for (const std::size_t below : layers_[upper - 1]) enter(below, entries);
    struct Run {
      int begin = 0;
      int end = 0;
      std::size_t wire = 0;
    };
    std::vector<Run> runs;
    const std::size_t first = picture_.wires.size();
    for (const std::size_t at : layers_[upper]) {
      const Node& node = nodes_[at];
      if (node.below.empty()) continue;
      PictureWire wire{
          .top = node.instance ? layer_top + node.height : layer_top, .from = node.port(), .to = entries[at]};
      const auto [left, right] = std::minmax_element(wire.to.begin(), wire.to.end());
      if (wire.to.size() > 1 || wire.to.front() != wire.from)
        runs.push_back({std::min(*left, wire.from), std::max(*right, wire.from), picture_.wires.size()});
      picture_.wires.push_back(std::move(wire));
    }
    // Runs that do not touch share a row.
    std::ranges::sort(runs, {}, [](const Run& run) { return std::pair(run.begin, run.wire); });
    std::vector<int> row_ends;
    for (const Run& run : runs) {
      std::size_t row = 0;
      while (row < row_ends.size() && row_ends[row] + 1 >= run.begin) ++row;
      if (row == row_ends.size()) row_ends.push_back(0);
      row_ends[row] = run.end;
      picture_.wires[run.wire].row = top + 1 + static_cast<int>(row);
    }
    const int bottom = top + static_cast<int>(row_ends.size()) + (row_ends.empty() ? 0 : 1);
    for (std::size_t i = first; i < picture_.wires.size(); ++i) {
      picture_.wires[i].bottom = bottom;
      if (picture_.wires[i].row == 0) picture_.wires[i].row = bottom;
    }
    return bottom + 1;
  }

  /// Adds the columns at which the lines from above enter the node `below`.
  void enter(std::size_t below, std::unordered_map<std::size_t, std::vector<int>>& entries) const {
    const Node& node = nodes_[below];
    std::vector<std::pair<int, std::size_t>> aside;
    for (const std::size_t above : node.above) {
      const int port = nodes_[above].port();
      if (!node.instance)
        entries[above].push_back(node.x);
      else if (port > node.x && port < node.x + node.width - 1)
        entries[above].push_back(port);  // straight down
      else
        aside.emplace_back(port, above);
    }
    std::sort(aside.begin(), aside.end());
    std::vector<int> free;
    for (int column = node.x + 1; column < node.x + node.width - 1; ++column)
      if (column % 2 != 0) free.push_back(column);
    for (std::size_t j = 0; j < aside.size(); ++j)
      entries[aside[j].second].push_back(free[(2 * j + 1) * free.size() / (2 * aside.size())]);
  }

  const std::vector<InstanceDescription>& instances_;
  std::vector<std::vector<std::string>> labels_;
  std::vector<Node> nodes_;                       // boxes first
  std::vector<std::vector<std::size_t>> layers_;  // lowest first
  Picture picture_;
};

}  // namespace

std::optional<Picture> lay_out(const std::vector<InstanceDescription>& instances) {
  if (instances.empty()) return Picture();
  return Layout(instances).run();
}

}  // namespace lrpc::netrpc
