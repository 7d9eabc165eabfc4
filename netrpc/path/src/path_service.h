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
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "accounts.h"
#include "lrpc/netrpc/path/broker.h"
#include "lrpc/server.h"
#include "messages.h"
#include "network_path.server.h"
#include "peer_silence.h"
#include "vain_hosts.h"

namespace lrpc::netpath {

/// The procedures of NetworkPath. Thread-safe; must outlive the Server that serves them.
class PathService {
 public:
  using Clock = std::chrono::steady_clock;

  /// A binding that nobody uses any more, of which its server's host must be told.
  struct Unbind {
    HostAddress host;
    BindingKey key;
    Clock::time_point since;
  };
  using Unbinds = std::list<Unbind>;

  class Members;
  /// The object behind a client's handle: one binding at a server's host, or a binding to a group.
  class Path {
   public:
    /// `claim` null: it is the path to a group's member.
    Path(PathService& service, HostAddress at, CallAccounts counted_in, std::uint64_t of, std::unique_ptr<Claim> claim);
    Path(const Path&) = delete;
    Path& operator=(const Path&) = delete;
    /// The client has closed it, or has gone. Another thread tells the other host later.
    ~Path();
    /// The other host has bound it. Called before any other thread knows of the path.
    void bound(const BindingKey& given) noexcept { unbind_.front().key = given; }
    [[nodiscard]] const BindingKey& key() const noexcept { return unbind_.front().key; }
    /// The client's user. Not for the path to a group's member.
    [[nodiscard]] uid_t user() const noexcept { return claim_->user; }
    /// No call on it reaches its server any more.
    void end() noexcept { ended_.store(true, std::memory_order_release); }
    [[nodiscard]] bool has_ended() const noexcept { return ended_.load(std::memory_order_acquire); }

    const HostAddress host;       ///< Or a group's address.
    const CallAccounts accounts;  ///< Empty for the path to a group's member.
    const std::uint64_t hash;
    const std::uint64_t local_binding;        ///< The client's; the path ends with it. 0: to a group's member.
    std::unique_ptr<Members> members;         ///< Of a group. Null: it is a path to one host.
    std::unique_ptr<ForeignBinding> foreign;  ///< To a server that speaks another protocol; then there is no key.
    /// When its client had gone. max(): it has not.
    mutable std::atomic<Clock::time_point> left{Clock::time_point::max()};

   private:
    friend class PathService;
    PathService& service_;
    std::unique_ptr<Claim> claim_;
    std::atomic<bool> ended_{false};
    std::uint64_t asked_ = 0;  ///< The last round of ping() that has asked about it.
    Unbinds unbind_;           ///< One element, made with the path, so that the path's end needs no memory.
  };

  PathService(Transport& transport, const BrokerOptions& options, std::uint64_t boot) noexcept
      : transport_(transport), options_(options), boot_(boot), accounts_(options), silence_(options.silence) {}

  using BindOutcome = Result<NetworkPath::BindResults, NetworkPath::Refused, NetworkPath::DeclarationWanted>;
  BindOutcome Bind(CallContext& context, const String<255>& name, const String<255>& host,
                   const String<255>& interface_name, std::uint16_t major_version, std::uint16_t minor_version,
                   std::uint64_t hash, std::uint32_t wait_ms, std::uint32_t largest_call, const String<255>& call_name,
                   std::uint32_t largest_return, const String<255>& return_name);
  Result<NetworkPath::Path, NetworkPath::Refused> BindDeclared(CallContext& context, const String<255>& name,
                                                               const String<255>& host, std::uint32_t wait_ms,
                                                               std::span<const std::byte> declaration);
  Result<NetworkPath::CallResults> Call(CallContext& context, Path& path, std::uint16_t number, std::uint32_t limit_ms,
                                        std::span<const std::byte> image, Buffer& results);
  Result<NetworkPath::CallAllResults> CallAll(CallContext& context, Path& path, std::uint16_t number,
                                              std::uint32_t limit_ms, std::span<const std::byte> image,
                                              Buffer& replies);
  Result<NetworkPath::ExportsResults> Exports(CallContext& context, const String<255>& name);
  void Groups(CallContext& context, std::uint64_t after, Buffer& bindings);
  void Send(CallContext& context, Path& path, std::uint16_t number, std::span<const std::byte> image);

