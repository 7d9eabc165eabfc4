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

#include "lrpc/nameserver/policy.h"
#include "lrpc/shim/binder/binder_protocol.h"
#include "lrpc/shim/call/pdl.h"
#include "lrpc/shim/result.h"

namespace lrpc::nameserver {

/// What the event loop runs on. `automatic`: io_uring, or epoll where the kernel or a sandbox refuses it.
enum class Backend : std::uint8_t { automatic, io_uring, epoll };

/// What one peer can take from the others, at most; no number is 0 (lrpc/shim/no_limit.h). What is of all users together is shared between them: docs/POLICY.md.
struct Limits {
  UserQuota user{};  ///< What one user can, over all its connections, unless the policy has another quota for it.
  std::size_t max_connections = 1024;  ///< Of all users, as what follows.
  std::size_t max_names = 16'384;
  std::uint64_t max_declaration_bytes = 256U << 20;
  std::size_t max_imports = 8192;
  std::size_t max_binds = 4096;  ///< Unanswered BindRequests; each holds two descriptors.
  std::size_t max_exports_per_connection = 256;
  std::size_t max_export_bytes_per_connection = 4U << 20;  ///< Of the declarations it exports.
  std::size_t max_imports_per_connection = 32;             ///< Imports that wait or are being bound.
  std::size_t max_binds_per_server = 32;              ///< Unanswered BindRequests; further imports wait their turn.
  std::size_t max_queued_messages = 64;               ///< For a slow reader; one more and it is disconnected.
  std::size_t max_fds_in_flight_per_connection = 96;  ///< Sent to a peer that has not read them yet.
  std::size_t max_fds_in_flight = 768;                ///< The same over all connections. Linux's limit for a user's
                                                      ///< processes is RLIMIT_NOFILE, 1024 often enough.
  std::uint64_t max_region_bytes = limits::kMaxRegionSize;
};

/// How loaded the machine is.
struct MachineLoad {
  unsigned processors = 0;
  double idle = 0;     ///< Processors that had nothing to do, on average since the look before.
  double running = 0;  ///< Threads that run or want to now, without the one that looks.
};
/// Looks; none if it is not known (any more). Called on the event loop's thread.
using MachineLoadSource = std::function<std::optional<MachineLoad>()>;
/// The default, from /proc; opens what it needs at once. not_supported where that cannot be read.
Result<MachineLoadSource> proc_machine_load();

/// A descriptor of the embedding program's that the event loop watches along with its own.
struct ExtraWatch {
  int fd = -1;  ///< Not owned; must outlive the nameserver.
  /// Called on the event loop's thread whenever it is readable or hung up; must not block. False: watch it no more.
  std::function<bool()> on_readable{};
};

enum class LogLevel : std::uint8_t { debug, info, warning };

/// Durations, counts and bytes: lrpc/shim/no_limit.h. What has no meaning is refused by Nameserver::open().
struct NameserverOptions {
  /// Empty: the first of shim::nameserver_sockets(). The directory is made if it is missing (private, except the
  /// system's); a socket that a dead nameserver left there is replaced.
  std::string socket_path{};
  /// Permissions of the socket. Unset: 0666 for /run/lrpc/lrpcd.sock, else 0600.
  std::optional<mode_t> mode{};
  Backend backend = Backend::automatic;
  /// How long a clerk may think about an import before the client is told timed_out. Over zero, as the next two.
  std::chrono::milliseconds bind_timeout{5000};
  /// Who has not read anything for so long, although there is something to read, is disconnected. kNoLimit: nobody is.
  std::chrono::milliseconds unread_timeout{60'000};
  Limits limits{};
  std::shared_ptr<Policy> policy{};  ///< Null: default_policy(). See also Nameserver::set_policy().
  /// Called on the event loop's thread, with one line. Null: no log. Peers cannot put control characters into it.
  /// What one user brings about is 200 lines of each level at once and 10 a second (of debug: all), what all users bring
  /// about 2000 and 40; what is left out is counted.
  std::function<void(LogLevel, std::string_view)> log{};
  /// The processor allocator: how often it looks at the servers while any of them is active (never else). kNoLimit:
  /// it never looks, and every server polls by its own rule.
  std::chrono::milliseconds allocator_tick{50};
  /// Whether it rules also while there are no more active servers than could poll. Normally each then keeps to its own rule,
  /// which notices within a few calls what the allocator notices after some ticks.
  bool allocator_rules_always = false;
  /// How it learns of the machine's load. Empty: proc_machine_load().
  MachineLoadSource machine_load{};
  /// Whether there is so little memory that nothing new is to be begun: connections are turned away; exports, imports,
  /// lists and descriptions are refused as limit_reached. Asked on the event loop's thread. Null: never. An allocation
  /// that fails all the same ends the connection that it was for; with lrpc::reserve, lrpcd seldom comes to that.
  std::function<bool()> short_of_memory{};
  /// A descriptor that ends run(), and the waiting of open(), when it becomes readable, e.g. a signalfd. Not owned;
  /// must outlive the nameserver.
  int stop_fd = -1;
  std::vector<ExtraWatch> extra_watches{};
};

/// What the processor allocator does (LRPC §3.4: idle processors spin in the most active domains).
struct AllocatorStatistics {
  std::uint32_t pages = 0;    ///< Servers it shares a page with.
  std::uint32_t granted = 0;  ///< Of those, how many may poll now by its ruling.
  std::uint64_t ticks = 0;    ///< Times that it has looked.
  bool asleep = true;         ///< No server is active: no ticks, no rulings.
};

/// A nameserver on one socket. It keeps names, not bindings: once two domains are introduced it holds neither their
/// region's descriptor nor a mapping, and its end harms no binding that exists.
///
/// An import waits for its name in order of arrival. If the server goes away while its clerk is being asked, the import
/// waits on as long as its own timeout allows, else it fails with peer_gone. A name vanishes with the connection that
/// exported it or the process at its other end, whichever goes first. Anything that is not the protocol is answered with
/// bad_message, and that connection is closed; nobody else notices.
class Nameserver {
 public:
  /// Opens one and runs it on a thread of its own, which blocks all signals. Errors: name_taken if a nameserver already
  /// listens there (the text names its process), not_supported if a demanded back end is refused, invalid_argument (an option, by name), system_error.
  static Result<std::unique_ptr<Nameserver>> start(NameserverOptions options);
  /// Opens one that listens; the caller is to run() it. Errors as for start().
  static Result<std::unique_ptr<Nameserver>> open(NameserverOptions options);

  Nameserver(const Nameserver&) = delete;
  Nameserver& operator=(const Nameserver&) = delete;
  /// Stops it, closes every connection and removes the socket, unless somebody has put another one in its place.
  ~Nameserver();

  /// Serves until stop() or the stop descriptor. Only after open(), and once. Blocks; costs nothing while idle.
  Status run();
  /// Makes run() return, and after start() waits for its thread. Any thread but that one; again is harmless.
  void stop() noexcept;
  /// Goes on with another policy. Any thread; also before run(). From the next event on: whoever waits to import a name
  /// that it may not import any more is told so, and names that could not be exported any more are logged. They stay,
  /// and so do bindings. Null: default_policy().
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
