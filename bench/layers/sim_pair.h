// Hosts on a simulated wire that costs no virtual time, with one stack: what a layer costs in processor time.
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

/// One of the hosts: a graph, a user of it, and sessions of the user's that stay open. Pinned in memory.
template <class User>
struct SimMachine {
  /// The user is made of its host and of `args`.
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
  /// What the user is to open. Precondition: it is composed.
  [[nodiscard]] netrpc::Protocol& top() { return *graph->find("top"); }
  /// The user, as a server, is enabled for any peer.
  Status serve() {
    const netrpc::Shepherd inside(host.monitor());
    return top().open_enable(user, bench_participants(host.address(), {}));
  }

  netrpc::SimHost& host;
  User user;
  std::optional<netrpc::Graph> graph;
  std::vector<netrpc::SessionRef> sessions;
};

/// Two of them.
class SimPair {
 public:
  static Result<std::unique_ptr<SimPair>> create(const Stack& stack);
  [[nodiscard]] StackClient& trips() noexcept { return *trips_; }
  /// Of later messages: StackUser::answer_with.
  void answer_with(std::size_t size);
  /// One more session of the same stack, with a protocol number of its own: for what many open sessions cost.
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
  std::optional<StackClient> trips_;  // goes first
  netrpc::ProtocolNumber next_other_ = 100'000;
};

}  // namespace lrpc::bench