  // For the broker's own threads: send_unbinds() for one, the others for another one.

  /// Asks every host to which paths lead whether the bindings still exist.
  void ping();
  /// Binds again those members of groups that are not bound: all of them, or only those that are marked as lost.
  void rebind(bool all);
  [[nodiscard]] bool any_lost() const noexcept { return lost_.load(std::memory_order_acquire); }
  /// Tells hosts which of their bindings nobody uses any more.
  void send_unbinds();
  /// Has send_unbinds() try again what did not get through; what its host has dropped by itself by `now` is forgotten.
  void retry_unbinds(Clock::time_point now);
  [[nodiscard]] bool any_unbinds() const;
  /// How long to wait for the next ping().
  [[nodiscard]] std::chrono::milliseconds pause() const;
  [[nodiscard]] std::size_t paths() const;
  /// The bindings to groups of `user` (nullopt: of all users) with numbers above `after`, by number; at most `most`.
  [[nodiscard]] std::vector<GroupBinding> group_bindings(std::optional<uid_t> user, std::uint64_t after = 0,
                                                         std::size_t most = ~std::size_t{}) const;

  /// Called, on any thread, when there is something for send_unbinds() or rebind().
  std::function<void()> on_work;
  /// Called, on any thread, with the local binding of a path that has ended: the binding must end, too.
  std::function<void(std::uint64_t binding)> on_ended;
  /// The client with this local binding has gone. Tells the other hosts now, although calls may be under way: their
  /// procedures may wait for just that.
  void client_gone(std::uint64_t binding) noexcept;

 private:
  void let_go(Path& path) noexcept;
  [[nodiscard]] static NetworkPath::Refused refusal(const Error& error);
  [[nodiscard]] bool is_foreign(const String<255>& name, const String<255>& host) const noexcept {
    return options_.foreign != nullptr && options_.foreign->knows(name.view(), host.view());
  }
  /// What an interface needs: the most bytes that a packed image takes, and in which procedures.
  struct Needed {
    std::string interface;
    std::size_t call = 0;
    std::string call_name;
    std::size_t result = 0;
    std::string result_name;
  };
  /// Errors: message_too_long, which names the procedure and says by how much. `way`: "to ...", for its text.
  [[nodiscard]] static Status fits(const Needed& needed, const MessageSizes& carried, const std::string& way);
  /// Checks what a BIND needs: the other host is there, and messages fit. `at`: "host 'NAME'".
  [[nodiscard]] Status agree_with(HostAddress host, const std::string& at, const Needed& needed,
                                  std::chrono::milliseconds patience);
  /// `caller` null: no client waits. Each question to the host counts in `counted`; null: in no account.
  [[nodiscard]] Result<BindingKey> bind_at(const CallContext* caller, HostAddress host, const std::string& at,
                                           BindMessage message, std::chrono::milliseconds patience,
                                           const CallAccounts* counted = nullptr);
  /// Drops UNBINDs beyond max_paths: the oldest ones, of the hosts with the most.
  void bound_unbinds_locked() noexcept;
  /// The path has been bound: from now on keepalives name it.
  void list_locked(const std::shared_ptr<Path>& path);

  // Of servers that speak another protocol (foreign_paths.cpp).

  /// Errors: those of ForeignServers::bind(), limit_reached.
  [[nodiscard]] Result<std::unique_ptr<ForeignBinding>> bind_foreign(ForeignServers::Wanted& wanted,
                                                                     const CallAccounts& accounts);
  /// As call().
  [[nodiscard]] static NetworkPath::CallResults call_foreign(const CallContext* caller, const Path& path,
                                                             const CallPrologue& prologue,
                                                             std::span<const std::byte> image, Buffer& results);

  // Of groups (group_paths.cpp).

