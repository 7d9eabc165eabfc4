#include "fresh_run.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <thread>

#include "bench.client.h"
#include "calls/procedures.h"
#include "core/child.h"
#include "core/control_group.h"
#include "core/hog.h"
#include "core/interrupt.h"
#include "core/process_usage.h"
#include "core/third_party.h"
#include "lrpc/server.h"

namespace lrpc::bench {
namespace {

using std::chrono::nanoseconds;

constexpr unsigned kMostCallers = 8;
constexpr std::size_t kMostWindows = 400;
constexpr auto kReady = std::chrono::seconds(10);

/// What the processes of a run share.
struct Desk {
  std::atomic<std::uint32_t> servers_ready;
  std::atomic<std::uint32_t> callers_ready;
  std::atomic<std::uint32_t> failed;
  std::atomic<std::uint64_t> begin;  ///< ticks; 0: not yet.
  struct Caller {
    Histogram calls;
    double medians[kMostWindows];
  } callers[kMostCallers];
};

struct TimedProcedures : Procedures {
  std::uint64_t ticks = 0;
  void Null(CallContext& /*context*/) noexcept {
    if (ticks != 0) compute_for(ticks);
  }
};

/// The client's half of a run: one thread's calls.
class Caller {
 public:
  Caller(const Situation& situation, const TickClock& clock, nanoseconds length, Desk& desk, Desk::Caller& book)
      : situation_(situation),
        desk_(desk),
        book_(book),
        length_(clock.ticks(length)),
        window_(clock.ticks(FreshRun::kWindow)),
        think_(clock.ticks(situation.think)),
        burst_(clock.ticks(situation.burst)),
        overhead_(clock.overhead()) {}

