// Exporting: how a server offers interfaces and serves their calls (LRPC §3.1, §3.2, §3.4).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lrpc/detail/server/call_context.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/stub_access.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/thread.h"

namespace lrpc {

namespace server {
class Domain;
}

/// Durations, counts and bytes: lrpc/detail/shim/no_limit.h. What has no meaning is refused by export_interface() and
/// serve_over() as invalid_argument: a negative duration, and zero but where it is said what zero does.
struct ServerOptions {
  /// Nameserver socket; empty: $LRPC_SOCKET, else $XDG_RUNTIME_DIR/lrpc/lrpcd.sock, else /run/lrpc/lrpcd.sock.
  std::string nameserver{};
  /// Bytes of an E-stack and of a poller's stack (rounded up to pages, plus a guard). Memory is used only where a
  /// stack has been used. An export is refused if its entry stubs would leave a procedure less than 64 KiB of it.
  std::size_t estack_size = 1024 * 1024;
  /// Most E-stacks of this server. When they run out, the one unused for longest is taken from its A-stack.
  /// As many sealed clients (trap gate) may be served beside, each by a thread of its own.
  std::size_t max_estacks = 256;
  /// Of those, most that the calls of one user have at a time, and most sealed clients of one user. Unset: all but an
  /// eighth, so that procedures that do not return for one user's calls do not stop everybody else's. When
  /// E-stacks run low, whoever has more than its share gives way (docs/POLICY.md). Callers of other hosts are one user.
  std::optional<std::size_t> max_estacks_per_user{};
  /// E-stacks that stay, however long nobody uses them. The others end after 5 s without an A-stack, or after
  /// estack_idle if that is shorter. Zero: none.
  std::size_t kept_estacks = 0;
  /// How long an E-stack stays associated with an A-stack without calls. The next call on it then costs a wake-up of
  /// the clerk. kNoLimit: as long as the A-stack. More than a day is taken as a day.
  std::chrono::milliseconds estack_idle{30'000};
  /// Most bindings alive, over all names and private sockets, and most of one client process; further imports fail with
  /// limit_reached. Each binding takes two file descriptors of the server (see RLIMIT_NOFILE) and its region's memory.
  /// A binding that has ended counts, but not for its process, until the last procedure that it called is over.
  std::size_t max_bindings = 4096;
  std::size_t max_bindings_per_client_process = 256;
  /// Most bindings alive, or ended and not over as above, of one user over all its processes, and most bytes of their
  /// regions, those for callbacks included, whether or not they have been made. The server's own user is no exception.
  /// While several users have bindings, a user gets no more than its fair share of max_bindings, and so of descriptors
  /// and sealed clients: the next user always finds some (docs/POLICY.md). kNoLimit: no share of this either.
  /// Callers of other hosts, whom the network domain limits, together have all but an eighth.
  std::size_t max_bindings_per_user = 2048;
  std::uint64_t max_region_bytes_per_user = std::uint64_t{256} << 30;
  /// Most file descriptors of this process that the bindings of one user hold: two each, five if the interface has
  /// callbacks, and one for each secondary region, two for each sealed client. Unset: half of the process's soft limit
  /// (RLIMIT_NOFILE) as it then is, so that one user can neither keep everybody else from binding nor the program from
  /// opening anything. What goes over is limit_reached, or no growth. Bindings of callers of other hosts
  /// are limited by the network domain; their secondary regions are counted as one user's.
  std::optional<std::size_t> max_descriptors_per_user{};
  /// Most handles open of one user, over all its bindings (of one binding: HandleTable::kMaxHandles); a grant beyond it
  /// throws std::length_error in the procedure. Callers of other hosts are one user.
  std::size_t max_handles_per_user = 262'144;
  /// Most secondary A-stacks alive (AStackSupply::grow), of one binding and of one user, and the most bytes that the
  /// regions of one user's take; further requests get fewer or none, and their callers wait. Zero: no growth. Each
  /// region takes one file descriptor, and memory only where A-stacks have been used.
  std::size_t max_grown_astacks_per_binding = 256;
  std::size_t max_grown_astacks_per_user = 1024;
  std::uint64_t max_grown_bytes_per_user = std::uint64_t{256} << 20;
  /// Domain caching: how many threads may poll for calls on otherwise idle processors, at most 8. Zero: none. Further
  /// ones begin only where callers queue for those that poll. While busy callers sit on all processors that the server
  /// may use, one polls on these in turn, if that pays. Procedures that a poller executes run with its affinity, which
  /// leaves busy callers' processors out or is one of them, and E-stacks may be bound to their callers' processors: a
  /// thread that a procedure starts inherits that, as threads do, and sets its own (sched_setaffinity(2)) if it is to
  /// live on.
  unsigned pollers = 8;
  /// How long a poller polls without a call before it parks. Zero: at once. At most a second: more would starve others,
  /// and so kNoLimit is refused.
  std::chrono::microseconds poll_window{200};
};

/// An exception that escaped a procedure. The views are valid while on_exception runs.
struct EscapedException {
  std::string_view interface;
  std::string_view procedure;
  std::string_view what;  ///< what() of a std::exception; others have none, and it says so.
};

/// An exception that one of these functions throws ends there: it is a line on stderr, one of the export's first ten.
struct ExportOptions {
  /// The clerk's decision on an import: return a Status; an error refuses, and so does an exception. The client gets
  /// its text, with the code limit_reached or not_permitted. Empty: everybody that the nameserver lets through. Runs on
  /// the clerk's thread: must not block for long. ClientCredentials says which clients' groups are known; who is not
  /// known to be in a group has to be refused what only its members may.
  std::function<Status(const ClientCredentials& client)> authorise{};
  /// The same for callers of other hosts, whom this machine's network domain brings and vouches for. Empty: everybody,
  /// if `authorise` is empty, too; else nobody, for they have no user or group here.
  std::function<Status(const Principal& principal)> authorise_remote{};
  /// Told after a binding came into being / after it ended (its client went, or end_binding()) and its handles were run
  /// down; bindings that end with the Server are not told. Same thread.
  std::function<void(std::uint64_t binding_id, const Credentials& client)> on_bound{};
  std::function<void(std::uint64_t binding_id)> on_unbound{};
  /// Told of each exception that escapes a procedure, before the caller gets its exception_escaped. In a catch block,
  /// so std::current_exception() is the exception. On the thread that executed the call, from several at once; what it
  /// throws ends there. Empty: a line on stderr for each of the export's first ten.
  std::function<void(const EscapedException& escaped)> on_exception{};
  /// How the E-stacks that serve this interface are scheduled; unset: as the thread that started them. Calls of such an
  /// interface are never executed by a poller, which is an ordinary thread. There is no priority inheritance: the
  /// E-stack has this priority whoever calls. Refused at export if this process may not schedule a thread so.
  std::optional<Scheduling> scheduling{};
  /// Told what becomes of the name after it was exported, each time that changes: peer_gone when the nameserver went
  /// away, another error when one is there again but does not give the name (name_taken: somebody else has it), ok when
  /// the name can be imported again. The server keeps trying by itself until the name is withdrawn. Same thread; may
  /// still be running when a withdrawal returns, not when the Server is destroyed. It may withdraw the name, but not
  /// export another.
  std::function<void(const Status& registration)> on_registration{};
};

enum class ExportId : std::uint64_t {};

/// What a server counts; a copy, taken without stopping anything.
struct ServerStatistics {
  std::uint64_t bindings = 0;            ///< Alive now.
  std::uint64_t estacks = 0;             ///< Threads alive now.
  std::uint64_t estacks_associated = 0;  ///< Of those, associated with an A-stack.
  std::uint64_t estacks_reclaimed = 0;   ///< Times an E-stack was taken from an idle A-stack because supply ran low.
  std::uint64_t estacks_released = 0;    ///< Times an E-stack left an A-stack because no call came (estack_idle).
  std::uint64_t estack_moves = 0;        ///< Times an E-stack followed its caller to another processor.
  std::uint64_t poller_hits = 0;         ///< Calls picked up by a poller (domain caching).
  std::uint64_t poller_misses = 0;       ///< Calls on a polled A-stack that its poller did not get.
  std::uint64_t poller_evictions = 0;    ///< Times a poller saw that it had been switched out and backed off.
  std::uint64_t guest_turns = 0;         ///< Times a poller has sat down where callers sit, for they sat everywhere.
  std::uint32_t polling = 0;             ///< Pollers that poll now.
  std::uint32_t granted_pollers =
      0;                        ///< Pollers that the server may have now, by the allocator's ruling or by its own rule.
  bool allocator_page = false;  ///< A nameserver's allocator is there. It rules under competition.
  std::uint64_t trap_listeners = 0;   ///< Sealed client domains that are served now: a thread each.
  std::uint64_t astacks_grown = 0;    ///< Secondary A-stacks alive now, over all bindings.
  std::uint64_t growths_refused = 0;  ///< Requests for more A-stacks that brought none: over a limit, or nonsense.
  std::uint64_t traps_refused = 0;    ///< Traps that were no call: a wrong process, binding or A-stack.
};

/// A server domain: its clerk, its E-stacks, its poller. Thread-safe. Threads start when they are first needed. A fork
/// child does not have its parent's: there all is not_supported, nothing is counted, and no binding ends.
class Server {
 public:
  explicit Server(ServerOptions options = {});
  Server(Server&&) noexcept;
  Server& operator=(Server&&) = delete;
  /// Withdraws every name, revokes every binding and waits until running procedures and callbacks have returned and
  /// the threads of procedures have ended, with what is thread_local there. In a procedure of its own it cannot: there
  /// it waits for nobody, and its memory stays. That is for exit(3), which destroys what is static, and for nothing
  /// else: other procedures may still be using the implementation.
  ~Server();

