// What each layer costs, without a kernel and without a wire: Table III of RPC in the x-Kernel in nanoseconds of processor
// time on the simulated wire, its section 4.3, and the map manager's figure 6 of The x-Kernel.
#include <fmt/format.h>

#include "alternate.h"
#include "session.h"
#include "sim_pair.h"

namespace lrpc::bench {
namespace {

/// A row of the table, and the row that it is one layer above.
struct LayerRow {
  std::string_view stack;
  int below;  ///< Index of the row; -1: none.
};
constexpr LayerRow kRows[] = {
    {"ETH", -1},
    {"VIP", 0},
    {"FRAGMENT-VIP", 1},
    {"CHANNEL-FRAGMENT-VIP", 2},
    {"SELECT-CHANNEL-FRAGMENT-VIP", 3},
    {"SELECT-CHANNEL-VIPsize", -1},
    {"M_RPC-ETH", 0},
    {"M_RPC-VIP", 1},
};

Status measure_layers(Session& session) {
  std::vector<std::unique_ptr<SimPair>> pairs;
  std::vector<Subject> subjects;
  for (const LayerRow& row : kRows) {
    auto pair = SimPair::create(stack(row.stack));
    if (!pair) return Error{pair.code(), fmt::format("{}: {}", row.stack, pair.error().message())};
    StackClient& trips = (*pair)->trips();
    subjects.push_back({std::string(row.stack), [&trips] { return trips.once(0) == Errc::ok; }});
    pairs.push_back(std::move(*pair));
  }
  const Alternated measured =
      alternate(subjects, session.clock(), session.quick() ? 100 : 1000, std::chrono::milliseconds(1));
  const Table table({{"stack", -30}, {"ns a round trip", 16}, {"layer adds, ns", 15}, {"paper, ms", 10}, {"paper adds", 11}});
  table.print_head();
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const LayerRow& layer = kRows[i];
    const PaperStack& paper = stack(layer.stack).paper;
    std::optional<double> adds;
    std::optional<double> paper_adds;
    if (layer.below >= 0) {
      const auto below = static_cast<std::size_t>(layer.below);
      adds = measured.difference(i, below);
      const PaperStack& paper_below = stack(kRows[below].stack).paper;
      if (paper.latency_ms && paper_below.latency_ms) paper_adds = *paper.latency_ms - *paper_below.latency_ms;
    }
    table.print({std::string(layer.stack), number(measured.median_of(i)), number(adds), number(paper.latency_ms),
                 number(paper_adds)});
    Row row{.bench = "layers", .system = "lrpc", .gate = "none", .test = std::string(layer.stack)};
    row.figures = Figures::exactly(measured.median_of(i), measured.blocks[i].size());
    row.figures.over_floor = adds;
    session.emit_json(row);
  }
  const auto index = [](std::string_view name) {
    std::size_t i = 0;
    while (kRows[i].stack != name) ++i;
    return i;
  };
  print_note(fmt::format(
      "Layered against monolithic: {}. Section 4.3, FRAGMENT bypassed by VIPsize: {} of the layered stack, {} of M_RPC-VIP "
      "(the paper: 1.08, 0.92, 0.99).",
      ratio(measured.ratio(index("SELECT-CHANNEL-FRAGMENT-VIP"), index("M_RPC-VIP"))),
      ratio(measured.ratio(index("SELECT-CHANNEL-VIPsize"), index("SELECT-CHANNEL-FRAGMENT-VIP"))),
      ratio(measured.ratio(index("SELECT-CHANNEL-VIPsize"), index("M_RPC-VIP")))));
  return {};
}

/// Figure 6: does it matter how many sessions are open?
Status measure_sessions(Session& session) {
  constexpr Stack kFragment{"FRAGMENT-VIP",
                            "eth = ETH; ip = IP; vip = VIP over eth, ip; top = FRAGMENT(sessions = 100000) over vip;",
                            netrpc::Service::datagram};
  constexpr std::size_t kSessions[] = {1, 10, 100, 1000, 10'000};
  std::vector<std::unique_ptr<SimPair>> pairs;
  std::vector<Subject> subjects;
  for (const std::size_t count : kSessions) {
    auto pair = SimPair::create(kFragment);
    if (!pair) return pair.error();
    for (std::size_t i = 1; i < count; ++i)
      if (const Errc opened = (*pair)->open_another(); opened != Errc::ok) return Error{opened, "one more session"};
    StackClient& trips = (*pair)->trips();
    subjects.push_back({fmt::format("{} sessions", count), [&trips] { return trips.once(0) == Errc::ok; }});
    pairs.push_back(std::move(*pair));
  }
  const Alternated measured =
      alternate(subjects, session.clock(), session.quick() ? 100 : 1000, std::chrono::milliseconds(1));
  const Table table({{"open sessions", -30}, {"ns a round trip", 16}, {"to one", 10}});
  table.print_head();
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    table.print({subjects[i].name, number(measured.median_of(i)), ratio(measured.ratio(i, 0))});
    Row row{.bench = "sessions", .system = "lrpc", .gate = "none", .test = subjects[i].name};
    row.figures = Figures::exactly(measured.median_of(i), measured.blocks[i].size());
    row.figures.ratio = measured.ratio(i, 0);
    session.emit_json(row);
  }
  return {};
}

}  // namespace

void layers(Session& session) {
  print_title("Layers: a null round trip between two hosts on a simulated wire, ns of processor time");
  print_note(
      "Both hosts, all layers of both and the simulator run in one thread: two messages pushed through each layer, two "
      "demultiplexed. \"Adds\" is the median of the paired differences to the row one layer below.");
  fmt::print("\n");
  if (const Status status = measure_layers(session); !status) session.fail(status.error().message());
  print_title("Open sessions (The x-Kernel, Figure 6): FRAGMENT-VIP, ns a round trip");
  fmt::print("\n");
  if (const Status status = measure_sessions(session); !status) session.fail(status.error().message());
}

}  // namespace lrpc::bench
