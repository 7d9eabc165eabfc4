// Calls to groups of hosts through the unchanged stubs, compared with a call to one of these hosts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>

#include "bench.client.h"
#include "calls/lrpc_domains.h"
#include "core/interrupt.h"
#include "core/measured_client.h"
#include "core/program.h"
#include "core/store.h"
#include "layers/alternate.h"
#include "session.h"
#include "whole_host.h"
#include "wire_pair.h"

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMembers = 5;
constexpr std::array<std::size_t, 4> kSizes = {1, 2, 3, 5};
constexpr std::array<const char*, 3> kAccepts = {"ONE_ACCEPT", "MAJORITY", "ALL_ACCEPT"};
constexpr std::size_t kRows = 1 + kAccepts.size() * kSizes.size();  ///< Row 0 is the call to one host.

std::string member(std::size_t number) { return fmt::format("10.0.0.{}", number + 2); }
std::string group_of(std::size_t accept, std::size_t members) { return fmt::format("g{}of{}", accept, members); }

/// Every host's graph: calls to one host, one composition for each element of kAccepts, and the groups.
std::string graph_of(const std::string& address, const std::string& keys) {
  std::string graph = fmt::format(
      "udp = UDP(address = \"{}\");\nauth = AUTH(keys = \"{}\") over udp;\n"
      "channel = CHANNEL(give_up = 30s, reply_life = 40s) over auth;\nselect = SELECT over channel;\n",
      address, keys);
  for (std::size_t i = 0; i < kAccepts.size(); ++i) {
    graph += fmt::format(
        "c{0} = COMPOSITE {{ GRPC; SYNC; {1}; STILL_WORKING; NUMBER; UNIQUE; ACK; MEMBERSHIP; }} over auth;\n"
        "s{0} = SELECT(number = {2}) over c{0};\n",
        i, kAccepts[i], 240 + i);
    for (const std::size_t size : kSizes) {
      std::string members;
      for (std::size_t m = 0; m < size; ++m) members += (m == 0 ? "" : ", ") + member(m);
      graph += fmt::format("{} = GROUP(members = [{}]) over s{};\n", group_of(i, size), members, i);
    }
  }
  return graph;
}

/// The members' hosts and a client's host, on one Ethernet.
class GroupHosts {
 public:
  /// Precondition and errors: those of WholeHost::start(). Throws what namespaces throw.
  static Result<std::unique_ptr<GroupHosts>> start(const Seats& seats) {
    std::unique_ptr<GroupHosts> self(new GroupHosts);
    auto key = run_program({LRPC_NETD, "--generate-key"}, 10s);
    if (!key) return key.error();
    for (std::size_t i = 0; i <= kMembers; ++i) {
      const bool client = i == kMembers;
      const std::string address = client ? "10.0.0.1" : member(i);
      Host& host = self->hosts_[i];
      self->bridge_.plug(host.where, "eth0", address + "/24");
      const auto keys = host.host.write_keys("* " + *key);
      if (!keys) return keys.error();
      const std::string graph = host.host.directory.file("graph");
      std::ofstream(graph) << graph_of(address, *keys);
      std::vector<std::string> options{"--graph", graph, "--service", "select"};
      if (!client) options.insert(options.end(), {"--export", LrpcDomains::kExportedName});
      if (Status up = host.host.start(host.where, client ? seats.client : seats.server, options); !up)
        return up.error();
    }
    return self;
  }
  [[nodiscard]] Result<::Bench::Client> import(const std::string& where) const {
    return ::Bench::Client::import(fmt::format("{}@{}", LrpcDomains::kExportedName, where),
                                   {.nameserver = hosts_[kMembers].host.socket(), .timeout = 5s});
  }

 private:
  struct Host {
    netrpc::test::Namespace where;
    WholeHost host;
  };
  GroupHosts() = default;
  netrpc::test::Bridge bridge_;
  std::array<Host, kMembers + 1> hosts_;
};

