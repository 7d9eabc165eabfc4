// Latency over time while conditions change: how soon the adaptive gate has settled again.
#include <fmt/format.h>

#include <cmath>

#include "calls/lrpc_domains.h"
#include "core/futex.h"
#include "core/interrupt.h"
#include "core/readapt.h"
#include "core/store.h"
#include "load/hog.h"
#include "report/statistics.h"
#include "report/svg_plot.h"
#include "session.h"
#include "timeline.h"

namespace lrpc::bench {
namespace {

using std::chrono::milliseconds;

/// A hog that can be switched between computing and sleeping; a switch starts no process.
class SwitchedHog {
 public:
  static Result<SwitchedHog> start(const Seat& seat) {
    auto on = Shared<std::atomic<std::uint32_t>>::create();
    if (!on) return on.error();
    SwitchedHog hog(std::move(*on));
    const auto compute = [&]() -> int {
      for (std::atomic<std::uint32_t>& word = *hog.on_;;)
        while (word.load(std::memory_order_relaxed) == 0) futex_wait(word, 0);
    };
    if (Status up = store(hog.process_, Child::spawn("bench-hog", seat, compute)); !up) return up.error();
    return hog;
  }
  void turn(bool on) noexcept {
    on_->store(on ? 1 : 0, std::memory_order_relaxed);
    if (on) futex_wake(*on_);
  }

