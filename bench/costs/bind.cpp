// The cost of a bind, of the first call through it (which needs an E-stack: an idle one, or a new association), and of
// the second.
#include <fmt/format.h>

#include <vector>

#include "bare_introduction.h"
#include "bench.client.h"
#include "calls/lrpc_domains.h"
#include "core/measured_client.h"
#include "report/statistics.h"
#include "session.h"

namespace lrpc::bench {
namespace {

constexpr std::size_t kBinds = 200;

/// Ticks, one a bind.
struct Samples {
  std::uint64_t bare[kBinds];
  std::uint64_t import_ticks[kBinds];
  std::uint64_t first_call[kBinds];
  std::uint64_t second_call[kBinds];
  std::uint64_t unbind[kBinds];
};

Status bind_and_call(const BareIntroduction& bare, const ImportOptions& options, Samples& samples) {
  for (std::size_t i = 0; i < kBinds; ++i) {
    std::optional<Result<std::unique_ptr<BareIntroduction::Introduced>>> introduced;
    samples.bare[i] = ticks_of([&] { introduced.emplace(bare.introduce()); });
    if (!*introduced) return introduced->error();
    introduced.reset();
    std::optional<Result<::Bench::Client>> client;
    samples.import_ticks[i] =
        ticks_of([&] { client.emplace(::Bench::Client::import(LrpcDomains::kExportedName, options)); });
    if (!*client) return client->error();
    for (std::uint64_t* ticks : {&samples.first_call[i], &samples.second_call[i]}) {
      Errc called = Errc::ok;
      *ticks = ticks_of([&] { called = client->value().Null().code(); });
      if (called != Errc::ok) return Error{called, "a call"};
    }
    samples.unbind[i] = ticks_of([&] { client.reset(); });
  }
  return {};
}

void emit(Session& session, const Table& table, Row row, const std::uint64_t (&ticks)[kBinds]) {
  if (!session.filter().wants(row.gate, row.placement, row.test)) return;
  std::vector<double> ns;
  for (const auto one : ticks) ns.push_back(session.clock().ns(one));
  row.figures = figures_of(ns);
  session.emit(table, row);
}

Status run(Session& session, const Table& table) {
  const Seats seats = session.cores().seats(Placement::unpinned);
  auto domains = LrpcDomains::start(seats.server);
  if (!domains) return domains.error();
  auto bare = BareIntroduction::start(seats.server);
  if (!bare) return bare.error();
  const auto samples = measured_by_client<Samples>(seats.client, [&](Samples& ticks) {
    return bind_and_call(**bare, (*domains)->import_options(Gate::adaptive), ticks);
  });
  if (!samples) return samples.error();
  const auto row = [](std::string_view system, std::string_view gate, const char* test) {
    return Row{.bench = "bind", .system = system, .gate = gate, .placement = "unpinned", .test = test};
  };
  emit(session, table, row("bare system calls", "floor", "import"), (*samples)->bare);
  emit(session, table, row("lrpc", "adaptive", "import"), (*samples)->import_ticks);
  emit(session, table, row("lrpc", "adaptive", "first call"), (*samples)->first_call);
  emit(session, table, row("lrpc", "adaptive", "second call"), (*samples)->second_call);
  emit(session, table, row("lrpc", "adaptive", "unbind"), (*samples)->unbind);
  return {};
}

}  // namespace

void bind_cost(Session& session) {
  print_intro(
      "Binding: import, first call, second call, unbind, ns",
      fmt::format(
          "{} bindings one after the other, nameserver, server and client in processes of their own, not pinned. The "
          "floor of an import is an introduction by three processes of as few bare system calls, and turns with it. "
          "The first call finds an E-stack that stands by, if that of an earlier binding is idle by then.",
          kBinds));
  const Table table(row_columns());
  session.check(run(session, table));
}

}  // namespace lrpc::bench