  /// False: a call failed.
  bool run(::Bench::Client& client) {
    desk_.callers_ready.fetch_add(1);
    std::uint64_t begin = 0;
    while ((begin = desk_.begin.load(std::memory_order_acquire)) == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    std::uint64_t burst_began = begin;
    for (;;) {
      const std::uint64_t before = ticks_begin();
      const std::uint64_t at = before > begin ? before - begin : 0;
      if (at / window_ != index_) end_window(at / window_);
      if (at >= length_) return true;
      if (!call(client)) return false;
      const std::uint64_t after = ticks_end();
      const std::uint64_t took = std::max<std::uint64_t>(after - before, overhead_) - overhead_;
      book_.calls.add(took / std::max(1U, situation_.started));
      of_window_->add(took / std::max(1U, situation_.started));
      if (think_ != 0) compute_for(think_);
      if (situation_.sleep.count() != 0) std::this_thread::sleep_for(situation_.sleep);
      if (burst_ != 0 && after - burst_began > burst_) {
        std::this_thread::sleep_for(situation_.burst);
        burst_began = ticks_begin();
      }
    }
  }

 private:
  [[nodiscard]] bool call(::Bench::Client& client) const {
    if (situation_.started == 0) return client.Null().has_value();
    std::array<decltype(std::optional(client.start().Null())), kMostStarted> calls;
    for (unsigned i = 0; i < situation_.started; ++i) calls[i].emplace(client.start().Null());
    bool all = true;
    for (unsigned i = 0; i < situation_.started; ++i) all &= calls[i]->finish().has_value();
    return all;
  }
  void end_window(std::uint64_t next) {
    if (index_ < kMostWindows) book_.medians[index_] = of_window_->quantile(0.5);
    for (std::uint64_t i = index_ + 1; i < std::min<std::uint64_t>(next, kMostWindows); ++i)
      book_.medians[i] = std::numeric_limits<double>::quiet_NaN();
    of_window_->clear();
    index_ = next;
  }

  static constexpr unsigned kMostStarted = 8;
  const Situation& situation_;
  Desk& desk_;
  Desk::Caller& book_;
  const std::uint64_t length_, window_, think_, burst_, overhead_;
  std::uint64_t index_ = 0;
  std::unique_ptr<Histogram> of_window_ = std::make_unique<Histogram>();
};

int be_server(std::vector<UniqueFd> ends, nanoseconds procedure, const TickClock& clock, Desk& desk) {
  TimedProcedures procedures;
  procedures.ticks = clock.ticks(procedure);
  Server server;
  for (UniqueFd& end : ends) {
    if (!::Bench::serve_over(server, std::move(end), procedures)) return 1;
  }
  desk.servers_ready.fetch_add(1);
  for (;;) ::pause();
}

int be_client(UniqueFd end, Gate gate, const Situation& situation, unsigned first, const TickClock& clock,
              nanoseconds length, Desk& desk) {
  ImportOptions options;
  options.gate = gate;
  if (situation.started != 0) options.supply = AStackSupply::grow;  // more than the interface has A-stacks
  auto client = ::Bench::Client::import_over(std::move(end), options);
  if (!client) return 1;
  std::atomic<bool> failed{false};
  const auto body = [&](unsigned index) {
    if (situation.fifo && !become_fifo()) failed = true;
    if (!Caller(situation, clock, length, desk, desk.callers[index]).run(*client)) failed = true;
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < situation.threads; ++i) others.emplace_back(body, first + i);
  body(first);
  for (auto& other : others) other.join();
  return failed ? 1 : 0;
}

Seats seats_of(const Situation& situation, const Cores& cores) {
  using Where = Situation::Where;
  switch (situation.where) {
    case Where::one_processor: return cores.seats(Placement::one_core);
    case Where::apart: return cores.seats(Placement::two_cores);
    case Where::server_confined:
      return {.client = cores.seats(Placement::unpinned).client, .server = cores.seats(Placement::two_cores).server};
    case Where::anywhere:
    case Where::moved: break;
  }
  return cores.seats(Placement::unpinned);
}

Status await(const std::atomic<std::uint32_t>& count, std::uint32_t wanted, std::string_view whom) {
  for (const auto begun = std::chrono::steady_clock::now(); count.load() < wanted;) {
    if (interrupted()) return Error{Errc::call_aborted, "interrupted"};
    if (std::chrono::steady_clock::now() - begun > kReady)
      return Error{Errc::timed_out, std::string(whom) + " did not become ready"};
    interruptible_sleep(std::chrono::microseconds(500));
  }
  return {};
}

/// As taskset -p does: from one processor to the next, until the process has gone.
int move_about(pid_t process, const std::vector<Seat>& seats) {
  for (;;) {
    for (const Seat& seat : seats) {
      if (::sched_setaffinity(process, sizeof seat, &seat) != 0) return 0;
      std::this_thread::sleep_for(FreshRun::kWindow);
    }
  }
}

/// The group that clients and servers are to be in, if any.
Result<std::optional<ControlGroup>> group_of(const Situation& situation) {
  std::optional<ControlGroup> none;
  if (situation.processors == 0 && situation.weight == 1) return none;
  auto group = ControlGroup::create("default", situation.weight);
  if (!group) return group.error();
  if (situation.processors != 0) {
    if (Status done = group->limit(situation.processors); !done) return done.error();
  }
  return std::optional(std::move(*group));
}

double seconds(const std::vector<Child>& processes) {
  double all = 0;
  for (const Child& process : processes) {
    if (const auto usage = cpu_usage(process.pid())) all += static_cast<double>(usage->ns) / 1e9;
  }
  return all;
}

}  // namespace

Result<FreshRun> run_fresh(const Situation& situation, Gate gate, const Cores& cores, const TickClock& clock,
                           std::chrono::milliseconds length) {
  auto desk = Shared<Desk>::create();
  if (!desk) return desk.error();
  if (situation.fifo) {
    if (Status done = try_fifo(); !done) return done.error();
  }
  auto group = group_of(situation);
  if (!group) return group.error();
  const auto admit = [&](const Child& process) { return *group ? (*group)->take(process.pid()) : Status{}; };
  const Seats seats = seats_of(situation, cores);
  const Seat anywhere = cores.seats(Placement::unpinned).client;

  std::vector<Child> hogs;
  for (unsigned i = 0; i < situation.hogs; ++i) {
    auto hog = start_hog(anywhere);
    if (!hog) return hog.error();
    hogs.push_back(std::move(*hog));
  }
  std::optional<ThirdParty> third;
  if (situation.third_party) {
    auto started = ThirdParty::start(anywhere);
    if (!started) return started.error();
    third.emplace(std::move(*started));
  }

  std::vector<UniqueFd> client_ends(situation.clients);
  std::vector<std::vector<UniqueFd>> server_ends(situation.servers);
  for (unsigned i = 0; i < situation.clients; ++i) {
    auto ends = shim::make_socket_pair();
    if (!ends) return ends.error();
    client_ends[i] = std::move(ends->first);
    server_ends[i % situation.servers].push_back(std::move(ends->second));
  }
  std::vector<Child> servers;
  for (auto& ends : server_ends) {
    auto server = Child::spawn("bench-server", seats.server, [&] {
      client_ends.clear();
      return be_server(std::move(ends), situation.procedure, clock, **desk);
    });
    if (!server) return server.error();
    if (Status done = admit(*server); !done) return done.error();
    servers.push_back(std::move(*server));
    ends.clear();
  }
  if (Status ready = await((*desk)->servers_ready, situation.servers, "a server"); !ready) return ready.error();
  std::vector<Child> clients;
  for (unsigned i = 0; i < situation.clients; ++i) {
    auto client = Child::spawn("bench-client", seats.client, [&] {
      UniqueFd end = std::move(client_ends[i]);
      client_ends.clear();
      return be_client(std::move(end), gate, situation, i * situation.threads, clock, length, **desk);
    });
    if (!client) return client.error();
    if (Status done = admit(*client); !done) return done.error();
    clients.push_back(std::move(*client));
    client_ends[i].reset();
  }
  std::vector<Child> movers;
  for (const Child& client : clients) {
    if (situation.where != Situation::Where::moved) break;
    auto mover = Child::spawn("bench-mover", anywhere, [&] { return move_about(client.pid(), cores.each()); });
    if (!mover) return mover.error();
    movers.push_back(std::move(*mover));
  }
  const unsigned callers = situation.clients * situation.threads;
  if (Status ready = await((*desk)->callers_ready, callers, "a client"); !ready) return ready.error();

  const double hogs_before = seconds(hogs);
  if (third) third->open_book(0);
  (*desk)->begin.store(ticks_begin(), std::memory_order_release);
  FreshRun run;
  for (Child& client : clients) {
    const auto ended = client.wait(length + kReady);
    if (!ended) return ended.error();
    if (*ended != 0) return Error{Errc::call_failed, "a call failed"};
  }
  run.hogs = (seconds(hogs) - hogs_before) / std::chrono::duration<double>(length).count();
  if (third) {
    third->open_book(ThirdParty::kBooks);
    run.third_party = third->book(0);
  }
  const auto windows = static_cast<std::size_t>(length / FreshRun::kWindow);
  run.windows.assign(std::min(windows, kMostWindows), std::numeric_limits<double>::quiet_NaN());
  for (unsigned i = 0; i < callers; ++i) {
    const Desk::Caller& caller = (*desk)->callers[i];
    run.calls.add(caller.calls);
    for (std::size_t w = 0; w < run.windows.size(); ++w) {
      const double median = clock.ns(1) * caller.medians[w];
      if (!std::isnan(median) && !(run.windows[w] >= median)) run.windows[w] = median;
    }
  }
  return run;
}

}  // namespace lrpc::bench
