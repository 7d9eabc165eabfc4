// Calls to a server on another host through the unchanged stubs, compared with their unavoidable parts: a ping-pong on
// the same kind of socket, and a local call at each end.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench.client.h"
#include "calls/lrpc_domains.h"
#include "core/interrupt.h"
#include "core/measured_client.h"
#include "layers/alternate.h"
#include "remote_hosts.h"
#include "report/statistics.h"
#include "session.h"

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kTests = 4;
constexpr std::array<std::string_view, kTests> kTestNames = {"Null", "Add", "BigIn", "BigInOut"};
constexpr double kBar = 1.15;

/// What the client's process reports to the bench, in nanoseconds.
struct Outcome {
  struct Test {
    double remote;
    double bare;   ///< The ping-pong with the same number of bytes.
    double local;  ///< The same call to a server on the client's host.
    double floor;  ///< The ping-pong and two local calls.
    double ratio;  ///< Median of the paired ratios of remote to floor.
    std::uint64_t blocks;
  };
  std::array<Test, kTests> tests;
};

bool call(::Bench::Client& client, std::size_t test) {
  static std::array<std::byte, 200> data{};
  switch (test) {
    case 0: return client.Null().has_value();
    case 1: return client.Add(20, 22).has_value();
    case 2: return client.BigIn(data).has_value();
    default: return client.BigInOut(data).has_value();
  }
}

Outcome::Test figures_of(const Alternated& all, std::size_t remote, std::size_t local, std::size_t bare) {
  std::vector<double> floors;
  std::vector<double> ratios;
  const std::size_t blocks = std::min({all.blocks[remote].size(), all.blocks[local].size(), all.blocks[bare].size()});
  for (std::size_t i = 0; i < blocks; ++i) {
    floors.push_back(all.blocks[bare][i] + 2 * all.blocks[local][i]);
    ratios.push_back(all.blocks[remote][i] / floors.back());
  }
  if (blocks == 0) return {};
  return {all.median_of(remote), all.median_of(bare), all.median_of(local), median(floors), median(ratios), blocks};
}

/// Runs in the client's process.
Status measure_all(Session& session, RemoteHosts& hosts, Outcome& outcome) {
  auto remote = ::Bench::Client::import(RemoteHosts::kRemoteName, hosts.import_options());
  if (!remote) return Error{remote.code(), fmt::format("{}: {}", RemoteHosts::kRemoteName, remote.error().message())};
  auto local = ::Bench::Client::import(LrpcDomains::kExportedName, hosts.import_options());
  if (!local) return local.error();
  std::vector<Subject> subjects = {{"bare", [&] { return hosts.bare().once(0); }},
                                   {"bare 200", [&] { return hosts.bare().once(200); }}};
  std::vector<std::size_t> tests;
  for (std::size_t test = 0; test < kTests; ++test) {
    const std::string_view asked = session.filter().test;
    if (!asked.empty() && asked != kTestNames[test]) continue;
    tests.push_back(test);
    subjects.push_back({"local", [&, test] { return call(*local, test); }});
    subjects.push_back({"remote", [&, test] { return call(*remote, test); }});
  }
  // The rest between blocks (300 µs) is long enough for pollers to give up.
  const Alternated all = alternate(subjects, session.clock(), session.quick() ? 30 : 200, 3ms, 300us);
  for (std::size_t i = 0; i < tests.size(); ++i) {
    const std::size_t test = tests[i];
    const std::size_t at = 2 + 2 * i;
    outcome.tests[test] = figures_of(all, at + 1, at, test < 2 ? 0 : 1);
    if (outcome.tests[test].blocks == 0)
      return Error{Errc::call_failed, fmt::format("{}: a call, or the ping-pong, failed", kTestNames[test])};
  }
  return {};
}

struct Path {
  std::string_view name;
  RemotePath path;
};
constexpr Path kPaths[] = {{"AUTH", {.authenticated = true, .udp = false}},
                           {"insecure", {.authenticated = false, .udp = false}},
                           {"AUTH, UDP", {.authenticated = true, .udp = true}}};

Status measure_path(Session& session, const Table& table, const Path& path, Placement placement) {
  const Seats seats = session.cores().seats(placement);
  auto hosts = RemoteHosts::start(seats, path.path);
  if (!hosts) return hosts.error();
  const auto outcome = measured_by_client<Outcome>(
      seats.client, [&](Outcome& figures) { return measure_all(session, **hosts, figures); });
  if (!outcome) return outcome.error();
  for (std::size_t test = 0; test < kTests; ++test) {
    const Outcome::Test& one = (*outcome)->tests[test];
    if (one.blocks == 0) continue;
    const bool judged = test == 0;  // only Null has a bar
    table.print({std::string(path.name), std::string(name(placement)), std::string(kTestNames[test]),
                 number(one.remote / 1000), number(one.floor / 1000), number(one.bare / 1000), number(one.local / 1000),
                 ratio(one.ratio),
                 !judged             ? ""
                 : one.ratio <= kBar ? "met"
                                     : "missed"});
    session.emit_json({.bench = "remote",
                       .gate = "adaptive",
                       .placement = name(placement),
                       .test = fmt::format("{} ({})", kTestNames[test], path.name),
                       .figures = Figures::exactly(one.remote, one.blocks, one.floor, one.ratio)});
  }
  return {};
}

}  // namespace

void remote(Session& session) {
  print_intro(
      "Remote calls: between two hosts (network namespaces joined by veth), through lrpcd and lrpc-netd of each",
      fmt::format("Medians of blocks measured in turns, microseconds. The floor is a ping-pong of bare sockets on the "
                  "same wire (AF_PACKET, with UDP: UDP) and two local calls of the same procedure, one for each host. "
                  "The ratio is the median of the paired ratios; the bar of Null is {}.",
                  kBar));
  if (const auto why = netrpc::test::why_no_namespaces()) return session.fail(*why);
  const Table table{{"path", -11},     {"placement", -10}, {"test", -9}, {"us", 8}, {"floor us", 9},
                    {"ping-pong", 10}, {"local", 8},       {"ratio", 7}, {"bar", 7}};
  for (const Path& path : kPaths) {
    for (const Placement placement : kPlacements) {
      if (interrupted()) return;
      if (!session.wants(placement)) continue;
      try {
        session.check(measure_path(session, table, path, placement), fmt::format("{}, {}", path.name, name(placement)));
      } catch (const std::exception& error) {
        session.fail(fmt::format("{}, {}: {}", path.name, name(placement), error.what()));
      }
    }
  }
}

}  // namespace lrpc::bench
