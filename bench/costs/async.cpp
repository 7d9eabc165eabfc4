// Throughput of calls that are started now and finished later, against the number of calls in flight. Synchronous calls
// alternate with them in the same run.
#include <fmt/format.h>

#include <optional>
#include <vector>

#include "async.client.h"
#include "calls/lrpc_call.h"
#include "calls/lrpc_domains.h"
#include "core/interrupt.h"
#include "core/store.h"
#include "session.h"

namespace lrpc::bench {
namespace {

constexpr int kInFlight[] = {1, 2, 4, 8, 16, 32};

/// Null calls, `in_flight` at a time: finishes the oldest, then starts another. 0: synchronous calls.
class AsyncCall final : public Contender {
 public:
  AsyncCall(std::unique_ptr<LrpcDomains> domains, shim::Gate gate, int in_flight)
      : domains_(std::move(domains)), gate_(gate), in_flight_(static_cast<std::size_t>(in_flight)) {}

  Status connect() override {
    for (std::size_t i = 0; i < in_flight_; ++i) pending_.emplace_back(Errc::ok);
    return store(client_, ::AsyncBench::Client::import(LrpcDomains::kAsyncName, domains_->import_options(gate_)));
  }
  void pause() override {
    wait_until_idle(domains_->server_pid(), std::chrono::microseconds(150), std::chrono::milliseconds(50));
  }

  void run(std::uint64_t count) override {
    if (in_flight_ == 0) {
      for (std::uint64_t i = 0; i < count; ++i) failures_.note(client_->Null());
      return;
    }
    const std::size_t filled = std::min<std::uint64_t>(count, in_flight_);
    for (std::size_t i = 0; i < filled; ++i) pending_[i] = client_->start().Null();
    std::size_t oldest = 0;
    for (std::uint64_t i = filled; i < count; ++i) {
      failures_.note(pending_[oldest].finish());
      pending_[oldest] = client_->start().Null();
      if (++oldest == in_flight_) oldest = 0;
    }
    for (std::size_t i = 0; i < filled; ++i) failures_.note(pending_[i].finish());
  }
  void run_single(std::span<std::uint64_t> ticks) override {
    for (auto& one : ticks) one = ticks_of([this] { run(1); });
  }

  [[nodiscard]] Status health() const override { return failures_.health(); }

 private:
  std::unique_ptr<LrpcDomains> domains_;
  shim::Gate gate_;
  std::size_t in_flight_;
  std::optional<::AsyncBench::Client> client_;
  std::vector<Pending<::AsyncBench::Null_outcome>> pending_;  // destroyed before the client
  CallFailures failures_;
};

Result<std::unique_ptr<Contender>> make_async_call(const Seat& server, shim::Gate gate, int in_flight) {
  auto domains = LrpcDomains::start(server);
  if (!domains) return domains.error();
  return std::unique_ptr<Contender>(new AsyncCall(std::move(*domains), gate, in_flight));
}

Result<Figures> measure_pair(Session& session, const std::string& label, const Seats& seats, shim::Gate gate,
                             int in_flight) {
  auto async = make_async_call(seats.server, gate, in_flight);
  if (!async) return async.error();
  auto sync = make_async_call(seats.server, gate, 0);
  if (!sync) return sync.error();
  return measure(label, {**async, seats.client}, {**sync, seats.client}, session.clock(), session.options());
}

void rows(Session& session, const Table& table, shim::Gate gate, Placement placement) {
  for (const int in_flight : kInFlight) {
    Row row{.bench = "async",
            .gate = name_of(gate),
            .placement = name(placement),
            .test = fmt::format("Null x{}", in_flight)};
    if (interrupted() || !session.filter().wants(row.gate, row.placement, row.test)) continue;
    if (placement == Placement::two_cores && !session.cores().has_two()) continue;
    const std::string label = fmt::format("async/{}/{}/{}", row.gate, row.placement, row.test);
    auto figures = measure_pair(session, label, session.cores().seats(placement), gate, in_flight);
    if (!session.check(figures, label)) continue;
    row.figures = *figures;
    const auto or_dash = [](std::optional<double> value, const char* format) {
      return value ? fmt::format(fmt::runtime(format), *value) : std::string("-");
    };
    std::optional<double> times;
    if (figures->ratio && *figures->ratio > 0) times = 1 / *figures->ratio;
    table.print({std::string(row.gate), std::string(row.placement), fmt::format("{}", in_flight),
                 fmt::format("{:.0f}", figures->median), or_dash(figures->floor, "{:.0f}"),
                 fmt::format("{:.2f}", figures->median > 0 ? 1000 / figures->median : 0), or_dash(times, "{:.2f}")});
    session.emit_json(row);
  }
}

}  // namespace

void async(Session& session) {
  print_intro("Calls in flight: throughput of calls that are started now and finished later",
              "Null calls of one thread, so many in flight at a time; ns a call, millions of calls a second, and how "
              "many times the throughput of synchronous calls, which take turns with them in the same run.");
  const Table table{{"gate", -10},  {"placement", -10}, {"in flight", 9}, {"ns a call", 9},
                    {"sync ns", 8}, {"M calls/s", 9},   {"x sync", 7}};
  rows(session, table, shim::Gate::exchange, Placement::two_cores);
  rows(session, table, shim::Gate::handoff, Placement::one_core);
}

}  // namespace lrpc::bench
