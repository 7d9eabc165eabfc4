// Two hosts on a simulated wire that costs no virtual time, with one stack: what a layer costs in processor time.
#pragma once

#include <memory>

#include "netrpc/sim/devices.h"
#include "netrpc/sim/world.h"
#include "stack_client.h"
#include "stacks.h"

namespace lrpc::bench {

class SimPair {
 public:
  static Result<std::unique_ptr<SimPair>> create(const Stack& stack);
  SimPair(const SimPair&) = delete;
  ~SimPair();
  [[nodiscard]] StackClient& trips() noexcept { return *trips_; }
  /// Of later messages: StackUser::answer_with.
  void answer_with(std::size_t size);
  /// One more session of the same stack, with a protocol number of its own: for what many open sessions cost.
  [[nodiscard]] Errc open_another();
  [[nodiscard]] netrpc::SimHost& client() noexcept { return *client_; }
  [[nodiscard]] netrpc::SimHost& server() noexcept { return *server_; }
  [[nodiscard]] StackUser& client_user() noexcept { return *client_user_; }
  [[nodiscard]] netrpc::Protocol& client_top() noexcept { return *client_graph_->find("top"); }

 private:
  SimPair() = default;
  netrpc::SimWorld world_;
  netrpc::SimHost* client_ = nullptr;
  netrpc::SimHost* server_ = nullptr;
  std::optional<netrpc::Graph> client_graph_;
  std::optional<netrpc::Graph> server_graph_;
  std::unique_ptr<StackUser> client_user_;
  std::unique_ptr<StackUser> server_user_;
  std::optional<StackClient> trips_;
  std::vector<std::pair<netrpc::SimHost*, netrpc::SessionRef>> others_;
  netrpc::ProtocolNumber next_other_ = 100'000;
};

}  // namespace lrpc::bench
