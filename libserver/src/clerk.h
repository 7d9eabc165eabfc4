// The clerk: exports interfaces, authorises imports, makes bindings (LRPC §3.1).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lrpc/server/server.h"
#include "lrpc/shim/binder_protocol.h"
#include "lrpc/shim/fd.h"
#include "lrpc/shim/watcher.h"
#include "served_binding.h"

namespace lrpc::server {

class Domain;

/// Speaks the binder protocol to the nameserver, over one socket. Requests come from the program's threads; answers and
/// bind requests are read on the watcher's thread. Thread-safe.
///
/// Names outlive the nameserver that they were exported to: when it hangs up, the watcher's thread connects anew, with
/// a growing pause between attempts, and exports them again. Nothing on that thread waits for a nameserver.
class Clerk {
 public:
  explicit Clerk(Domain& domain);
  Clerk(const Clerk&) = delete;
  Clerk& operator=(const Clerk&) = delete;

  Result<ExportId> export_interface(std::string name, std::shared_ptr<ServedInterface> interface);
  Status withdraw(ExportId id);
  /// Tells the nameserver's allocator, if there is one, that this server has calls to poll for. On the watcher's
  /// thread.
  void wake_allocator();
  /// Hangs up. No binding is made over the nameserver after it.
  void close();

 private:
  using Answer = Result<shim::BinderMessage>;
  /// A connection to a nameserver, from connect to hang-up. Whoever sends holds it; the clerk's hold goes with the
  /// hang-up.
  struct Link {
    UniqueFd fd;
    shim::Watcher::Id watch = 0;  ///< Under the clerk's lock.
    // The watcher thread's own.
    Error last_words{Errc::peer_gone, "the nameserver hung up"};
    std::deque<shim::BinderMessage> outbox;  ///< What the nameserver was not ready to take.
    std::chrono::milliseconds outbox_pause{1};
    shim::Watcher::Task flush;  ///< When the nameserver is to be asked again whether it takes the next one.
  };
  /// A name of this server. It is here from the first request until it is withdrawn, whether a nameserver has it or
  /// not.
  struct Export {
    std::string name;
    std::shared_ptr<ServedInterface> interface;
    bool established =
        false;             ///< The program has been, or is being, given its id: from now on it comes back by itself.
    bool asked = false;    ///< The nameserver has been asked and has not answered.
    bool refused = false;  ///< It has refused; it is asked again after the pause.
    std::uint64_t registered = 0;  ///< Its id at the nameserver that has it now; 0: none has it.
    Errc told = Errc::ok;          ///< The last that on_registration heard of it.
  };
  /// A request that the nameserver has not answered.
  struct Asked {
    std::uint64_t export_id = 0;                  ///< Our own, of what it is about.
    std::optional<std::promise<Answer>> waiting;  ///< A thread of the program, unless none waits (any more).
    /// The name that goes with the answer, or with the withdrawal that follows it; empty: none. Until then the
    /// nameserver may have it, and would refuse it to this very server.
    std::string leaving{};
  };
  /// What the program is to be told when no lock is held.
  struct News {
    std::shared_ptr<ServedInterface> interface;
    Status status;
  };

  // The nameserver's side: on the program's threads.
  Result<std::shared_ptr<Link>> linked();
  Answer ask(Link& link, std::uint64_t export_id, shim::BinderMessage request);
  Status wait_until_left(const std::string& name);
  static shim::BinderMessage export_request(std::uint32_t number, const Export& exported);
  Status adopt_locked(UniqueFd socket);

  // The nameserver's side: on the watcher's thread.
  void on_nameserver(const std::shared_ptr<Link>& link, shim::Watcher::Id watch);
  void hear(const std::shared_ptr<Link>& link, shim::Watcher::Id watch);
  void on_answer(const std::shared_ptr<Link>& link, shim::BinderMessage message);
  void on_exported_locked(const std::shared_ptr<Link>& link, const Asked& asked, std::uint64_t registered,
                          std::vector<News>& news);
  void send_soon(const std::shared_ptr<Link>& link, shim::BinderMessage message);
  void withdraw_soon_locked(const std::shared_ptr<Link>& link, std::uint64_t registered, std::string name);
  void flush(const std::shared_ptr<Link>& link);
  void hang_up_nameserver(const std::shared_ptr<Link>& link, shim::Watcher::Id watch, const Error& why);
  void register_missing();
  void on_retry();
  void retry_later_locked() noexcept;
  [[nodiscard]] bool anything_missing_locked() const;
  static void change_locked(Export& exported, Error why, std::vector<News>& news) noexcept;
  static void tell(const std::vector<News>& news) noexcept;
  void on_poller_page(shim::BinderMessage message) noexcept;
  void on_bind_request(const std::shared_ptr<Link>& link, shim::BinderMessage message);
  Status bind(shim::BindRequest& request, shim::BinderMessage& message);
  [[nodiscard]] std::shared_ptr<ServedInterface> exported(std::uint64_t registered);

  Domain& domain_;
  const shim::Watcher::Task retry_{[this] { on_retry(); }};
  const shim::Watcher::Task register_{[this] { register_missing(); }};
  std::mutex mutex_;
  std::shared_ptr<Link> link_;        ///< Null: not connected.
  std::vector<std::string> sockets_;  ///< Where to look for a nameserver again; the environment is read only once.
  std::uint32_t last_request_ = 0;
  std::uint64_t last_export_ = 0;
  std::map<std::uint32_t, Asked> asked_;
  std::condition_variable left_;             ///< Requests have been answered, or will never be: names have left.
  std::map<std::uint64_t, Export> exports_;  ///< By our own id, which no nameserver knows.
  std::chrono::milliseconds pause_;          ///< Before the next attempt to connect or to export again.
  bool retry_posted_ = false;
  bool closed_ = false;
};

}  // namespace lrpc::server
