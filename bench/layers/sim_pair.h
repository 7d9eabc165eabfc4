// Hosts with one stack on a simulated wire that takes no virtual time, to measure the processor time of layers.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "netrpc/sim/devices.h"
#include "netrpc/sim/world.h"
#include "stack_client.h"
#include "stacks.h"

namespace lrpc::bench {

/// One of the hosts: a graph, its user, and sessions of the user that stay open. Not movable.
template <class User>
struct SimMachine {
  /// Constructs the user from its host and `args`.
  template <class... Args>
  explicit SimMachine(netrpc::SimHost& simulated, Args... args) : host(simulated), user(simulated.host(), args...) {}
  SimMachine(const SimMachine&) = delete;
  SimMachine& operator=(const SimMachine&) = delete;
  ~SimMachine() {
    const netrpc::Shepherd inside(host.monitor());
    sessions.clear();
    graph.reset();
  }
  Status compose(const netrpc::GraphDescription& description, const netrpc::ProtocolKinds& kinds) {
    const netrpc::Shepherd inside(host.monitor());
    auto composed = netrpc::Graph::compose(host.host(), description, kinds);
    if (!composed) return composed.error();
    graph.emplace(std::move(*composed));
    return {};
  }
  /// The protocol that the user opens. Precondition: compose() has succeeded.
  [[nodiscard]] netrpc::Protocol& top() { return *graph->find("top"); }
  /// Enables the user, as a server, for any peer.
  Status serve() {
    const netrpc::Shepherd inside(host.monitor());
    return top().open_enable(user, bench_participants(host.address(), {}));
  }

  netrpc::SimHost& host;
  User user;
  std::optional<netrpc::Graph> graph;
  std::vector<netrpc::SessionRef> sessions;
};

/// A client and a server.
class SimPair {
 public:
  static Result<std::unique_ptr<SimPair>> create(const Stack& stack);
  [[nodiscard]] StackClient& trips() noexcept { return *trips_; }
  /// How the server answers later messages: StackUser::answer_with().
  void answer_with(std::size_t size);
  /// Opens one more session of the same stack, with its own protocol number, to measure what many open sessions cost.
  [[nodiscard]] Errc open_another();
  [[nodiscard]] netrpc::SimHost& client() noexcept { return client_.host; }
  [[nodiscard]] netrpc::SimHost& server() noexcept { return server_.host; }
  [[nodiscard]] StackUser& client_user() noexcept { return client_.user; }
  [[nodiscard]] netrpc::Protocol& client_top() noexcept { return client_.top(); }

 private:
  SimPair() = default;
  netrpc::SimWorld world_;
  SimMachine<StackUser> client_{world_.add_host(), false};
  SimMachine<StackUser> server_{world_.add_host(), true};
  std::optional<StackClient> trips_;  // destroyed first
  netrpc::ProtocolNumber next_other_ = 100'000;
};

}  // namespace lrpc::bench
