// The remote broker: the network domain's two halves of a truly remote call (LRPC §5.1). Towards this machine's clients
// it serves NetworkPath (libclient/network_path.lrpc); towards other hosts it calls this machine's servers on their
// behalf.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/netrpc/path/foreign.h"
#include "lrpc/netrpc/path/transport.h"

namespace lrpc::netpath {

/// Durations and counts: lrpc/detail/shim/no_limit.h; a count of zero allows none. RemoteBroker::start() refuses
/// meaningless values (invalid_argument).
struct BrokerOptions {
  /// Nameserver socket; empty: where every program looks.
  std::string nameserver{};
  /// Which of this machine's names other hosts may import. Empty: none. Called on any thread; must not block.
  std::function<bool(std::string_view name)> exported{};
  /// Which of this machine's clients may be bound to other hosts; there they act as this machine. Empty: all. As
  /// ExportOptions::authorise.
  std::function<Status(const ClientCredentials& client)> authorise{};
  /// Servers that speak another protocol; must outlive the broker. Null: there are none.
  ForeignServers* foreign = nullptr;
  /// This host's address. Clients cannot import from it: their calls would come back as another host's. 0: none.
  HostAddress own_address = 0;
  /// Limits for each remote host, so that it cannot take everything from the others: bindings, and commands being
  /// served. A host that is known in two ways (by a key, by its address) counts as two.
  std::size_t max_bindings_per_host = 256;
  std::size_t max_commands_per_host = 256;
  /// The same of all remote hosts together. One host may have as many as it leaves free for others, and one at least.
  std::size_t max_bindings = 4096;
  static constexpr std::size_t kMaxCommands = 1024;
  std::size_t max_commands = kMaxCommands;
  /// BINDs that wait for a name: of one remote host, and of all. Beyond these a BIND for a missing name fails at once
  /// (name_unknown).
  std::size_t max_waiting_binds_per_host = 8;
  std::size_t max_waiting_binds = 64;
  /// Calls of this machine's clients under way to one host, which may no longer answer; each takes a thread. One user
  /// has half of them at most. All groups together count as one host more. A call to a group also counts as one to each
  /// member: of those, 1024 are under way at once, and of one user, with its calls to single hosts, 512.
  std::size_t max_calls_to_host = 256;
  /// Remote bindings of all clients of this machine together. One user has half of them at most.
  std::size_t max_paths = 4096;
  /// Threads for calls of this machine's clients that stay when they are idle.
  std::size_t kept_threads = 0;
  /// Returns true while memory is short: then the broker refuses new bindings, of this machine's clients and of other
  /// hosts. Called on any thread.
  std::function<bool()> short_of_memory = [] { return false; };
  /// How often the broker tells each host to which paths lead that they are in use, and asks whether their servers
  /// live. Over zero, as the next two, and less than `silence`: a host that is not asked does not answer. kNoLimit:
  /// never; then `silence` must be kNoLimit, too.
  std::chrono::milliseconds keepalive{10'000};
  /// A path ends when its host has not answered for this time, in use or not. Give the transport the same limit for a
  /// host that is silent during a call. kNoLimit: silence ends no path.
  std::chrono::milliseconds silence = kSilence;
  static constexpr std::chrono::seconds kSilence{30};
  /// The bindings of a client's host are dropped when it has been silent for this time. It must be longer than the
  /// `silence` of that host, so that no binding ends here that the client still has. kNoLimit: never.
  std::chrono::milliseconds forget{90'000};
  /// Bindings that a keepalive names at most; those to one host take turns. Less than the default is for tests only:
  /// the other host takes a keepalive with fewer names as complete, and drops a binding not named for `forget`.
  std::size_t named = 1024;
  /// The time. For tests.
  std::function<std::chrono::steady_clock::time_point()> now = &std::chrono::steady_clock::now;
  /// Identifies this start of the broker; 0: a random number. For tests.
  std::uint64_t boot_id = 0;
};

struct BrokerStatistics {
  std::size_t paths = 0;     ///< Remote bindings of this machine's clients, alive.
  std::size_t bindings = 0;  ///< Bindings of other hosts to this machine's servers, alive.
  std::size_t hosts = 0;     ///< Hosts that have such bindings.
};

/// A binding of one of this machine's clients to a group of hosts.
struct GroupBinding {
  struct Member {
    HostAddress host = 0;
    bool bound = false;
    std::string why{};  ///< Why it is not bound, if known: printable ASCII, at most 200 characters.
  };
  std::uint64_t number = 0;  ///< No other has it at the same time.
  uid_t user = 0;
  std::string group{};
  std::string name{};  ///< What the members export.
  std::vector<Member> members{};
};

/// Owns its threads and its export; not the transport, which must outlive it. Thread-safe.
class RemoteBroker final : public RemoteService {
 public:
  /// Exports NetworkPath as "lrpc.network" and begins to serve. Errors: those of Server::export_interface(),
  /// invalid_argument (an option).
  static Result<std::unique_ptr<RemoteBroker>> start(Transport& transport, BrokerOptions options = {});
  RemoteBroker(const RemoteBroker&) = delete;
  RemoteBroker& operator=(const RemoteBroker&) = delete;
  /// Ends all paths and all bindings of remote hosts. Waits for Transport::call()s that are under way. No serve() may
  /// be running, and none may be called any more.
  ~RemoteBroker() override;

  std::uint16_t serve(const Principal& from, Arrival arrived, std::uint16_t command, std::span<const std::byte> request,
                      std::span<std::byte> reply, std::size_t& reply_size) noexcept override;
  void peer_rebooted(HostAddress host, Arrival last) noexcept override;

  [[nodiscard]] std::uint64_t boot_id() const noexcept;
  [[nodiscard]] BrokerStatistics statistics() const;
  /// All of them, by number: at most max_paths members. Does not block for long.
  [[nodiscard]] std::vector<GroupBinding> group_bindings() const;

 private:
  struct Parts;
  explicit RemoteBroker(std::unique_ptr<Parts> parts) noexcept;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lrpc::netpath
