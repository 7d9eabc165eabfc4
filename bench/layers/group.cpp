// The cost of calls to a group: Table 1 of Bhatti and Schlichting, "A System for Constructing Configurable High-Level
// Protocols" (SIGCOMM 1995), on the simulated wire.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "alternate.h"
#include "core/interrupt.h"
#include "lrpc/netrpc/all_kinds.h"
#include "session.h"
#include "sim_pair.h"

namespace lrpc::bench {
namespace {

using namespace netrpc;
using namespace std::chrono_literals;

constexpr HostAddress kGroup{0xef000001};  // 239.0.0.1
constexpr std::size_t kInteger = 4;        ///< Bytes of a request, and of a reply.

struct Configuration {
  const char* name;
  const char* graph;  ///< Clients call `top`.
  Service service = Service::transaction;
  std::size_t most_servers = 5;
  std::vector<const char*> paper_ms{};  ///< With one server, with two, ...
};
const Configuration kConfigurations[] = {
    {.name = "Sun RPC",
     .graph = "udp = UDP; pairs = REQUEST_REPLY over udp; call = SUN_CALL over pairs;"
              "top = SUN_SELECT(program = 0x20000001) over call;",
     .most_servers = 1,
     .paper_ms = {"4.38"}},
    {.name = "GRPC, SYNC, ONE_ACCEPT, MEMBERSHIP",
     .graph = "udp = UDP; top = COMPOSITE { GRPC; SYNC; ONE_ACCEPT; MEMBERSHIP; ACK; NUMBER; } over udp;",
     .paper_ms = {"6.82", "8.90"}},
    {.name = "GRPC, SYNC, ALL_ACCEPT, MEMBERSHIP",
     .graph = "udp = UDP; top = COMPOSITE { GRPC; SYNC; ALL_ACCEPT; MEMBERSHIP; ACK; NUMBER; } over udp;",
     .paper_ms = {"", "8.45"}},
    {.name = "GRPC, SYNC, MAJORITY, MEMBERSHIP",
     .graph = "udp = UDP; top = COMPOSITE { GRPC; SYNC; MAJORITY; MEMBERSHIP; ACK; NUMBER; } over udp;"},
    {.name = "GRPC, ASYNC, FIFO, ONE_ACCEPT, MEMBERSHIP",
     .graph = "udp = UDP; top = COMPOSITE { GRPC; ASYNC; FIFO; ONE_ACCEPT; MEMBERSHIP; ACK; NUMBER; } over udp;",
     .service = Service::datagram,
     .paper_ms = {"6.22"}},
    {.name = "the same, BOUNDED",
     .graph =
         "udp = UDP; top = COMPOSITE { GRPC; ASYNC; FIFO; ONE_ACCEPT; MEMBERSHIP; ACK; NUMBER; BOUNDED; } over udp;",
     .service = Service::datagram,
     .paper_ms = {"6.45"}}};

/// A client and some servers on a wire that takes no virtual time.
class Servers {
 public:
  static Result<std::unique_ptr<Servers>> make(const Configuration& configuration, std::size_t servers) {
    std::unique_ptr<Servers> made(new Servers);
    ProtocolKinds kinds = layer_kinds();
    kinds.add(sim_udp_kind("UDP"));
    auto graph = GraphDescription::parse(configuration.graph, kinds);
    if (!graph) return graph.error();
    std::vector<HostAddress> members;
    for (std::size_t i = 0; i <= servers; ++i) {
      const bool serves = i != 0;
      Machine& machine = *made->machines_.emplace_back(std::make_unique<Machine>(made->world_.add_host(), serves));
      if (Status done = machine.compose(*graph, kinds); !done) return done.error();
      machine.user.answer_with(kInteger);
      if (!serves) continue;
      if (Status enabled = machine.serve(); !enabled) return enabled.error();
      members.push_back(machine.host.address());
    }
    Machine& client = *made->machines_.front();
    {
      const Shepherd inside(client.host.monitor());
      if (auto set = client.host.host().groups().set(kGroup, members); !set) return set.error();
    }
    const bool group = &configuration != &kConfigurations[0];  // Sun RPC has no groups
    auto trips = StackClient::open(client.user, client.top(), configuration.service, group ? kGroup : members.front());
    if (!trips) return trips.error();
    made->trips_.emplace(std::move(*trips));
    return made;
  }
  bool once() { return trips_->once(kInteger) == Errc::ok; }

 private:
  using Machine = SimMachine<StackUser>;
  Servers() = default;
  SimWorld world_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::optional<StackClient> trips_;  // destroyed first
};

struct Measured {
  const Configuration& configuration;
  std::size_t servers;
  std::unique_ptr<Servers> made;
};

Status measure(Session& session) {
  std::vector<Measured> all;
  std::vector<Subject> subjects;
  for (const Configuration& one : kConfigurations) {
    for (std::size_t servers = 1; servers <= one.most_servers; ++servers) {
      auto made = Servers::make(one, servers);
      if (!made) return made.error();
      Servers& calls = **made;
      all.push_back({one, servers, *std::move(made)});
      subjects.push_back({fmt::format("{}, {}", one.name, servers), [&calls] { return calls.once(); }});
    }
  }
  const Alternated measured = alternate(subjects, session.clock(), session.quick() ? 50 : 500, 1ms);
  if (interrupted()) return {};
  const Table table{{"configuration", -42}, {"servers", 7},   {"ns", 9},
                    {"to Sun RPC", 10},     {"paper: ms", 9}, {"to Sun RPC", 10}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [configuration, servers, made] = all[i];
    if (measured.blocks[i].empty()) return Error{Errc::call_failed, subjects[i].name + ": a call has failed"};
    const std::string paper = servers <= configuration.paper_ms.size() ? configuration.paper_ms[servers - 1] : "";
    table.print(
        {configuration.name, fmt::format("{}", servers), number(measured.median_of(i)),
         fmt::format("{:.2f}", measured.ratio(i, 0)), paper,
         paper.empty() ? "" : fmt::format("{:.2f}", std::stod(paper) / std::stod(kConfigurations[0].paper_ms[0]))});
    session.emit_json({.bench = "group", .test = subjects[i].name, .figures = measured.figures(i, 0)});
  }
  return {};
}

}  // namespace

void group(Session& session) {
  print_intro("Group RPC: a call of four bytes and its reply, ns",
              "One client and one to five servers on a simulated wire, in one thread: the time is the work of all "
              "hosts together. A call to a group makes a request and a reply for each server, whatever it waits for, "
              "and an acknowledgement of each (the paper's configurations are its Table 1).");
  session.check(measure(session));
}

}  // namespace lrpc::bench
