// What a user gets who chooses no gate and pins nothing, against what the best fixed gate would have given: fresh
// processes for each run, in every situation that we could think of.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/interrupt.h"
#include "core/session.h"
#include "core/statistics.h"
#include "core/strips.h"
#include "core/svg_plot.h"
#include "fresh_run.h"

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;
using Where = Situation::Where;

struct Named {
  Gate gate;
  std::string_view name;
};
constexpr std::array<Named, 4> kGates{
    {{Gate::adaptive, "default"}, {Gate::exchange, "exchange"}, {Gate::handoff, "handoff"}, {Gate::sleep, "sleep"}}};
constexpr double kGoodFactor = 1.5;  ///< Of the best fixed gate's median: a window up to that is good.
constexpr double kMedianBar = 1.25;
constexpr double kP99Bar = 2;

std::vector<Situation> patterns() {
  return {{.name = "back to back"},
          {.name = "think 1 us", .think = 1us},
          {.name = "think 10 us", .think = 10us},
          {.name = "think 100 us", .think = 100us},
          {.name = "think 1 ms", .think = 1ms},
          {.name = "sleep 100 us", .sleep = 100us},
          {.name = "sleep 1 ms", .sleep = 1ms},
          {.name = "bursts of 2 ms", .burst = 2ms},
          {.name = "procedure of 5 us", .procedure = 5us},
          {.name = "procedure of 50 us", .procedure = 50us},
          {.name = "8 started at once", .started = 8},
          {.name = "2 threads", .threads = 2},
          {.name = "4 threads", .threads = 4},
          {.name = "2 clients", .clients = 2},
          {.name = "4 clients", .clients = 4},
          {.name = "2 servers", .clients = 2, .servers = 2}};
}

std::vector<Situation> situations(bool has_two) {
  std::vector<Situation> all;
  const auto add = [&](Situation situation, std::string_view with) {
    if (!with.empty()) situation.name += fmt::format(", {}", with);
    all.push_back(std::move(situation));
  };
  for (const Situation& pattern : patterns()) add(pattern, "");
  for (Situation pattern : patterns()) {
    if (has_two && pattern.threads == 1 && pattern.clients == 1) {
      pattern.where = Where::apart;
      add(pattern, "a processor each");
      pattern.where = Where::server_confined;
      add(pattern, "server confined");
    }
    pattern.where = Where::one_processor;
    add(pattern, "one processor");
  }
  for (const Situation& pattern : patterns()) {
    for (const unsigned hogs : {1U, 2U}) {
      Situation beside = pattern;
      beside.hogs = hogs;
      add(beside, hogs == 1 ? "a hog" : "2 hogs");
    }
    Situation beside = pattern;
    beside.third_party = true;
    add(beside, "a third party");
  }
  for (const Situation& pattern : patterns()) {
    if (pattern.name != "back to back" && pattern.name != "think 10 us" && pattern.name != "sleep 1 ms") continue;
    Situation half = pattern;
    half.processors = 0.5;
    add(half, "half a processor");
    Situation light = pattern;
    light.weight = 0.1;
    light.hogs = 1;
    add(light, "a tenth of a hog's weight");
    Situation fifo = pattern;
    fifo.fifo = true;
    add(fifo, "SCHED_FIFO");
    Situation moved = pattern;
    moved.where = Where::moved;
    if (has_two) add(moved, "moved each 10 ms");
  }
  return all;
}

/// Of each kind the plainest.
std::vector<Situation> plainest(std::vector<Situation> all) {
  constexpr std::array<std::string_view, 14> kQuick{"back to back",
                                                    "think 10 us",
                                                    "think 100 us",
                                                    "think 1 ms",
                                                    "sleep 1 ms",
                                                    "procedure of 5 us",
                                                    "2 threads",
                                                    "2 clients",
                                                    "back to back, a processor each",
                                                    "back to back, server confined",
                                                    "back to back, one processor",
                                                    "back to back, a hog",
                                                    "think 10 us, 2 hogs",
                                                    "think 10 us, a third party"};
  std::erase_if(all, [&](const Situation& one) { return std::ranges::find(kQuick, one.name) == kQuick.end(); });
  return all;
}

