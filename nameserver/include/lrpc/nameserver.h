// The nameserver: the third party that both domains trust to introduce them (LRPC §3.1, where the kernel does it).
// A library, so that a program or a test can start one in-process on a private socket; `lrpcd` is its thin main.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/detail/nameserver/policy.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::nameserver {

/// What the event loop runs on. `automatic`: io_uring, or epoll where the kernel or a sandbox refuses it.
enum class Backend : std::uint8_t { automatic, io_uring, epoll };

/// The most that peers can take; no number is 0 (lrpc/detail/shim/no_limit.h). Users share the limits that are of all
/// users together: docs/POLICY.md.
struct Limits {
  UserQuota user{};  ///< The most that one user can take, over all its connections, unless the policy says otherwise.
  std::size_t max_connections = 1024;  ///< Of all users together, as the limits below.
  std::size_t max_names = 16'384;
  std::uint64_t max_declaration_bytes = 256U << 20;
  std::size_t max_imports = 8192;
  std::size_t max_binds = 4096;  ///< Unanswered BindRequests; each holds two descriptors.
  std::size_t max_exports_per_connection = 256;
  std::size_t max_export_bytes_per_connection = 4U << 20;  ///< Of the declarations that the connection exports.
  std::size_t max_imports_per_connection = 32;             ///< Imports that wait or are being bound.
  std::size_t max_binds_per_server = 32;              ///< Unanswered BindRequests; further imports wait their turn.
  std::size_t max_queued_messages = 64;               ///< For a slow reader; one more and it is disconnected.
  std::size_t max_fds_in_flight_per_connection = 96;  ///< Sent to a peer that has not read them yet.
  std::size_t max_fds_in_flight = 768;                ///< The same over all connections. Linux's limit for all
                                                      ///< processes of a user is RLIMIT_NOFILE, often 1024.
  std::uint64_t max_region_bytes = limits::kMaxRegionSize;
};

/// How busy the machine's processors are.
struct MachineLoad {
  unsigned processors = 0;
  double idle = 0;     ///< Processors that had nothing to do: the average since the previous reading.
  double running = 0;  ///< Threads that run or are ready to run now, without the one that reads.
};
/// Reads the load now; none if it is not known (any more). Called on the event loop's thread.
using MachineLoadSource = std::function<std::optional<MachineLoad>()>;
/// The default source reads /proc. It opens its files at once. Error: not_supported if they cannot be read.
Result<MachineLoadSource> proc_machine_load();

/// A descriptor of the embedding program that the event loop watches, too.
struct ExtraWatch {
  int fd = -1;  ///< Not owned; must outlive the nameserver.
  /// Called on the event loop's thread whenever `fd` is readable or hung up; must not block. If it returns false, the
  /// loop stops watching `fd`.
  std::function<bool()> on_readable{};
};

enum class LogLevel : std::uint8_t { debug, info, warning };

