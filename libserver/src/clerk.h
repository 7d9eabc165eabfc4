// The clerk: exports interfaces, authorises imports, makes bindings (LRPC §3.1).
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "lrpc/server/server.h"
#include "lrpc/shim/binder_protocol.h"
#include "lrpc/shim/fd.h"
#include "lrpc/shim/watcher.h"
#include "served_binding.h"

namespace lrpc::server {

class Domain;

/// Speaks the binder protocol: to the nameserver over one socket, to each private client over its own. Requests come from
/// the program's threads; answers and bind requests are read on the watcher's thread. Thread-safe.
class Clerk {
 public:
  explicit Clerk(Domain& domain) noexcept : domain_(domain) {}
  Clerk(const Clerk&) = delete;
  Clerk& operator=(const Clerk&) = delete;

  Result<ExportId> export_interface(std::string name, std::shared_ptr<ServedInterface> interface);
  Status withdraw(ExportId id);
  Status serve_over(UniqueFd socket, std::shared_ptr<ServedInterface> interface);
  /// Hangs up everywhere. No binding is made after it.
  void close();

 private:
  struct PrivateSocket {
    UniqueFd fd;
    shim::Watcher::Id watch = 0;  ///< Under the clerk's lock.
    std::shared_ptr<ServedInterface> interface;
  };

  // The nameserver's side.
  Status connect_locked();
  Result<shim::BinderMessage> ask(shim::BinderMessage request);
  void on_nameserver(int socket, shim::Watcher::Id watch);
  void hang_up_nameserver(shim::Watcher::Id watch);
  void on_bind_request(int socket, shim::BinderMessage message);
  Status bind(shim::BindRequest& request, std::vector<UniqueFd> fds);
  [[nodiscard]] std::shared_ptr<ServedInterface> exported(std::uint64_t export_id);

  // Private sockets.
  void on_private(const std::shared_ptr<PrivateSocket>& socket, shim::Watcher::Id watch);
  Result<shim::BinderMessage> bind_privately(const PrivateSocket& socket, const shim::BinderMessage& message);
  void hang_up(const std::shared_ptr<PrivateSocket>& socket, shim::Watcher::Id watch);

  Domain& domain_;
  std::mutex mutex_;
  UniqueFd nameserver_;
  std::uint64_t nameserver_watch_ = 0;
  std::uint32_t last_request_ = 0;
  std::map<std::uint32_t, std::promise<Result<shim::BinderMessage>>> asked_;
  std::map<std::uint64_t, std::shared_ptr<ServedInterface>> exports_;
  /// Exports whose answer is not read yet, by request: a bind request may follow the answer at once.
  std::map<std::uint32_t, std::shared_ptr<ServedInterface>> exporting_;
  std::map<int, std::shared_ptr<PrivateSocket>> private_;
  bool closed_ = false;
};

}  // namespace lrpc::server
