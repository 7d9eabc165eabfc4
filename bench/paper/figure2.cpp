// Figure 2 (LRPC §4): call throughput against the number of processors that call, with and without domain caching.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <utility>

#include "calls/lrpc_call.h"
#include "calls/lrpc_domains.h"
#include "core/interrupt.h"
#include "core/store.h"
#include "core/throughput.h"
#include "floors/floors.h"
#include "paper.h"
#include "report/statistics.h"
#include "report/svg_plot.h"
#include "session.h"

namespace lrpc::bench {
namespace {

using std::chrono::milliseconds;

constexpr double kScalingBar = 0.95;
constexpr std::size_t kMostAlone = 4;  ///< At most this many of the callers also run alone; the mean is the rate of
                                       ///< one.

using Callers = std::vector<std::unique_ptr<Caller>>;

/// One of the curves.
struct Curve {
  std::string_view name;
  std::string_view placement;
  /// How many clients this machine allows; 0: the curve is left out.
  std::size_t (*most)(std::size_t cores);
  Result<Callers> (*make)(Session& session, std::size_t clients);
  Result<Callers> (*make_floor)(Session& session, std::size_t clients);  ///< Null: no floor applies.
  bool like_the_paper = false;                                           ///< Each call switches domains, as in the
                                                                         ///< paper.
};

/// One caller on each of `seats`, with the contender that `make` returns for it.
Result<Callers> callers_on(Session& session, const std::vector<Seats>& seats,
                           const std::function<Result<std::unique_ptr<Contender>>(const Seats&)>& make) {
  Callers callers;
  for (const Seats& one : seats) {
    auto contender = make(one);
    if (!contender) return contender.error();
    if (Status made = append(callers, Caller::create(std::move(*contender), one.client, session.clock())); !made)
      return made.error();
  }
  return callers;
}

/// The seats of `clients` clients, each with a peer of its own; each pair has `processors` processors, one or two.
std::vector<Seats> pairs(Session& session, std::size_t clients, std::size_t processors) {
  const auto each = session.cores().each();
  std::vector<Seats> seats;
  for (std::size_t i = 0; i < clients; ++i)
    seats.push_back({each[processors * i], each[processors * i + processors - 1]});
  return seats;
}

ServerOptions server_options(bool caching) { return caching ? ServerOptions() : ServerOptions{.pollers = 0}; }

/// Each client has a server of its own.
Result<Callers> own_servers(Session& session, const std::vector<Seats>& seats, bool caching) {
  return callers_on(session, seats, [caching](const Seats& pair) -> Result<std::unique_ptr<Contender>> {
    auto domains = LrpcDomains::start(pair.server, server_options(caching));
    if (!domains) return domains.error();
    return make_lrpc_call(std::shared_ptr<LrpcDomains>(std::move(*domains)), shim::Gate::adaptive, LrpcTest::null);
  });
}

/// All clients call one server, which runs on `server`; client i runs on clients[i].
Result<Callers> shared_server(Session& session, const std::vector<Seat>& clients, const Seat& server, bool caching) {
  auto started = LrpcDomains::start(server, server_options(caching));
  if (!started) return started.error();
  const std::shared_ptr<LrpcDomains> domains = std::move(*started);
  std::vector<Seats> seats;
  for (const Seat& client : clients) seats.push_back({client, server});
  return callers_on(session, seats,
                    [&](const Seats&) { return make_lrpc_call(domains, shim::Gate::adaptive, LrpcTest::null); });
}

std::vector<Seat> first_of(std::vector<Seat> seats, std::size_t count) {
  seats.resize(count);
  return seats;
}

Seat others_than(const std::vector<Seat>& all, std::size_t count) {
  Seat seat;
  CPU_ZERO(&seat);
  for (std::size_t i = count; i < all.size(); ++i) CPU_OR(&seat, &seat, &all[i]);
  return seat;
}

Result<Callers> yield_floors(Session& session, std::size_t n) {
  return callers_on(session, pairs(session, n, 1), make_yield_floor);
}
Result<Callers> polling_floors(Session& session, std::size_t n) {
  return callers_on(session, pairs(session, n, 2), make_polling_floor);
}

const Curve kCurves[] = {
    {"off, own servers", "one-core", [](std::size_t cores) { return cores; },
     [](Session& s, std::size_t n) { return own_servers(s, pairs(s, n, 1), false); }, yield_floors, true},
    {"off, one server", "clients pinned", [](std::size_t cores) { return cores; },
     [](Session& s, std::size_t n) {
       return shared_server(s, first_of(s.cores().each(), n), s.cores().seats(Placement::unpinned).server, false);
     },
     yield_floors, true},
    {"on, own servers", "two-cores", [](std::size_t cores) { return cores / 2; },
     [](Session& s, std::size_t n) { return own_servers(s, pairs(s, n, 2), true); }, polling_floors},
    {"on, one server", "clients pinned", [](std::size_t cores) { return cores - 1; },
     [](Session& s, std::size_t n) {
       return shared_server(s, first_of(s.cores().each(), n), others_than(s.cores().each(), n), true);
     },
     nullptr},
    {"on, one server", "unpinned", [](std::size_t cores) { return cores; },
     [](Session& s, std::size_t n) {
       const Seat anywhere = s.cores().seats(Placement::unpinned).client;
       return shared_server(s, std::vector<Seat>(n, anywhere), anywhere, true);
     },
     nullptr}};

Result<Rates> run_round(const Callers& callers, milliseconds length, const TickClock& clock) {
  std::vector<Caller*> all;
  for (const auto& caller : callers) all.push_back(caller.get());
  const std::size_t alone = std::min(all.size(), kMostAlone);
  Rates rates;
  for (std::size_t i = 0; i < alone && all.size() > 1; ++i) {
    auto rate = Caller::rate({&all[i], 1}, length, clock);
    if (!rate) return rate.error();
    rates.alone += *rate / static_cast<double>(alone);
  }
  if (Status ran = store(rates.together, Caller::rate(all, length, clock)); !ran) return ran.error();
  if (all.size() == 1) rates.alone = rates.together;
  return rates;
}

/// One point of a curve.
struct Point {
  double rate = 0;
  double scaling = 1;
  std::optional<double> floor_rate;
  std::optional<double> floor_scaling;
  std::optional<double> ratio;  ///< Median of the rounds' ratios of our scaling to the floor's.
};

Result<Point> measure_point(Session& session, const Curve& curve, std::size_t clients) {
  const int rounds = session.quick() ? 5 : 15;
  const milliseconds length(session.quick() ? 20 : 50);
  auto ours = curve.make(session, clients);
  if (!ours) return ours.error();
  Callers floor;
  if (curve.make_floor != nullptr)
    if (Status made = store(floor, curve.make_floor(session, clients)); !made) return made.error();
  std::vector<double> rates, scalings, floor_rates, floor_scalings, ratios;
  for (int round = -1; round < rounds; ++round) {  // the first is the warm-up
    auto call = run_round(*ours, length, session.clock());
    if (!call) return call.error();
    std::optional<Rates> bare;
    if (!floor.empty())
      if (Status ran = store(bare, run_round(floor, length, session.clock())); !ran) return ran.error();
    if (round < 0) continue;
    rates.push_back(call->together);
    scalings.push_back(scaling(*call, clients));
    if (!bare) continue;
    floor_rates.push_back(bare->together);
    floor_scalings.push_back(scaling(*bare, clients));
    ratios.push_back(scalings.back() / floor_scalings.back());
  }
  Point point{.rate = median(rates), .scaling = median(scalings), .floor_rate = {}, .floor_scaling = {}, .ratio = {}};
  if (!ratios.empty()) {
    point.floor_rate = median(floor_rates);
    point.floor_scaling = median(floor_scalings);
    point.ratio = median(ratios);
  }
  return point;
}

const paper::CallRate* paper_rate(std::size_t processors) {
  const auto* const found = std::find_if(paper::kFigure2.begin(), paper::kFigure2.end(),
                                         [&](const auto& rate) { return rate.processors == processors; });
  return found == paper::kFigure2.end() ? nullptr : found;
}

void emit(Session& session, const Table& table, const Curve& curve, std::size_t clients, const Point& point) {
  const paper::CallRate* const printed = curve.like_the_paper ? paper_rate(clients) : nullptr;
  const auto& one = paper::kFigure2.front();
  const bool judged = clients > 1 && point.ratio;
  table.print(
      {std::string(curve.name), std::string(curve.placement), fmt::format("{}", clients), number(point.rate),
       number(point.floor_rate), ratio(point.scaling), ratio(point.floor_scaling),
       clients > 1 ? ratio(point.ratio) : "-",
       printed == nullptr ? "-" : fmt::format("{:g}", printed->calls_per_second),
       printed == nullptr ? "-" : ratio(printed->calls_per_second / (one.calls_per_second * printed->processors)),
       judged && *point.ratio < kScalingBar ? "MISSED" : ""});
  session.emit_json(
      {.bench = "figure2",
       .gate = "adaptive",
       .placement = curve.placement,
       .test = fmt::format("{}, {} clients", curve.name, clients),
       .unit = "calls/s",
       .figures = Figures::exactly(point.rate, 0, point.floor_rate, clients > 1 ? point.ratio : std::nullopt)});
}

}  // namespace

void figure2(Session& session) {
  print_intro("Figure 2: calls per second against the number of clients",
              fmt::format("off, on: domain caching. scaling: rate of n clients together / (n x rate of one while the "
                          "others sleep). floor: as many bare ping-pongs: by yield, one a core, or by polling, one on "
                          "every two cores. ratio: median of the rounds' scaling / floor's scaling (bar {:g}). The "
                          "paper: its own rate and scaling; SRC RPC levels off at {:g} with two.",
                          kScalingBar, paper::kSrcRpcMostCalls));
  const Table table{{"caching", -16}, {"placement", -14}, {"clients", 7}, {"calls/s", 10},
                    {"floor's", 10},  {"scaling", 7},     {"floor's", 7}, {"ratio", 6},
                    {"paper", 7},     {"scaling", 7},     {"", -6}};
  const std::size_t cores = session.cores().each().size();
  SvgPlot plot("Calls per second", {"clients"}, {"calls/s", true});
  std::array<bool, 2> floors_drawn{};
  for (const Curve& curve : kCurves) {
    Series line{fmt::format("{}, {}", curve.name, curve.placement), {}};
    Series floor_line{curve.make_floor == yield_floors ? "yield floor" : "polling floor", {}, true};
    for (const std::size_t clients : client_counts(curve.most(cores))) {
      if (interrupted()) return;
      auto point = measure_point(session, curve, clients);
      if (interrupted()) return;
      if (!session.check(point, fmt::format("{}, {}, {} clients", curve.name, curve.placement, clients))) continue;
      emit(session, table, curve, clients, *point);
      line.points.emplace_back(clients, point->rate);
      if (point->floor_rate) floor_line.points.emplace_back(clients, *point->floor_rate);
    }
    plot.add(line);
    const bool drawn =
        std::exchange(floors_drawn[curve.make_floor == yield_floors ? 0 : 1], !floor_line.points.empty());
    if (!floor_line.points.empty() && !drawn) plot.add(floor_line);
  }
  Series paper_line{"the paper", {}, true};
  for (const auto& rate : paper::kFigure2) paper_line.points.emplace_back(rate.processors, rate.calls_per_second);
  plot.add(paper_line);
  session.draw("figure2", plot.str());
}

}  // namespace lrpc::bench
