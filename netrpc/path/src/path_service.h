// The client's half: what this machine's clients ask the network domain for (libclient/network_path.lrpc).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lrpc/netrpc/path/broker.h"
#include "lrpc/server.h"
#include "messages.h"
#include "network_path.server.h"
#include "peer_silence.h"

namespace lrpc::netpath {

/// The procedures of NetworkPath. Thread-safe; must outlive the Server that serves them.
class PathService {
 public:
  using Clock = std::chrono::steady_clock;
  /// E-stacks of the network domain: a call each.
  static constexpr std::size_t kMaxEStacks = 1024;
  /// Calls under way.
  using Load = std::atomic<std::size_t>;
  /// What a path's calls count in: one user is not to take all from the others.
  struct Loads {
    std::shared_ptr<Load> to_host;
    std::shared_ptr<Load> of_user_to_host;
    std::shared_ptr<Load> of_user;
  };

  /// What another host is to be told.
  struct Unbind {
    HostAddress host;
    BindingKey key;
    Clock::time_point since;
  };
  using Unbinds = std::list<Unbind>;

  /// The object behind a client's handle: one binding at a server's host.
  class Path {
   public:
    Path(PathService& service, HostAddress at, Loads counted_in, std::uint64_t of, std::uint64_t local)
        : host(at),
          loads(std::move(counted_in)),
          hash(of),
          local_binding(local),
          service_(service),
          unbind_{{at, {}, {}}} {}
    Path(const Path&) = delete;
    Path& operator=(const Path&) = delete;
    /// The client has closed it, or has gone: the other host is told, later and by another thread.
    ~Path() { service_.let_go(*this); }
    /// The other host has bound it. Before anybody else knows of it.
    void bound(const BindingKey& given) noexcept { unbind_.front().key = given; }
    [[nodiscard]] const BindingKey& key() const noexcept { return unbind_.front().key; }

    const HostAddress host;
    const Loads loads;
    const std::uint64_t hash;
    const std::uint64_t local_binding;  ///< Of the client, with which this ends.
    std::atomic<bool> ended{false};     ///< No call on it reaches its server any more.

   private:
    friend class PathService;
    PathService& service_;
    Unbinds unbind_;  ///< One, made with the path, so that its end needs no memory.
  };

  PathService(Transport& transport, const BrokerOptions& options, std::uint64_t boot) noexcept
      : transport_(transport), options_(options), boot_(boot), silence_(options.silence) {}

  Result<NetworkPath::Path, NetworkPath::Refused> Bind(CallContext& context, const String<255>& name,
                                                       const String<255>& host, const String<255>& interface_name,
                                                       std::uint16_t major_version, std::uint16_t minor_version,
                                                       std::uint64_t hash, std::uint32_t wait_ms,
                                                       std::uint32_t largest_call, const String<255>& call_name,
                                                       std::uint32_t largest_return, const String<255>& return_name);
  Result<NetworkPath::CallResults> Call(CallContext& context, Path& path, std::uint16_t number, std::uint32_t limit_ms,
                                        std::span<const std::byte> image, Buffer& results);
  void Send(CallContext& context, Path& path, std::uint16_t number, std::span<const std::byte> image);

  // For the broker's own thread.

  /// Asks every host to which paths lead whether they still do; the local bindings of those that do not, which are to
  /// be ended.
  [[nodiscard]] std::vector<std::uint64_t> ping();
  /// Tells hosts which of their bindings nobody uses any more.
  void send_unbinds();
  /// Has send_unbinds() try again what did not get through; what its host has dropped by itself by `now` is forgotten.
  void retry_unbinds(Clock::time_point now);
  [[nodiscard]] bool any_unbinds() const;
  /// Until the next ping().
  [[nodiscard]] std::chrono::milliseconds pause() const;
  [[nodiscard]] std::size_t paths() const;

  /// Called, on any thread, when there is something for send_unbinds().
  std::function<void()> on_unbind;

 private:
  /// No host, no user: of all of them.
  [[nodiscard]] std::shared_ptr<Load> load_locked(std::optional<HostAddress> host, std::optional<uid_t> user);
  void let_go(Path& path) noexcept;
  /// What an interface needs: the most bytes that a packed image takes, and in which procedures.
  struct Needed {
    std::string interface;
    std::size_t call = 0;
    std::string call_name;
    std::size_t result = 0;
    std::string result_name;
  };
  /// Errors: limit_reached, which names the procedure and says by how much. `way`: "to ...", for its text.
  [[nodiscard]] static Status fits(const Needed& needed, const MessageSizes& carried, const std::string& way);
  [[nodiscard]] Result<BindingKey> bind_at(const CallContext& context, HostAddress host, std::string_view host_name,
                                           BindMessage message);
  [[nodiscard]] Errc deliver(const Path& path, const CallContext* caller, CallPrologue prologue,
                             std::span<std::byte> request, std::span<std::byte> reply, std::size_t& size);
  [[nodiscard]] std::vector<std::uint64_t> ping_host(HostAddress host, std::vector<std::shared_ptr<Path>> paths,
                                                     std::chrono::milliseconds usual);

  /// Whether a command was not served for want of something, there or here.
  [[nodiscard]] static bool wanting(Errc sent) noexcept {
    return sent == Errc::limit_reached || sent == Errc::system_error;
  }

  Transport& transport_;
  const BrokerOptions& options_;
  const std::uint64_t boot_;
  mutable std::mutex mutex_;
  std::map<const Path*, std::weak_ptr<Path>> paths_;
  std::map<std::uint64_t, uid_t> of_binding_;  ///< Local bindings that have a path, or are getting one, and whose.
  PeerSilence silence_;                        ///< Of the hosts to which paths lead.
  std::map<std::pair<std::optional<HostAddress>, std::optional<uid_t>>, std::weak_ptr<Load>> loads_;
  Unbinds unbinds_;
  Unbinds unsent_;  ///< Of those, what is to wait for the next keepalive.
};

}  // namespace lrpc::netpath
