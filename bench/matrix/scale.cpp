// One binding among many: what Null costs with up to 10,000 bindings open, and what each of them costs.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "calls/crowd.h"
#include "calls/lrpc_call.h"
#include "calls/lrpc_domains.h"
#include "core/interrupt.h"
#include "core/process_usage.h"
#include "core/store.h"
#include "lrpc/detail/shim/system/daemon_descriptors.h"
#include "session.h"

namespace lrpc::bench {
namespace {

constexpr double kKibBar = 64;       ///< A binding's memory, without the E-stacks' kernel stacks.
constexpr double kLatencyBar = 1.1;  ///< Null beside 9,999 other bindings, relative to Null alone.
constexpr std::uint32_t kMost = 10'000;

/// The memory of the server, the crowd and the kernel, which includes that of all bindings.
struct Footprint {
  double user = 0;  ///< KiB; each page counts once.
  double page_tables = 0;
  KernelMemory kernel;
  std::uint64_t estacks = 0;
};

std::uint64_t count_estacks(pid_t server) {
  std::uint64_t count = 0;
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", server), ignored)) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    if (std::getline(file, name) && name == "lrpc-estack") ++count;
  }
  return count;
}

Result<Footprint> take_footprint(pid_t server, const std::vector<pid_t>& clients) {
  Footprint footprint;
  std::vector<pid_t> all = clients;
  all.push_back(server);
  for (const pid_t process : all) {
    auto memory = memory_usage(process);
    if (!memory) return memory.error();
    footprint.user += memory->pss;
    footprint.page_tables += memory->page_tables;
  }
  footprint.kernel = kernel_memory();
  footprint.estacks = count_estacks(server);
  return footprint;
}

/// The memory of one of `count` bindings, in KiB.
struct PerBinding {
  double user;
  double page_tables;
  double slab;
  double kernel_stacks;
  [[nodiscard]] double judged() const noexcept { return user + page_tables + slab; }
};
PerBinding per_binding(const Footprint& none, const Footprint& some, std::uint32_t count) {
  const double n = count;
  return {(some.user - none.user) / n, (some.page_tables - none.page_tables) / n,
          (some.kernel.slab - none.kernel.slab) / n, (some.kernel.kernel_stacks - none.kernel.kernel_stacks) / n};
}

class Scale {
 public:
  Scale(Session& session, const Table& table, Placement placement, std::uint32_t may_bind)
      : session_(session),
        table_(table),
        placement_(placement),
        may_bind_(may_bind),
        seats_(session.cores().seats(placement)) {}

  Status run() {
    const ServerOptions options{.max_estacks = 2 * kMost,
                                .max_bindings = 2 * kMost,
                                .max_bindings_per_client_process = 2 * kMost,
                                .max_bindings_per_user = 2 * kMost,
                                .max_descriptors_per_user = kNoLimit};
    if (Status up = store(domains_, LrpcDomains::start(seats_.server, options)); !up) return up;
    const std::uint32_t most = session_.quick() ? kMost / 10 : std::min(kMost, may_bind_);
    if (Status up = store(crowd_, Crowd::create(domains_->import_options(Gate::adaptive), most - 1)); !up) return up;
    if (Status known = store(none_, footprint()); !known) return known;
    for (std::uint32_t alive = 1; !interrupted() && crowd_->why_not().empty(); alive = std::min(alive * 10, most)) {
      if (auto done = step(alive); !done) return done;
      if (alive == most) break;
    }
    if (!crowd_->why_not().empty())
      print_note(fmt::format("No more than {} idle bindings: {}.", crowd_->bindings(), crowd_->why_not()));
    return {};
  }

 private:
  [[nodiscard]] Result<Footprint> footprint() const { return take_footprint(domains_->server_pid(), crowd_->pids()); }

  Status step(std::uint32_t alive) {
    if (auto bound = crowd_->bind_up_to(alive - 1); !bound) return bound;
    auto after_bind = footprint();
    if (!after_bind) return after_bind.error();
    if (auto called = crowd_->call_new_ones(); !called) return called;
    auto after_calls = footprint();
    if (!after_calls) return after_calls.error();
    auto figures = null_call();
    if (!figures) return figures.error();
    report(crowd_->bindings() + 1, *after_bind, *after_calls, *figures);
    return {};
  }