/// One gate's runs in a situation. Times in nanoseconds.
struct Runs {
  std::vector<FreshRun> runs;

  /// The median over the runs of what `figure` says of each.
  template <class Figure>
  [[nodiscard]] double middle(Figure&& figure) const {
    std::vector<double> figures;
    for (const FreshRun& run : runs) figures.push_back(figure(run));
    return bench::median(figures);
  }
  [[nodiscard]] double median(const TickClock& clock) const {
    return clock.ns(1) * middle([](const FreshRun& run) { return run.calls.quantile(0.5); });
  }
  [[nodiscard]] double mean(const TickClock& clock) const {
    return clock.ns(1) * middle([](const FreshRun& run) { return run.calls.mean(); });
  }
  [[nodiscard]] double p99(const TickClock& clock) const {
    return clock.ns(1) * middle([](const FreshRun& run) { return run.calls.quantile(0.99); });
  }
  [[nodiscard]] double longest(const TickClock& clock) const {
    double most = 0;
    for (const FreshRun& run : runs) most = std::max(most, clock.ns(run.calls.max()));
    return most;
  }
  [[nodiscard]] double hogs() const {
    return middle([](const FreshRun& run) { return run.hogs; });
  }
  [[nodiscard]] double third_party() const {
    return middle([](const FreshRun& run) { return run.third_party.mean(); });
  }
};

/// Of the windows of a run in which there were calls, how many were good; and when the first of them began, in ms.
double good_share(const FreshRun& run, double good) {
  std::size_t all = 0;
  std::size_t best = 0;
  for (const double window : run.windows) {
    all += std::isnan(window) ? 0U : 1U;
    best += window <= good ? 1U : 0U;
  }
  return all == 0 ? 0 : 100.0 * static_cast<double>(best) / static_cast<double>(all);
}
double first_good(const FreshRun& run, double good) {
  const auto found = std::ranges::find_if(run.windows, [&](double window) { return window <= good; });
  if (found == run.windows.end()) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>((found - run.windows.begin()) * FreshRun::kWindow.count());
}

std::vector<Column> columns() {
  return {{"situation", -38}, {"median", 8},   {"mean", 8},     {"worst", 8},  {"p99", 8},   {"max us", 7},
          {"best", -8},       {"median", 8},   {"x median", 8}, {"x mean", 7}, {"x p99", 6}, {"good %", 6},
          {"worst", 6},       {"first ms", 8}, {"others", 7},   {"missed", -8}};
}

/// In alternation, so that whatever the host does to one it does to the others.
Result<std::array<Runs, kGates.size()>> run_all(Session& session, const Situation& situation, int rounds) {
  const auto length = session.quick() ? 250ms : 300ms;
  std::array<Runs, kGates.size()> all;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < kGates.size(); ++i) {
      if (interrupted()) return Error{Errc::call_aborted, "interrupted"};
      auto run = run_fresh(situation, kGates[i].gate, session.cores(), session.clock(), length);
      if (!run) return run.error();
      all[i].runs.push_back(std::move(*run));
    }
  }
  return all;
}

struct Judged {
  int cells = 0;
  int missed = 0;
};

