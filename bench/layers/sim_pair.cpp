#include "sim_pair.h"

#include "lrpc/netrpc/all_kinds.h"

namespace lrpc::bench {

using namespace netrpc;

Result<std::unique_ptr<SimPair>> SimPair::create(const Stack& stack) {
  std::unique_ptr<SimPair> pair(new SimPair);
  pair->client_ = &pair->world_.add_host();
  pair->server_ = &pair->world_.add_host();
  ProtocolKinds kinds = layer_kinds();
  kinds.add(sim_ethernet_kind("ETH"));
  kinds.add(sim_ip_kind("IP")).add(sim_udp_kind("UDP"));
  auto description = GraphDescription::parse(stack.graph, kinds);
  if (!description) return description.error();
  const auto compose = [&](SimHost& machine, std::optional<Graph>& graph) -> Status {
    const Shepherd inside(machine.monitor());
    auto composed = Graph::compose(machine.host(), *description, kinds);
    if (!composed) return composed.error();
    graph.emplace(std::move(*composed));
    return {};
  };
  if (Status done = compose(*pair->client_, pair->client_graph_); !done) return done.error();
  if (Status done = compose(*pair->server_, pair->server_graph_); !done) return done.error();
  pair->client_user_ = std::make_unique<StackUser>(pair->client_->host(), false);
  pair->server_user_ = std::make_unique<StackUser>(pair->server_->host(), true);
  {
    const Shepherd inside(pair->server_->monitor());
    const auto anyone = bench_participants(pair->server_->address(), {});
    if (Status enabled = pair->server_graph_->find("top")->open_enable(*pair->server_user_, anyone); !enabled)
      return enabled.error();
  }
  auto trips = StackClient::open(*pair->client_user_, pair->client_top(), stack.service, pair->server_->address());
  if (!trips) return trips.error();
  pair->trips_.emplace(std::move(*trips));
  return pair;
}

SimPair::~SimPair() {
  trips_.reset();
  if (client_graph_) {
    const Shepherd inside(client_->monitor());
    std::erase_if(others_, [this](const auto& other) { return other.first == client_; });
    client_graph_.reset();
  }
  if (server_graph_) {
    const Shepherd inside(server_->monitor());
    others_.clear();
    server_graph_.reset();
  }
}

void SimPair::answer_with(std::size_t size) {
  const Shepherd inside(server_->monitor());
  server_user_->answer_with(size);
}

Errc SimPair::open_another() {
  ParticipantSet participants = bench_participants(client_->address(), server_->address());
  participants.protocol = next_other_++;
  const auto open = [&](SimHost& machine, Graph& graph, StackUser& user) {
    const Shepherd inside(machine.monitor());
    auto session = graph.find("top")->open(user, participants);
    if (!session) return session.error().code;
    others_.push_back({&machine, *session});
    return Errc::ok;
  };
  if (const Errc opened = open(*client_, *client_graph_, *client_user_); opened != Errc::ok) return opened;
  std::swap(participants.local.host, participants.remote.host);
  return open(*server_, *server_graph_, *server_user_);
}

}  // namespace lrpc::bench