/// What the client's process reports to the bench, in nanoseconds.
struct Outcome {
  struct Row {
    double median;
    double ratio;  ///< Median of the paired ratios to one host.
    std::uint64_t blocks;
  };
  std::array<Row, kRows> rows;
};

/// Checks that an import has bound all members. They run from the beginning; with ALL_ACCEPT each reply shows a bound
/// member.
Status all_answer(::Bench::Client& client, const std::string& group, std::size_t members) {
  const auto replies = client.all().Null();
  if (!replies) return replies.error();
  if (replies->size() == members && std::ranges::all_of(*replies, [](const auto& one) { return bool(one.result); }))
    return {};
  return Error{Errc::call_failed, fmt::format("{}: not all members have answered", group)};
}

/// Runs in the client's process.
Status measure_all(Session& session, const GroupHosts& hosts, Outcome& outcome) {
  std::vector<::Bench::Client> clients;
  if (Status bound = append(clients, hosts.import(member(0))); !bound) return bound;
  for (std::size_t i = 0; i < kAccepts.size(); ++i)
    for (const std::size_t size : kSizes) {
      if (Status bound = append(clients, hosts.import(group_of(i, size))); !bound) return bound;
      if (i + 1 != kAccepts.size()) continue;
      if (Status all = all_answer(clients.back(), group_of(i, size), size); !all) return all;
    }
  std::vector<Subject> subjects;
  for (::Bench::Client& client : clients) subjects.push_back({"", [&client] { return client.Null().has_value(); }});
  // In the rest between blocks (1 ms) the members whose replies nobody awaits finish their work.
  const Alternated all = alternate(subjects, session.clock(), session.quick() ? 20 : 150, 3ms, 1ms);
  for (std::size_t row = 0; row < kRows; ++row) {
    if (all.blocks[row].empty()) return Error{Errc::call_failed, fmt::format("row {}: a call has failed", row)};
    outcome.rows[row] = {all.median_of(row), all.ratio(row, 0), all.blocks[row].size()};
  }
  return {};
}

Status measure(Session& session, Placement placement) {
  const Seats seats = session.cores().seats(placement);
  auto hosts = GroupHosts::start(seats);
  if (!hosts) return hosts.error();
  const auto outcome = measured_by_client<Outcome>(
      seats.client, [&](Outcome& figures) { return measure_all(session, **hosts, figures); });
  if (!outcome) return outcome.error();
  const Table table{{"placement", -10}, {"called", -12}, {"members", 7}, {"us", 8}, {"to one host", 11}};
  for (std::size_t row = 0; row < kRows; ++row) {
    const Outcome::Row& figures = (*outcome)->rows[row];
    const std::string called = row == 0 ? "one host" : kAccepts[(row - 1) / kSizes.size()];
    const std::string members = row == 0 ? "" : fmt::format("{}", kSizes[(row - 1) % kSizes.size()]);
    table.print({std::string(name(placement)), called, members, number(figures.median / 1000), ratio(figures.ratio)});
    session.emit_json(
        {.bench = "remote-group",
         .gate = "adaptive",
         .placement = name(placement),
         .test = row == 0 ? called : fmt::format("{} {}", called, members),
         .figures = Figures::exactly(figures.median, figures.blocks, (*outcome)->rows[0].median, figures.ratio)});
  }
  fmt::print("\n");
  return {};
}

}  // namespace

void remote_group(Session& session) {
  print_intro("Calls to groups of hosts: Null through the stub, to NAME@GROUP and to NAME@HOST",
              "Six hosts (network namespaces on one bridge), each with an lrpcd, an lrpc-netd with AUTH over UDP, and "
              "a server. Medians of blocks measured in turns, microseconds. `to one host`: median of the paired ratios "
              "to a call to one of the members by SELECT over CHANNEL.");
  if (!netrpc::test::why_no_namespaces())  // on_each_placement() reports that
    if (const auto why = netrpc::test::why_no_bridges()) return session.fail(*why);
  on_each_placement(session, measure);
}

}  // namespace lrpc::bench