void show(Session& session, const Table& table, const Situation& situation, const std::array<Runs, kGates.size()>& all,
          std::vector<Strip>& strips, Judged& judged) {
  const TickClock& clock = session.clock();
  const Runs& ours = all[0];
  std::size_t best = 1;
  for (std::size_t i = 2; i < all.size(); ++i) {
    if (all[i].median(clock) < all[best].median(clock)) best = i;
  }
  const Runs& fixed = all[best];
  double least_mean = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < all.size(); ++i) least_mean = std::min(least_mean, all[i].mean(clock));
  const double good = kGoodFactor * fixed.median(clock);
  std::vector<double> shares;
  std::vector<double> means;
  for (const FreshRun& run : ours.runs) {
    shares.push_back(good_share(run, good));
    means.push_back(clock.ns(1) * run.calls.mean());
  }
  const double x_median = ours.median(clock) / fixed.median(clock);
  const double x_p99 = ours.p99(clock) / fixed.p99(clock);
  std::string missed;
  if (x_median > kMedianBar) missed += "median ";
  if (x_p99 > kP99Bar) missed += "p99";
  ++judged.cells;
  judged.missed += missed.empty() ? 0 : 1;
  std::string others;
  if (situation.hogs != 0) others = ratio(ours.hogs() / all[3].hogs());
  if (situation.third_party) others = ratio(ours.third_party() / all[3].third_party());
  table.print({situation.name, number(ours.median(clock)), number(ours.mean(clock)),
               number(*std::ranges::max_element(means)), number(ours.p99(clock)), number(ours.longest(clock) / 1e3),
               std::string(kGates[best].name), number(fixed.median(clock)), ratio(x_median),
               ratio(ours.mean(clock) / least_mean), ratio(x_p99), number(median(shares)),
               number(*std::ranges::min_element(shares)),
               number(ours.middle([&](const FreshRun& run) { return first_good(run, good); })), others, missed});
  for (std::size_t i = 0; i < all.size(); ++i) {
    Row row{.bench = "default",
            .gate = i == 0 ? "adaptive" : kGates[i].name,
            .placement = "unpinned",
            .test = situation.name};
    row.figures = {.median = all[i].median(clock), .p99 = all[i].p99(clock), .max = all[i].longest(clock)};
    row.figures.mean = all[i].mean(clock);
    for (const FreshRun& run : all[i].runs) row.figures.calls += run.calls.count();
    session.emit_json(row);
  }
  for (std::size_t i = 0; i < ours.runs.size(); ++i) {
    Strip strip{.label = i == 0 ? situation.name : "", .times = ours.runs[i].windows};
    for (double& time : strip.times) time /= good;  // 1: good
    strips.push_back(std::move(strip));
  }
}

void run(Session& session, const std::vector<Situation>& all_situations, int rounds) {
  print_intro(
      "The default: fresh processes, nothing chosen, nothing pinned; Null, ns",
      fmt::format("Medians over the runs; worst: the worst run's. best: the fixed gate (exchange, handoff, sleep) with "
                  "the lowest median in the same minutes; x: to it (bars: median {:g}, p99 {:g}), the mean to the "
                  "lowest of their means. good: windows of 10 ms whose median is at most {:g} times the best's; first: "
                  "when the first of them began. others: what hogs get, and how long a third party takes (200 us of "
                  "work each millisecond), to the same beside callers that sleep (`Gate::sleep`).",
                  kMedianBar, kP99Bar, kGoodFactor));
  const Table table(columns());
  table.print_head();
  std::vector<Strip> strips;
  Judged judged;
  for (const Situation& situation : all_situations) {
    if (interrupted()) return;
    if (!session.filter().test.empty() && situation.name.find(session.filter().test) == std::string::npos) continue;
    auto all = run_all(session, situation, rounds);
    if (interrupted()) return;
    if (!all && (all.code() == Errc::not_permitted || all.code() == Errc::not_supported)) {
      print_note(fmt::format("skipped: {}: {}", situation.name, all.error().message()));
      continue;
    }
    if (!all) {
      session.fail(fmt::format("{}: {}", situation.name, all.error().message()));
      continue;
    }
    show(session, table, situation, *all, strips, judged);
  }
  fmt::print("\n");
  print_note(fmt::format("{} of {} situations are within both bars.", judged.cells - judged.missed, judged.cells));
  if (session.filter().svg.empty()) return;
  const std::string svg =
      strips_svg("The default gate, a strip a run, 10 ms a square; green: as the best fixed gate", strips, 1);
  if (Status written = write_picture(session.filter().svg + "/default.svg", svg); !written)
    session.fail(written.error().message());
}

}  // namespace

void default_choice(Session& session) {
  const auto all = situations(session.cores().has_two());
  if (session.quick()) return run(session, plainest(all), 3);
  run(session, all, 20);
}

void default_in_brief(Session& session) {
  run(session, plainest(situations(session.cores().has_two())), session.quick() ? 3 : 5);
}

}  // namespace lrpc::bench
