// Names: export, withdraw, list, describe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "loop/event_loop.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/call/region.h"
#include "lrpc/nameserver.h"
#include "peers/peers.h"
#include "policy/policy_in_force.h"

namespace lrpc::nameserver {

/// A name that can be imported. Lives as long as its server's connection, or until it is withdrawn.
struct Export {
  ExportId id = 0;
  Connection* server = nullptr;
  shim::OwnedInterfaceId interface;
  std::vector<AStackClass> classes;
  shim::RegionLayout layout;
  std::string text;
  std::string descriptors;
  [[nodiscard]] std::size_t bytes() const noexcept { return text.size() + descriptors.size(); }
};

/// On the event loop's thread, as are its followers.
class Registry {
 public:
  /// Notified of names that are exported or withdrawn.
  class Followers {
   public:
    virtual void on_exported(Connection& server, const std::string& name) = 0;
    virtual void on_withdrawn(Connection& server, const std::string& name) = 0;

   protected:
    ~Followers() = default;
  };

  Registry(EventLoop& loop, Peers& peers, const PolicyInForce& policy, const NameserverOptions& options,
           Followers& followers) noexcept
      : loop_(loop), peers_(peers), policy_(policy), limits_(options.limits), followers_(followers) {}
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Each `on` answers one message.
  void on(Connection& peer, std::uint32_t request, shim::ExportRequest body);
  void on(Connection& peer, std::uint32_t request, const shim::WithdrawRequest& body);
  void on(Connection& peer, std::uint32_t request, const shim::ListRequest& body);
  void on(Connection& peer, std::uint32_t request, const shim::DescribeRequest& body);
  /// Withdraws all names of `server`.
  void on_end(Connection& server) noexcept;
  /// Names stay; those that the new policy would refuse are logged.
  void on_new_policy();

  /// Null: nobody exports it.
  [[nodiscard]] const Export* find(std::string_view name) const;
  /// The server of the name; null: nobody exports it.
  [[nodiscard]] Connection* server_of(std::string_view name) const;

 private:
  Status may_export(const Connection& peer, const shim::ExportRequest& body);
  Status room_for_export(const Connection& peer, std::size_t bytes);
  Status watch_process(Connection& server);
  void remove_export(Connection& server, ExportId id) noexcept;

  EventLoop& loop_;
  Peers& peers_;
  const PolicyInForce& policy_;
  const Limits& limits_;
  Followers& followers_;
  ExportId last_export_ = 0;
  std::map<std::string, Export, std::less<>> exports_;
};

}  // namespace lrpc::nameserver
