// What hostile users cost others at the nameserver: users who ask for all that they can get, again and again, and read
// no answer, who connect without a pause, or who leave what is slow to close, beside an honest user who imports and
// root who lists the names.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bench.client.h"
#include "calls/lrpc_domains.h"
#include "core/measured_client.h"
#include "core/session.h"
#include "core/statistics.h"
#include "hostile_users.h"
#include "lrpc/nameserver.h"
#include "lrpc/shim/binder/binder_protocol.h"

namespace lrpc::bench {
namespace {

struct Crowd {
  uid_t users;
  Attack attack;
};
constexpr std::array<Crowd, 7> kCrowds{{{0, Attack::ask},
                                        {2, Attack::ask},
                                        {10, Attack::ask},
                                        {40, Attack::ask},
                                        {2, Attack::connect},
                                        {40, Attack::connect},
                                        {2, Attack::close}}};
constexpr std::array<const char*, 3> kDoing{"ask", "connect", "close"};  // by Attack
constexpr std::size_t kRounds = 40;                                      // each may take seconds
constexpr std::size_t kQuickRounds = 10;
constexpr uid_t kHonest = 40'000;
constexpr uid_t kHostile = 41'000;

/// Ticks.
struct Samples {
  std::uint64_t list[kRounds];
  std::uint64_t import_ticks[kRounds];
  std::uint64_t call[kRounds];
  std::uint64_t unbind[kRounds];
};

/// Root's `lrpc list`, as a newcomer.
Status list_names(const std::string& nameserver) {
  auto socket = shim::connect_nameserver(nameserver);
  if (!socket) return socket.error();
  if (auto sent = shim::send_message(socket->get(), {1, shim::ListRequest{}, {}, {}}); !sent) return sent;
  const auto answer = shim::receive_message(socket->get());
  if (!answer) return answer.error();
  return *answer && std::holds_alternative<shim::Listed>((*answer)->body) ? Status() : Errc::bad_message;
}

Status be_honest(const ImportOptions& options, std::size_t rounds, Samples& samples) {
  const auto timed = [](std::uint64_t& ticks, auto&& body) {
    const std::uint64_t before = ticks_begin();
    body();
    ticks = ticks_end() - before;
  };
  for (std::size_t i = 0; i < rounds; ++i) {
    Status listed;
    timed(samples.list[i], [&] { listed = list_names(options.nameserver); });
    if (!listed) return listed;
    if (::seteuid(kHonest) != 0) return system_error("seteuid", errno);
    std::optional<Result<::Bench::Client>> client;
    timed(samples.import_ticks[i],
          [&] { client.emplace(::Bench::Client::import(LrpcDomains::kExportedName, options)); });
    if (!*client) return client->error();
    Errc called = Errc::ok;
    timed(samples.call[i], [&] { called = client->value().Null().code(); });
    if (called != Errc::ok) return Error{called, "a call"};
    timed(samples.unbind[i], [&] { client.reset(); });
    if (::seteuid(0) != 0) return system_error("seteuid", errno);
  }
  return {};
}

Status run(Session& session, const Table& table, const Crowd& crowd) {
  const uid_t users = crowd.users;
  const Seats seats = session.cores().seats(Placement::unpinned);
  nameserver::NameserverOptions options;
  options.mode = 0666;
  options.policy = nameserver::default_policy(nameserver::ExportRule::anyone);
  auto domains = LrpcDomains::start(seats.server, {}, options);
  if (!domains) return domains.error();
  const ImportOptions import_options = (*domains)->import_options(Gate::adaptive);
  std::vector<Child> hostile;
  for (uid_t half = 0; half < std::min<uid_t>(users, 2); ++half) {
    auto child = Child::spawn("bench-hostile", seats.client, [&] {
      HostileUsers(import_options.nameserver, kHostile + half * users / 2, users / 2, crowd.attack).live();
      return 0;
    });
    if (!child) return child.error();
    hostile.push_back(std::move(*child));
  }
  const std::size_t rounds = session.quick() ? kQuickRounds : kRounds;
  const auto samples = measured_by_client<Samples>(
      seats.client, [&](Samples& ticks) { return be_honest(import_options, rounds, ticks); });
  if (!samples) return samples.error();
  for (Child& child : hostile)
    if (child.wait(std::chrono::milliseconds(0)).has_value())
      return Error{Errc::not_permitted, "this process cannot be the users that it wants"};
  const auto emit = [&](const char* test, const std::uint64_t(&ticks)[kRounds]) {
    std::vector<double> ns;
    for (std::size_t i = 0; i < rounds; ++i) ns.push_back(session.clock().ns(ticks[i]));
    session.emit(table, {.bench = "hostile",
                         .gate = "adaptive",
                         .placement = "unpinned",
                         .test = fmt::format("{}, {} {}", test, users, kDoing[static_cast<std::size_t>(crowd.attack)]),
                         .figures = {.median = median(ns),
                                     .p99 = quantile(ns, 0.99),
                                     .min = quantile(ns, 0),
                                     .max = quantile(ns, 1),
                                     .calls = rounds}});
  };
  emit("root's list", (*samples)->list);
  emit("import", (*samples)->import_ticks);
  emit("first call", (*samples)->call);
  emit("unbind", (*samples)->unbind);
  return {};
}

}  // namespace

void hostile_users(Session& session) {
  print_intro(
      "Beside hostile users, ns",
      "Root lists the names, and an honest user imports, calls and unbinds, each time newly come, while 0, 2, 10 "
      "and 40 other users keep as many connections as they may, ask without end and read no answer, 2 and 40 connect "
      "without a pause, and 2 clients of the server leave it what is slow to close. Two processes play them. The bar "
      "for each is 100 ms at most.");
  if (::geteuid() != 0) return fmt::print("Skipped: only root can be several users.\n");
  const Table table(row_columns());
  table.print_head();
  for (const Crowd& crowd : kCrowds) session.check(run(session, table, crowd));
}

}  // namespace lrpc::bench
