// The network domain: a host's graph, the broker over it, and the engine that drives both.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph_tops.h"
#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/path/broker.h"
#include "lrpc/netrpc/rpcbind.h"
#include "lrpc/netrpc/user/served_users.h"
#include "lrpc/sandbox.h"
#include "netrpc/devices/arp/address_watch.h"
#include "netrpc/devices/engine/uring_engine.h"
#include "network_service.h"
#include "sun/sun_client.h"
#include "sun/sun_service.h"

namespace lrpc::netd {

struct DaemonOptions {
  std::string graph;       ///< Text of a description.
  std::string graph_name;  ///< For errors.
  std::string service;     ///< The instance that calls go through; empty: the last that gives a transaction service.
  netrpc::HostAddress address;
  std::string nameserver;               ///< Socket; empty: where every program looks.
  std::vector<std::string> exported{};  ///< Patterns of names that other hosts may import, as of fnmatch(3).
  std::function<Status(const shim::ClientCredentials& client)>
      authorise{};                       ///< Which users of this machine may call other hosts.
  std::vector<SunExport> sun{};          ///< Served as Sun RPC programs, through every SUN_SELECT of the graph.
  std::vector<SunImport> sun_imports{};  ///< Sun RPC programs that this machine's clients import.
  std::uint16_t sun_port = 0;            ///< Port of `sun`, which rpcbind tells clients. 0: rpcbind is told nothing.
  netrpc::HostAddress sun_address{};     ///< Address of `sun`; not known: all addresses of this machine.
  unsigned threads = 4;                  ///< Of the engine.
  netrpc::EngineKind engine = netrpc::EngineKind::automatic;
  bool sandbox = true;            ///< Enters the sandbox; else it keeps CAP_NET_RAW, and nothing more.
  bool sandbox_required = false;  ///< Fails if the sandbox is not complete.
  std::string state_file{};       ///< An existing file that stays writable. Empty: none.
  /// Whether memory is so short that nothing new may begin, for anybody. Called on any thread.
  std::function<bool()> short_of_memory = [] { return false; };
  /// Called, on any thread, when take_notices() has something. Must not block.
  std::function<void()> noticed = [] {};
  /// A port is in use, as the error says: waits for `pause`, then start() tries again. False: the daemon is to end.
  /// Called in the thread that calls start().
  std::function<bool(const Error& taken, std::chrono::milliseconds pause)> waits_for_port = [](const Error&, auto) {
    return false;
  };
};

/// What the daemon's graph needs for Sun RPC.
[[nodiscard]] SunUse sun_use(const DaemonOptions& options);

/// What the daemon's graph may name: every kind that there is, and USER. TRACE writes where the log goes.
[[nodiscard]] netrpc::ProtocolKinds daemon_kinds();

class Daemon {
 public:
  /// Composes the graph, drops privileges, enters the sandbox, starts. Called in the first thread of the process,
  /// before it has others. Errors: those of the graph (with the file's name in front) and of the export of NetworkPath;
  /// call_cancelled: it was told to end while it waited for a port.
  static Result<std::unique_ptr<Daemon>> start(DaemonOptions options);
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  /// Ends calls under way. Waits for the procedures of this machine's servers that other hosts have called.
  ~Daemon();

  /// The calling thread is inside the graph's monitor: it carries messages through protocols, where nothing may throw.
  [[nodiscard]] bool is_carrying() const noexcept { return host_->monitor().held(); }
  /// What is going on, in lines of text.
  [[nodiscard]] std::string state();
  /// What the administrator should know of the network, in lines for the log. Any thread.
  [[nodiscard]] std::vector<std::string> take_notices();
  /// Reads the files of keys again. Returns what happened, for the log; nothing if no layer reads keys.
  [[nodiscard]] Result<std::string> reread_keys();
  [[nodiscard]] std::string address() const;
  /// The parts of the sandbox that are in force; nullopt: it is off.
  [[nodiscard]] const std::optional<sandbox::Report>& shut_in() const noexcept { return shut_in_; }
  /// The graph has a layer that knows other hosts by keys.
  [[nodiscard]] bool authenticates() const noexcept { return !keyed_.empty(); }

 private:
  explicit Daemon(DaemonOptions options) : options_(std::move(options)) {}
  /// name_taken: a port is in use, or a protocol number; may be tried again.
  Status compose();
  void decompose() noexcept;
  /// Lets processes of this machine be the USERs of the graph. One that cannot be exported is a notice.
  void serve_users();
  /// Tells rpcbind of the Sun RPC programs. Without an rpcbind they are served all the same.
  void register_programs();
  Status shut_itself_in();
  /// Makes what Sun RPC needs. Inside the monitor, after the graph is composed.
  Status prepare_sun(const GraphTops& tops);
  void notice(std::string text);
  [[nodiscard]] bool is_exported(std::string_view name) const;

  static constexpr std::size_t kNotices = 64;  ///< So many wait to be logged; further ones are lost.

  const DaemonOptions options_;
  std::mutex notices_mutex_;
  std::vector<std::string> notices_;
  netrpc::MonotonicClock clock_;
  std::unique_ptr<netrpc::UringEngine> engine_;
  std::unique_ptr<netrpc::Host> host_;
  std::unique_ptr<netrpc::Graph> graph_;
  std::unique_ptr<netrpc::AddressWatch> address_watch_;  ///< Null: the graph has an ETH, or there can be none.
  std::vector<netrpc::Protocol*> keyed_;                 ///< Those that read keys.
  std::vector<std::string> key_files_;
  std::optional<sandbox::Report> shut_in_;
  std::unique_ptr<NetworkService> service_;
  std::unique_ptr<SunService> sun_;
  std::unique_ptr<SunClient> sun_client_;
  std::vector<SunTop> sun_tops_;
  std::vector<netrpc::RpcbindRegistration> registered_;
  std::unique_ptr<netpath::RemoteBroker> broker_;
  std::vector<netuser::UserObject*> user_objects_;
  std::unique_ptr<netuser::ServedUsers> users_;
};

}  // namespace lrpc::netd