 private:
  explicit SwitchedHog(Shared<std::atomic<std::uint32_t>> on) : on_(std::move(on)) {}
  Shared<std::atomic<std::uint32_t>> on_;
  Child process_;
};

/// The processes that a change can affect.
struct World {
  pid_t client;
  pid_t server;
  SwitchedHog& hog;
  const Cores& cores;
};

/// A change, and how it is undone.
struct Change {
  std::string_view name;     ///< The scenario's, for files and JSON.
  std::string_view happens;  ///< "hog starts"
  std::string_view undone;
  Placement placement;  ///< Before the change. The hog always runs on the server's seat (if unpinned: anywhere).
  void (*make)(const World&);
  void (*undo)(const World&);
};

const Change kChanges[] = {
    {"hog", "hog starts", "hog stops", Placement::unpinned, [](const World& world) { world.hog.turn(true); },
     [](const World& world) { world.hog.turn(false); }},
    {"poller", "hog on the poller's core", "hog stops", Placement::two_cores,
     [](const World& world) { world.hog.turn(true); }, [](const World& world) { world.hog.turn(false); }},
    {"migration", "client moves to the poller's core", "client moves back", Placement::two_cores,
     [](const World& world) { seat_process(world.client, world.cores.seats(Placement::two_cores).server); },
     [](const World& world) { seat_process(world.client, world.cores.seats(Placement::two_cores).client); }},
    {"narrow", "both narrowed to one core", "both on every core", Placement::unpinned,
     [](const World& world) {
       for (const pid_t process : {world.client, world.server})
         seat_process(process, world.cores.seats(Placement::one_core).client);
     },
     [](const World& world) {
       for (const pid_t process : {world.client, world.server})
         seat_process(process, world.cores.seats(Placement::unpinned).client);
     }},
};

/// The course of one scenario: three phases, and the ticks at which each began.
struct Course {
  std::array<std::uint64_t, 3> begun{};
  std::unique_ptr<TimelineClient> client;
};

Result<Course> run_course(Session& session, const Change& change) {
  const milliseconds length(session.quick() ? 200 : 600);
  const Seats seats = session.cores().seats(change.placement);
  auto domains = LrpcDomains::start(seats.server);
  if (!domains) return domains.error();
  const pid_t server = (*domains)->server_pid();
  auto hog = SwitchedHog::start(seats.server);
  if (!hog) return hog.error();
  Course course;
  if (Status up = store(course.client, TimelineClient::create(std::move(*domains), seats.client, session.clock())); !up)
    return up.error();
  const World world{course.client->pid(), server, *hog, session.cores()};
  course.client->start();
  interruptible_sleep(length + milliseconds(300));  // and 300 ms for the warm-up
  course.begun[1] = ticks_begin();
  change.make(world);
  interruptible_sleep(length);
  course.begun[2] = ticks_begin();
  change.undo(world);
  interruptible_sleep(length);
  if (auto stopped = course.client->stop(); !stopped) return stopped.error();
  course.begun[0] = course.client->record().begun;
  return course;
}

/// The medians of a phase's windows, in ns.
std::vector<double> windows_of(const Course& course, std::size_t phase, const TickClock& clock) {
  const TimelineRecord& record = course.client->record();
  const std::uint64_t from = course.begun[phase];
  const std::uint64_t to = phase + 1 < course.begun.size() ? course.begun[phase + 1] : ~std::uint64_t{0};
  std::vector<double> medians;
  for (std::size_t i = 0; i < record.windows_used; ++i) {
    const CallWindow& window = record.windows[i];
    if (window.begun >= from && window.begun < to) medians.push_back(clock.ns(window.median));
  }
  return medians;
}

/// Nanoseconds over milliseconds, a point for each 5 ms bucket.
struct Lines {
  Series median{"median", {}};
  Series p99{"p99", {}};
};
Lines lines_of(const TimelineRecord& record, const TickClock& clock) {
  Lines lines;
  std::size_t used = record.buckets.size();
  while (used > 0 && record.buckets[used - 1].count() == 0) --used;
  for (std::size_t i = 0; i < used; ++i) {
    const double ms = static_cast<double>(i) * static_cast<double>(TimelineRecord::kBucket.count());
    lines.median.points.emplace_back(ms, record.buckets[i].quantile(0.5) * clock.ns(1));
    lines.p99.points.emplace_back(ms, record.buckets[i].quantile(0.99) * clock.ns(1));
  }
  return lines;
}

void emit(Session& session, const Table& table, const Change& change, const Course& course) {
  const TickClock& clock = session.clock();
  const TimelineRecord& record = course.client->record();
  const auto ms_at = [&](std::size_t phase) { return clock.ns(course.begun[phase] - course.begun[0]) / 1e6; };
  const std::array<std::string_view, 3> events = {"(begin)", change.happens, change.undone};
  const Lines lines = lines_of(record, clock);
  for (std::size_t phase = 0; phase < events.size(); ++phase) {
    const auto windows = windows_of(course, phase, clock);
    const Phase judged{windows, TimelineRecord::kCallsPerWindow};
    const double steady = steady_state(judged);
    const auto calls = calls_to_readapt(judged);
    std::vector<double> p99;
    for (const auto& [ms, value] : lines.p99.points) {
      const bool inside = ms >= ms_at(phase) && (phase + 1 == events.size() || ms < ms_at(phase + 1));
      if (inside && std::isfinite(value)) p99.push_back(value);
    }
    // The first phase begins after the warm-up, and so shows only the steady state.
    const bool late = phase > 0 && (!calls || *calls > kReadaptedCalls);
    table.print({std::string(change.name), std::string(events[phase]), fmt::format("{:.0f}", ms_at(phase)),
                 number(steady), number(median(p99)),
                 phase == 0 ? "-"
                 : calls    ? fmt::format("{}", *calls)
                            : "never",
                 fmt::format("{}", windows.size() * TimelineRecord::kCallsPerWindow), late ? "MISSED" : ""});
    if (phase == 0 || !calls) continue;
    session.emit_json(
        {.bench = "change",
         .gate = "adaptive",
         .placement = name(change.placement),
         .test = std::string(events[phase]),
         .unit = "calls",
         .figures = Figures::exactly(static_cast<double>(*calls), windows.size() * TimelineRecord::kCallsPerWindow)});
  }
  for (std::size_t i = 0; i < lines.median.points.size(); ++i) {
    if (record.buckets[i].count() == 0) continue;  // a call took longer than the bucket
    session.emit_json({.bench = "change",
                       .gate = "adaptive",
                       .placement = name(change.placement),
                       .test = fmt::format("{} at {:g} ms", change.name, lines.median.points[i].first),
                       .figures = figures_of(record.buckets[i], clock.ns(1))});
  }
  SvgPlot plot(fmt::format("Null, adaptive: {}", change.happens), {"ms"}, {"ns", true});
  plot.add(lines.median);
  plot.add(lines.p99);
  plot.mark(ms_at(1), std::string(change.happens));
  plot.mark(ms_at(2), std::string(change.undone));
  session.draw(fmt::format("change-{}", change.name), plot.str());
}

}  // namespace

void change(Session& session) {
  print_intro("When the world changes: Null, ns, adaptive, back to back",
              fmt::format("steady: median of the second half of the phase. p99: median of those of its 5 ms buckets. "
                          "calls to settle: until the median of {} calls, and of the next {} such windows, is within "
                          "{:g} of the steady state (bar {}). --svg writes the timelines.",
                          TimelineRecord::kCallsPerWindow, kSettled - 1, kReadaptedWithin, kReadaptedCalls));
  const Table table{{"scenario", -10}, {"what happens", -34},   {"at ms", 6}, {"steady", 9},
                    {"p99", 9},        {"calls to settle", 15}, {"calls", 9}, {"", -6}};
  for (const Change& one : kChanges) {
    if (!session.cores().has_two()) break;
    if (interrupted()) return;
    if (!session.wants(one.placement)) continue;
    auto course = run_course(session, one);
    if (interrupted()) return;
    if (session.check(course, one.name)) emit(session, table, one, *course);
  }
  if (!session.cores().has_two()) print_note("skipped: each of the changes needs a second processor.");
}

}  // namespace lrpc::bench