/// Durations, counts and bytes: lrpc/detail/shim/no_limit.h. Nameserver::open() refuses meaningless values
/// (invalid_argument).
struct NameserverOptions {
  /// Empty: $LRPC_SOCKET, else $XDG_RUNTIME_DIR/lrpc/lrpcd.sock, else /run/lrpc/lrpcd.sock. The nameserver makes the
  /// directory if it is missing (private, except the system's), and replaces the socket of a nameserver that has died.
  std::string socket_path{};
  /// Permissions of the socket. Unset: 0666 for /run/lrpc/lrpcd.sock, else 0600.
  std::optional<mode_t> mode{};
  Backend backend = Backend::automatic;
  /// When a clerk has not answered an import for this time, the client gets timed_out. Over zero, as the next two.
  std::chrono::milliseconds bind_timeout{5000};
  /// A peer that leaves messages unread for this time is disconnected. kNoLimit: no peer is.
  std::chrono::milliseconds unread_timeout{60'000};
  Limits limits{};
  std::shared_ptr<Policy> policy{};  ///< Null: default_policy(). See also Nameserver::set_policy().
  /// Called on the event loop's thread, with one line. Null: no log. Peers cannot put control characters into it.
  /// The rate of lines is limited: each user can cause 200 lines of a level at once and then 10 a second, all users
  /// together 2000 and then 40 a second. Debug lines are not limited. The log says how many lines are left out.
  std::function<void(LogLevel, std::string_view)> log{};
  /// How often the processor allocator looks at the servers, while any of them is active. kNoLimit: it never looks, and
  /// every server polls by its own rule.
  std::chrono::milliseconds allocator_tick{50};
  /// Whether the allocator decides even when all active servers can poll at once. By default each server then follows
  /// its own rule, which reacts within a few calls; the allocator needs some ticks.
  bool allocator_rules_always = false;
  /// Tells the allocator the machine's load. Empty: proc_machine_load().
  MachineLoadSource machine_load{};
  /// Returns true while memory is short. The nameserver then turns connections away, and refuses exports, imports,
  /// lists and descriptions as limit_reached. Called on the event loop's thread. Null: memory is never short. If an
  /// allocation fails all the same, the connection that it was for ends; lrpc::reserve makes that rare in lrpcd.
  std::function<bool()> short_of_memory{};
  /// A descriptor that ends run(), and the waiting of open(), when it becomes readable, e.g. a signalfd. Not owned;
  /// must outlive the nameserver.
  int stop_fd = -1;
  std::vector<ExtraWatch> extra_watches{};
};

/// The processor allocator's work (LRPC §3.4: idle processors spin in the most active domains).
struct AllocatorStatistics {
  std::uint32_t pages = 0;    ///< Servers with which it shares a page.
  std::uint32_t granted = 0;  ///< How many of these it allows to poll now.
  std::uint64_t ticks = 0;    ///< How often it has looked at the servers.
  bool asleep = true;         ///< No server is active, so it does not look and decides nothing.
};

/// A nameserver on one socket. It keeps names, not bindings: once two domains are introduced it holds neither their
/// region's descriptor nor a mapping. When it ends, existing bindings go on.
///
/// Imports of a name that is not exported yet wait in order of arrival. If the server dies while its clerk is being
/// asked, the import waits again if its timeout allows, else it fails with peer_gone. A name vanishes with the
/// connection that exported it or with the process at its other end, whichever ends first. A message that breaks the
/// protocol is answered with bad_message, and its connection is closed; no other connection is affected.
class Nameserver {
 public:
  /// Opens one and runs it on a thread of its own, which blocks all signals. Errors: name_taken if a nameserver already
  /// listens there (the text names its process), not_supported if the kernel refuses the chosen back end,
  /// invalid_argument (the text names the option), system_error.
  static Result<std::unique_ptr<Nameserver>> start(NameserverOptions options);
  /// Opens one that listens; the caller must run() it. Errors as for start().
  static Result<std::unique_ptr<Nameserver>> open(NameserverOptions options);

  Nameserver(const Nameserver&) = delete;
  Nameserver& operator=(const Nameserver&) = delete;
  /// Stops it, closes every connection and removes the socket, unless somebody has put another one in its place.
  ~Nameserver();

  /// Serves until stop() or the stop descriptor. Only after open(), and once. Blocks; costs nothing while idle.
  Status run();
  /// Makes run() return, and after start() waits for its thread. Call it from any other thread; a second call does
  /// nothing.
  void stop() noexcept;
  /// Replaces the policy, from the next event on. Any thread; also before run(). Waiting imports that the new policy
  /// forbids fail. Exported names that it forbids are logged; they stay, and so do bindings. Null: default_policy().
  void set_policy(std::shared_ptr<Policy> policy);

  [[nodiscard]] const std::string& socket_path() const noexcept;
  /// All zero if there is no allocator. Any thread.
  [[nodiscard]] AllocatorStatistics allocator_statistics() const;
  /// "io_uring" or "epoll".
  [[nodiscard]] std::string_view backend() const noexcept;

 private:
  struct Parts;
  explicit Nameserver(std::unique_ptr<Parts> parts) noexcept;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lrpc::nameserver
