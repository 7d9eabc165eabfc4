// The clerk: exports interfaces, authorises imports, makes bindings (LRPC §3.1).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "call/served_binding.h"
#include "exported_name.h"
#include "lrpc/detail/server/server.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/watcher.h"
#include "nameserver_link.h"
#include "poller/poller_grant.h"

namespace lrpc::server {

class Bindings;

/// Speaks the binder protocol to the nameserver, over one socket. Requests come from the program's threads; answers and
/// bind requests are read on the watcher's thread. Thread-safe.
///
/// Names outlive the nameserver that they were exported to: when it hangs up, the watcher's thread connects anew, with
/// a growing pause between attempts, and exports them again. Nothing on that thread waits for a nameserver.
class Clerk {
 public:
  /// `nameserver`: its socket; empty: see ServerOptions::nameserver. The references must outlive it; the watcher may be
  /// constructed later.
  Clerk(std::string nameserver, Bindings& bindings, PollerGrant& grant, shim::Watcher& watcher);
  Clerk(const Clerk&) = delete;
  Clerk& operator=(const Clerk&) = delete;

  /// Not in a forked child, nor is withdraw(): Server checks that.
  Result<ExportId> export_interface(std::string name, std::shared_ptr<ServedInterface> interface);
  Status withdraw(ExportId id);
  /// Tells the nameserver's allocator, if there is one, that this server has calls to poll for. On the watcher's
  /// thread.
  void wake_allocator();
  /// Hangs up. Afterwards no binding is made by way of the nameserver.
  void close();

 private:
  using Answer = Result<shim::BinderMessage>;
  /// A request that the nameserver has not answered.
  struct Asked {
    std::uint64_t export_id = 0;                  ///< This clerk's id of the export; 0: none.
    std::optional<std::promise<Answer>> waiting;  ///< Set while a thread of the program waits.
    /// The name that the nameserver releases with this answer, or with that to the withdrawal which follows; empty:
    /// none. Until then it may refuse the name even to this server.
    std::string leaving{};
  };
  // The nameserver's side: on the program's threads.
  Result<std::shared_ptr<NameserverLink>> linked();
  Answer ask(NameserverLink& link, std::uint64_t export_id, shim::BinderMessage request);
  Status wait_until_left(const std::string& name);
  Status adopt_locked(UniqueFd socket, std::vector<std::string> at);

  // The nameserver's side: on the watcher's thread.
  void on_nameserver(const std::shared_ptr<NameserverLink>& link, shim::Watcher::Id watch);
  /// Handles one message. False: there is none, or the nameserver is gone.
  [[nodiscard]] bool hear(const std::shared_ptr<NameserverLink>& link, shim::Watcher::Id watch);
  void on_answer(const std::shared_ptr<NameserverLink>& link, shim::BinderMessage message);
  /// Nobody hears the answers any more.
  void let_go_of_asked_locked(const Error& why);
  void on_exported_locked(const std::shared_ptr<NameserverLink>& link, const Asked& asked, std::uint64_t registered,
                          std::vector<RegistrationNews>& news);
  void withdraw_soon_locked(const std::shared_ptr<NameserverLink>& link, std::uint64_t registered, std::string name);
  void hang_up_nameserver(const std::shared_ptr<NameserverLink>& link, shim::Watcher::Id watch, const Error& why);
  void register_missing();
  void on_retry();
  void retry_later_locked() noexcept;
  [[nodiscard]] bool anything_missing_locked() const;
  void on_bind_request(const std::shared_ptr<NameserverLink>& link, shim::BinderMessage message);
  [[nodiscard]] std::shared_ptr<ServedInterface> exported(std::uint64_t registered);

  const std::string nameserver_;
  Bindings& bindings_;
  PollerGrant& grant_;
  shim::Watcher& watcher_;
  const shim::Watcher::Task retry_{[this] { on_retry(); }};
  const shim::Watcher::Task register_{[this] { register_missing(); }};
  std::mutex mutex_;
  std::shared_ptr<NameserverLink> link_;  ///< Null: not connected.
  /// Where to look for the nameserver again: the one socket at which there was one. Empty before the first link.
  std::vector<std::string> sockets_;
  std::uint32_t last_request_ = 0;
  std::uint64_t last_export_ = 0;
  std::map<std::uint32_t, Asked> asked_;
  std::condition_variable left_;                   ///< Requests have been answered or never will be: names may be free.
  std::map<std::uint64_t, ExportedName> exports_;  ///< By our own id, which no nameserver knows.
  std::chrono::milliseconds pause_;                ///< Before the next attempt to connect or to export again.
  bool retry_posted_ = false;
  bool closed_ = false;
};

}  // namespace lrpc::server