  /// Null through one more binding of the crowded server, paired with Null to a server of its own, which has no other
  /// binding.
  Result<Figures> null_call() {
    auto crowded = make_lrpc_call(domains_, shim::Gate::adaptive, LrpcTest::null);
    if (!crowded) return crowded.error();
    auto alone = make_lrpc_call(seats_, shim::Gate::adaptive, LrpcTest::null);
    if (!alone) return alone.error();
    return measure("scale", {**crowded, seats_.client}, {**alone, seats_.client}, session_.clock(), session_.options());
  }

  void report(std::uint32_t alive, const Footprint& bound, const Footprint& called, const Figures& figures) {
    std::vector<std::string> cells{std::string(name(placement_)), fmt::format("{}", alive)};
    MissedBars missed;
    const std::uint32_t idle = alive - 1;
    if (idle > 0) {
      const PerBinding before = per_binding(none_, bound, idle);
      const PerBinding after = per_binding(none_, called, idle);
      // Except in the first step, `bound` contains what the bindings of earlier steps have used for their calls, so
      // `before` is an upper bound.
      const double us = session_.clock().ns(crowd_->import_ticks()) / 1000 / std::max(crowd_->imports(), 1U);
      for (const double value :
           {us, before.judged(), after.judged(), after.user, after.page_tables, after.slab, after.kernel_stacks})
        cells.push_back(number(value));
      emit_json("memory per binding", "KiB", alive, Figures::exactly(after.judged(), idle));
      emit_json("bind", "ns", alive, Figures::exactly(us * 1000, crowd_->imports()));
      missed.add(idle >= 99 && after.judged() > kKibBar, "memory");
    } else {
      cells.resize(cells.size() + 7, "-");
    }
    cells.push_back(fmt::format("{}", called.estacks));
    cells.push_back(number(figures.median));
    cells.push_back(number(figures.floor));
    cells.push_back(ratio(figures.ratio));
    missed.add(idle > 0 && figures.ratio.value_or(0) > kLatencyBar, "latency");
    cells.push_back(missed.names());
    table_.print(cells);
    emit_json("Null", "ns", alive, figures);
  }

  void emit_json(std::string_view what, std::string_view unit, std::uint32_t alive, const Figures& figures) {
    session_.emit_json({.bench = "scale",
                        .gate = "adaptive",
                        .placement = name(placement_),
                        .test = fmt::format("{} of {}", what, alive),
                        .unit = unit,
                        .figures = figures});
  }

  Session& session_;
  const Table& table_;
  Placement placement_;
  std::uint32_t may_bind_;  ///< How many bindings the server has descriptors for.
  Seats seats_;
  std::shared_ptr<LrpcDomains> domains_;
  std::unique_ptr<Crowd> crowd_;
  Footprint none_;
};

}  // namespace

void scale(Session& session) {
  print_title("One binding among many");
  constexpr std::uint64_t kReserve = 100;                  // the server's other descriptors
  constexpr std::uint64_t kWanted = 2 * kMost + kReserve;  // the server has two for each binding
  shim::raise_descriptor_limit();
  const std::uint64_t descriptors = shim::descriptor_limit();
  const auto may_bind = static_cast<std::uint32_t>((std::max(descriptors, kReserve + 2) - kReserve) / 2);
  print_note(fmt::format(
      "All bindings but one are idle; each has made one call. KiB bound / called: memory for each of them before and "
      "after its one call (bar {:g}): user pages of server and clients, page tables, and the growth of the kernel's "
      "slab on the whole machine. stacks: kernel stacks, not counted. Null: paired with Null to a server with one "
      "binding (bar of the ratio {:g}). Descriptors a process may have: {}{}.",
      kKibBar, kLatencyBar, descriptors,
      descriptors < kWanted ? fmt::format(": that ends it at {} bindings", may_bind) : ""));
  fmt::print("\n");
  const Table table{{"placement", -9}, {"bindings", 8}, {"bind us", 8}, {"KiB bound", 9}, {"KiB called", 10},
                    {"user", 6},       {"tables", 6},   {"slab", 6},    {"stacks", 6},    {"E-stacks", 8},
                    {"Null ns", 8},    {"alone ns", 8}, {"ratio", 6},   {"missed", -12}};
  for (const Placement placement : {Placement::one_core, Placement::two_cores}) {
    if (interrupted() || !session.wants(placement)) continue;
    session.check(Scale(session, table, placement, may_bind).run());
  }
}

}  // namespace lrpc::bench
