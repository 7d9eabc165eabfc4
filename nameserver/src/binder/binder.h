// Binding (LRPC §3.1): the importer waits while the exporter's clerk is asked; then the two are introduced.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "loop/event_loop.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/nameserver.h"
#include "peers/peers.h"
#include "policy/policy_in_force.h"
#include "registry/registry.h"

namespace lrpc::nameserver {

/// What the nameserver holds of a binding between its BindRequest and its BindReply. Afterwards it holds nothing.
struct PendingBind {
  BindingId id = 0;
  Connection* server = nullptr;
  shim::Nonce nonce{};
  std::vector<AStackClass> classes;
  UniqueFd region;
  std::uint64_t region_bytes = 0;  ///< Charged to the client's user.
  UniqueFd client_bell;
};

/// A request of a client to be bound: waits for its name (in Binder::waiting_, and while a server exports that, in
/// Connection::waiting), or for a clerk (`bind`).
struct Import {
  Connection* client = nullptr;
  std::uint32_t request = 0;
  shim::ImportRequest wanted;
  std::optional<EventLoop::Clock::time_point> deadline;  ///< Of waiting for the name; none: for ever.
  EventLoop::TimerId timer;
  std::optional<PendingBind> bind;
};

/// On the event loop's thread.
class Binder {
 public:
  Binder(EventLoop& loop, Peers& peers, const Registry& registry, const PolicyInForce& policy,
         const NameserverOptions& options) noexcept
      : loop_(loop), peers_(peers), registry_(registry), policy_(policy), options_(options) {}
  Binder(const Binder&) = delete;
  Binder& operator=(const Binder&) = delete;

  // Each `on` answers one message.
  void on(Connection& peer, std::uint32_t request, shim::ImportRequest body);
  void on(Connection& peer, std::uint32_t request, const shim::BindReply& body);
  /// Imports that wait for the name join its server's line.
  void on_exported(Connection& server, const std::string& name);
  /// Imports of the name leave the server's line: from now on their own deadline counts, and no longer their turn.
  void on_withdrawn(Connection& server, const std::string& name);
  /// Ends the peer's imports. Those that its clerk was being asked about wait for their names again.
  void on_end(Connection& peer) noexcept;
  /// Applies the new policy to all waiting imports.
  void on_new_policy();

 private:
  Status may_import(const Connection& client, const std::string& name, const Connection* server);
  Status may_wait(Connection& peer, const shim::ImportRequest& wanted);
  void serve_waiting_of(Connection& server);
  [[nodiscard]] bool is_network_domain(const Connection& peer) const;
  enum class Asked : std::uint8_t { yes, not_now };
  Result<Asked> ask_clerk(ImportId id, Import& import, const Export& exported);
  void ask_again_soon(Connection& server);
  void on_withdrawn_meanwhile(ImportId id, Import& import, Connection& server);
  void introduce(ImportId id, Import& import);
  Status send_its_half(Import& import);
  void wait_for_name(ImportId id, Import& import);
  bool wait_on(ImportId id, Import& import, const Error& late);
  void on_time_over(ImportId id);
  void end_bind(ImportId id, Import& import);
  void answer_import(ImportId id, const Error& error);
  void erase_import(ImportId id);
  void leave_line(ImportId id, Import& import);
  void drop_imports(Connection& client) noexcept;
  void orphan_binds(Connection& server) noexcept;

  EventLoop& loop_;
  Peers& peers_;
  const Registry& registry_;
  const PolicyInForce& policy_;
  const NameserverOptions& options_;
  ImportId last_import_ = 0;
  std::unordered_map<ImportId, Import> imports_;
  std::map<std::string, std::set<ImportId>, std::less<>> waiting_;  ///< By name, in order of arrival.
  std::unordered_map<BindingId, ImportId> binds_;
};

}  // namespace lrpc::nameserver
