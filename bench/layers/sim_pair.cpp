#include "sim_pair.h"

#include "lrpc/netrpc/all_kinds.h"

namespace lrpc::bench {

using namespace netrpc;

Result<std::unique_ptr<SimPair>> SimPair::create(const Stack& stack) {
  std::unique_ptr<SimPair> pair(new SimPair);
  ProtocolKinds kinds = layer_kinds();
  kinds.add(sim_ethernet_kind("ETH"));
  kinds.add(sim_ip_kind("IP")).add(sim_udp_kind("UDP"));
  auto description = GraphDescription::parse(stack.graph, kinds);
  if (!description) return description.error();
  if (Status done = pair->client_.compose(*description, kinds); !done) return done.error();
  if (Status done = pair->server_.compose(*description, kinds); !done) return done.error();
  if (Status enabled = pair->server_.serve(); !enabled) return enabled.error();
  auto trips = StackClient::open(pair->client_.user, pair->client_top(), stack.service, pair->server().address());
  if (!trips) return trips.error();
  pair->trips_.emplace(std::move(*trips));
  return pair;
}

void SimPair::answer_with(std::size_t size) {
  const Shepherd inside(server_.host.monitor());
  server_.user.answer_with(size);
}

Errc SimPair::open_another() {
  ParticipantSet participants = bench_participants(client().address(), server().address());
  participants.protocol = next_other_++;
  const auto open = [&](SimMachine<StackUser>& machine) {
    const Shepherd inside(machine.host.monitor());
    auto session = machine.top().open(machine.user, participants);
    if (!session) return session.code();
    machine.sessions.push_back(*session);
    return Errc::ok;
  };
  if (const Errc opened = open(client_); opened != Errc::ok) return opened;
  std::swap(participants.local.host, participants.remote.host);
  return open(server_);
}

}  // namespace lrpc::bench