  /// Makes `impl` importable under `name`. Generated code calls this through <Interface>::export_to(). `pdl` and
  /// `stubs` must live for ever (generated constants do), `impl` until the Server is destroyed; the stubs get it as
  /// theirs, constant or not. Blocks for the nameserver's answer, at most about 10 s; before that for as long again if
  /// the same name was withdrawn just now and the nameserver has not let go of it. From then on the name comes back by
  /// itself whenever the nameserver was away; its id stays the same. Errors: no_nameserver, name_taken, not_permitted,
  /// invalid_argument, limit_reached, timed_out, peer_gone.
  Result<ExportId> export_interface(std::string name, const Pdl& pdl, std::span<const EntryStub> stubs,
                                    const void* impl, ExportOptions options = {});
  /// Takes the name back, also while there is no nameserver. Bindings that exist live on. The name does not come back,
  /// whatever is returned. Errors: invalid_argument (no such export), timed_out, and what else the nameserver says.
  Status withdraw(ExportId id);

  /// Serves private bindings to whoever holds the other end of `socket` (see make_socket_pair), without any name.
  /// Takes the socket, makes it close-on-exec, and hangs up if it fails: then no copy of this end can be used any more.
  /// Returns at once.
  Status serve_over(UniqueFd socket, const Pdl& pdl, std::span<const EntryStub> stubs, const void* impl,
                    ExportOptions options = {});

  /// Ends a binding (CallContext::binding_id()) from this side: as if its client had gone, but that this one sees a
  /// server that is gone. When it returns the handles have been run down, whoever has ended it; on_unbound is told on
  /// its own thread, maybe later, and not at all if the Server is destroyed first. Unknown ones are none. Not in a
  /// procedure of the binding's.
  void end_binding(std::uint64_t binding_id);

  [[nodiscard]] ServerStatistics statistics() const;

 private:
  friend struct detail::StubAccess;
  [[nodiscard]] server::Domain& domain() const noexcept { return *domain_; }

  std::unique_ptr<server::Domain> domain_;
};

}  // namespace lrpc