  /// Those that there are now. To be released without the lock.
  [[nodiscard]] std::vector<std::shared_ptr<Path>> paths_to_groups() const;
  /// Binds at all members that are there; an error if there is none.
  [[nodiscard]] Status bind_members(const CallContext& context, const std::shared_ptr<Path>& path, std::string name,
                                    Group group, const Needed& needed, BindMessage message);
  /// False: it is not bound, because another member has its boot id.
  [[nodiscard]] bool bound_as_member(const std::shared_ptr<Path>& path, const Members& members);
  /// Keeps the outcome in the member's `why`.
  [[nodiscard]] Status bind_member(Path& path, std::size_t member, std::chrono::milliseconds patience);
  [[nodiscard]] Status bind_member_at(Path& path, std::size_t member, HostAddress host, const std::string& at,
                                      std::chrono::milliseconds patience);
  class Answers;
  void seek_unbound(Members& members);
  void want_rebind();
  void note_lost(Members& members, const Answers& answers);
  [[nodiscard]] NetworkPath::CallResults call_first(Path& path, const CallPrologue& prologue,
                                                    std::span<const std::byte> image, Buffer& results);
  /// Returns the status of the whole call.
  [[nodiscard]] std::uint16_t call_members(Path& path, CallPrologue prologue, std::span<const std::byte> image,
                                           std::span<std::byte> reply, std::size_t& size, Answers& answers);
  /// For calls on `path`: whether its client has gone more than `silence` ago. The host has been told, and had that
  /// time to end them.
  [[nodiscard]] Gone gone(const Path& path) const {
    return [this, &path] { return options_.now() - path.left.load() > options_.silence; };
  }
  /// `caller` null: no client waits, nor looks at `results`, which may have no room.
  NetworkPath::CallResults call(const CallContext* caller, Path& path, const CallPrologue& prologue,
                                std::span<const std::byte> image, Buffer& results);
  [[nodiscard]] Errc deliver(const Path& path, const CallContext* caller, CallPrologue prologue,
                             std::span<const std::byte> image, std::span<std::byte> reply,
                             std::optional<CallAnswer>& answer);
  void ping_host(HostAddress host, std::vector<std::shared_ptr<Path>> paths, std::chrono::milliseconds usual);

  /// Whether a command was not served because it did not leave this host, or found no room at the other's network.
  [[nodiscard]] static bool unsent(Errc sent) noexcept {
    return sent == Errc::system_error || sent == Errc::message_too_long;
  }
  /// Whether a command was not served because something was lacking on either host, or because it was too long.
  [[nodiscard]] static bool wanting(Errc sent) noexcept { return sent == Errc::limit_reached || unsent(sent); }
  /// The error for the caller then.
  [[nodiscard]] static Errc what_wants(Errc sent) noexcept {
    return sent == Errc::message_too_long ? sent : Errc::limit_reached;
  }

  Transport& transport_;
  std::uint64_t rounds_ = 0;  ///< Of ping(), whose thread alone uses it.
  const BrokerOptions& options_;
  const std::uint64_t boot_;
  Accounts accounts_;
  mutable std::mutex mutex_;
  /// By local binding. A binding has several paths for a moment, while a new path replaces the last one. Listed paths
  /// exist: a path leaves the list, under the lock, before it ends.
  using Listed = std::map<std::pair<std::uint64_t, const Path*>, std::weak_ptr<Path>>;
  [[nodiscard]] static Listed::key_type place_of(const Path& path) noexcept { return {path.local_binding, &path}; }
  [[nodiscard]] static Listed::iterator first_of(Listed& listed, std::uint64_t binding) noexcept {
    return listed.lower_bound({binding, nullptr});
  }
  Listed paths_;
  Listed groups_;                  ///< Paths to groups; those in `paths_` lead to single hosts.
  std::size_t foreign_ = 0;        ///< How many paths lead to foreign servers.
  std::atomic<bool> lost_{false};  ///< There is something for rebind().
  PeerSilence silence_;            ///< Of the hosts to which paths lead.
  VainHosts vain_;                 ///< Hosts that imports have asked, and that have not bound.
  Unbinds unbinds_;
  Unbinds unsent_;  ///< UNBINDs that wait for the next keepalive.
};

}  // namespace lrpc::netpath
