// The nameserver: its parts, and which of them each event concerns. Everything here runs on the event loop's thread.
//
//   peers/      connections: accept, receive, send, close
//   registry/   names: export, withdraw, list, describe
//   binder/     import, bind
//   policy/     who may do what
//   allocator/  which domains may poll
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allocator/allocator_driver.h"
#include "binder/binder.h"
#include "loop/event_loop.h"
#include "loop/listen_socket.h"
#include "lrpc/nameserver.h"
#include "peers/peers.h"
#include "policy/policy_in_force.h"
#include "registry/registry.h"

namespace lrpc::nameserver {

class Core final : Peers::Owner, Registry::Followers {
 public:
  /// options.policy must be set: it is the first policy. The loop must outlive the Core, and must not be running when
  /// the Core is destroyed.
  Core(EventLoop& loop, ListenSocket listener, const NameserverOptions& options);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Begins to listen to peers and to the stop descriptor.
  Status begin();

  /// Nameserver::set_policy(). Any thread.
  void set_policy(std::shared_ptr<Policy> policy) { policy_.set(std::move(policy)); }

  [[nodiscard]] const std::string& socket_path() const noexcept { return peers_.socket_path(); }
  [[nodiscard]] AllocatorStatistics allocator_statistics() const {
    return allocator_ ? allocator_->statistics() : AllocatorStatistics{};
  }

 private:
  void begin_allocator();
  Status watch_extra(const ExtraWatch& extra);
  void on_message(Connection& peer, shim::BinderMessage message) override;
  void on_end(Connection& peer) noexcept override;
  void on_exported(Connection& server, const std::string& name) override;
  void on_withdrawn(Connection& server, const std::string& name) override { binder_.on_withdrawn(server, name); }
  void on_new_policy();
  void share_page(Connection& server);
  void wake_allocator(Connection& peer, std::uint32_t request);

  EventLoop& loop_;
  const NameserverOptions& options_;
  std::vector<EventLoop::WatchId> extra_watches_;
  PolicyInForce policy_;
  Peers peers_;
  Registry registry_;
  Binder binder_;
  std::optional<AllocatorDriver> allocator_;
};

}  // namespace lrpc::nameserver
