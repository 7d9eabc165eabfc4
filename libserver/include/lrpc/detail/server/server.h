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

/// For the ranges of durations, counts and bytes see lrpc/detail/shim/no_limit.h. export_interface() and serve_over()
/// refuse a negative duration, and a zero where the option does not say what it means, as invalid_argument.
struct ServerOptions {
  /// Nameserver socket; empty: $LRPC_SOCKET, else $XDG_RUNTIME_DIR/lrpc/lrpcd.sock, else /run/lrpc/lrpcd.sock. The
  /// server stays with the first of these at which it has found a nameserver, also while that one is restarted.
  std::string nameserver{};
  /// Bytes of an E-stack and of a poller's stack (rounded up to pages, plus a guard). Memory is used only where a
  /// stack has been used. An export is refused if its entry stubs would leave a procedure less than 64 KiB of it.
  std::size_t estack_size = 1024 * 1024;
  /// Maximum number of E-stacks. When all are associated, the one unused for longest is taken from its A-stack. The
  /// server also serves up to as many sealed clients (trap gate), each by a thread of its own.
  std::size_t max_estacks = 256;
  /// Maximum number of E-stacks that serve one user's calls at a time, and of one user's sealed clients. Unset: seven
  /// eighths of max_estacks, so the calls of other users go on even if no procedure that one user has called returns.
  /// When E-stacks run low, unused ones are first taken from users that have more than their share (docs/POLICY.md).
  /// Callers of other hosts count as one user.
  std::optional<std::size_t> max_estacks_per_user{};
  /// Number of E-stacks that are kept, however long they are unused. The others end after 5 s without an A-stack, or
  /// after estack_idle if that is shorter. Zero: none.
  std::size_t kept_estacks = 0;
  /// How long an E-stack stays associated with an A-stack without calls. The next call on it then costs a wake-up of
  /// the clerk. kNoLimit: as long as the A-stack exists. More than a day is taken as a day.
  std::chrono::milliseconds estack_idle{30'000};
  /// Maximum number of bindings, over all names and private sockets, and of those of one client process; further
  /// imports fail with limit_reached. Each binding takes two file descriptors of the server (five with callbacks; see
  /// RLIMIT_NOFILE) and its region's memory. A binding that has ended counts, but not for its process, until the last
  /// procedure called over it has returned and the stub that called its client back has been freed.
  std::size_t max_bindings = 4096;
  std::size_t max_bindings_per_client_process = 256;
  /// Maximum number of bindings of one user over all its processes, including ended ones that still count (above), and
  /// of bytes of their regions, including those for callbacks even before they are made. Both also apply to the
  /// server's own user. While several users have bindings, each has at most its fair share of max_bindings, of the
  /// descriptors and of the sealed clients, so the next user always finds some (docs/POLICY.md). kNoLimit: no fair
  /// share either. Callers of other hosts, each of which the network domain limits, have at most seven eighths
  /// together.
  std::size_t max_bindings_per_user = 2048;
  std::uint64_t max_region_bytes_per_user = std::uint64_t{256} << 30;
  /// Maximum number of file descriptors of this process that the bindings of one user take: two each, five if the
  /// interface has callbacks, one for each secondary region, two for each sealed client. Unset: half of the process's
  /// soft limit at that time (RLIMIT_NOFILE), so that one user can neither keep others from binding nor the program
  /// from opening files. Beyond it imports fail with limit_reached, and bindings get no secondary regions. The network
  /// domain limits the bindings of callers of other hosts; their secondary regions count as one user's.
  std::optional<std::size_t> max_descriptors_per_user{};
  /// Maximum number of open handles of one user, over all its bindings (of one binding: HandleTable::kMaxHandles). A
  /// grant beyond it throws std::length_error in the procedure. Callers of other hosts count as one user, and each host
  /// has at most its fair share (docs/POLICY.md).
  std::size_t max_handles_per_user = 262'144;
  /// Maximum number of secondary A-stacks (AStackSupply::grow) of one binding and of one user, and of bytes of one
  /// user's secondary regions. A request beyond it gets fewer A-stacks or none, and callers wait. Zero: no growth. Each
  /// region takes one file descriptor, and memory only where A-stacks have been used.
  std::size_t max_grown_astacks_per_binding = 256;
  std::size_t max_grown_astacks_per_user = 1024;
  std::uint64_t max_grown_bytes_per_user = std::uint64_t{256} << 20;
  /// Domain caching: how many threads may poll for calls on otherwise idle processors, at most 8. Zero: none. Another
  /// one begins only if callers queue for those that poll. While busy callers run on all processors that the server may
  /// use, one poller shares these in turn, if that pays. A procedure runs with the affinity of its poller (all
  /// processors without busy callers, or one with a busy caller) or of its E-stack (which may be bound to its caller's
  /// processor). A thread that a procedure starts inherits that affinity; one that outlives the call should set its own
  /// (sched_setaffinity(2)).
  unsigned pollers = 8;
  /// How long a poller polls without a call before it parks. Zero: it parks at once. At most a second, because a longer
  /// one would starve others; kNoLimit is refused.
  std::chrono::microseconds poll_window{200};
};

/// An exception that escaped a procedure. The views are valid while on_exception runs.
struct EscapedException {
  std::string_view interface;
  std::string_view procedure;
  std::string_view what;  ///< what() of a std::exception; of any other exception, a text that says that there is none.
};

/// If one of these functions throws, a line appears on stderr, for the first ten exceptions of the export. None of them
/// may destroy the Server, nor may the destructor of an object behind a handle.
struct ExportOptions {
  /// Decides on an import. An error or an exception refuses it; the client gets the error's text, with the code
  /// limit_reached if that is the error's, else not_permitted. Empty: all imports that the nameserver lets through are
  /// accepted. Runs on the clerk's thread, so it must not block for long. ClientCredentials says which clients' groups
  /// are known; treat a client as no member of a group unless it is known to be one.
  std::function<Status(const ClientCredentials& client)> authorise{};
  /// The same for callers of other hosts, whom this machine's network domain vouches for. Empty: all are accepted if
  /// `authorise` is empty, too; else none, because they have no user or group here.
  std::function<Status(const Principal& principal)> authorise_remote{};
  /// Called after a binding was made, and after it ended (its client left or died, or end_binding()) and its handles
  /// were run down. on_unbound is not called for bindings that end with the Server. Both run on the clerk's thread.
  std::function<void(std::uint64_t binding_id, const Credentials& client)> on_bound{};
  std::function<void(std::uint64_t binding_id)> on_unbound{};
  /// Called for each exception that escapes a procedure, before the caller gets exception_escaped. It runs on the
  /// thread that executed the call, so several may run at once, and in a catch block, so std::current_exception() is
  /// the exception. Empty: a line on stderr for each of the export's first ten.
  std::function<void(const EscapedException& escaped)> on_exception{};
  /// How the threads that serve this interface are scheduled: E-stacks, and the thread of each sealed client. Unset:
  /// like the thread that started them. If it is set, no poller executes calls of the interface, because pollers are
  /// ordinary threads. There is no priority inheritance: the thread has this priority whoever calls. The export fails
  /// if this process may not schedule a thread so.
  std::optional<Scheduling> scheduling{};
  /// Called when the state of an exported name changes: peer_gone when the nameserver has gone; another error when a
  /// nameserver is there again but refuses the name (name_taken: another server has it); ok when the name can be
  /// imported again. The server keeps trying by itself until the name is withdrawn. Runs on the clerk's thread. It may
  /// still run when a withdrawal returns, but not when the Server has been destroyed. It may withdraw the name, but not
  /// export another.
  std::function<void(const Status& registration)> on_registration{};
};

enum class ExportId : std::uint64_t {};

/// Counters of a server; a copy, taken without stopping anything.
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
  std::uint64_t guest_turns = 0;         ///< Times a poller moved to a caller's processor because callers ran on all.
  std::uint32_t polling = 0;             ///< Pollers that poll now.
  std::uint32_t granted_pollers =
      0;                        ///< Pollers that the server may have now, by the allocator's ruling or by its own rule.
  bool allocator_page = false;  ///< A nameserver's processor allocator is attached; it rules under competition.
  std::uint64_t trap_listeners = 0;   ///< Sealed client domains that are served now: a thread each.
  std::uint64_t astacks_grown = 0;    ///< Secondary A-stacks alive now, over all bindings.
  std::uint64_t growths_refused = 0;  ///< Requests for more A-stacks that got none: over a limit, or malformed.
  std::uint64_t traps_refused = 0;    ///< Traps that were no valid call: wrong process, binding, A-stack or procedure.
};

/// A server domain: its clerk, its E-stacks, its pollers. Thread-safe. Threads start when they are first needed. In a
/// fork child every function returns not_supported, the statistics are zero, and no binding is ended.
class Server {
 public:
  explicit Server(ServerOptions options = {});
  Server(Server&&) noexcept;
  Server& operator=(Server&&) = delete;
  /// Withdraws every name, revokes every binding, and waits until running procedures and callbacks have returned and
  /// the threads of procedures have ended, with their thread_local objects. In one of the server's own procedures it
  /// waits for nothing, because it would wait for itself, and its memory is never freed. That case is only for exit(3),
  /// which destroys static objects: other procedures may still be using the implementation.
  ~Server();

  /// Makes `impl` importable under `name`. Generated code calls this through <Interface>::export_to(). `pdl` and
  /// `stubs` must live for ever (generated constants do), `impl` until the Server is destroyed; the stubs get it as
  /// their own type, constant or not. Blocks for the nameserver's answer, at most about 10 s; twice as long if the same
  /// name was just withdrawn and the nameserver has not released it yet. Afterwards, whenever the nameserver was away,
  /// the server exports the name again by itself, under the same id. Errors: no_nameserver, name_taken, not_permitted,
  /// invalid_argument, limit_reached, timed_out, peer_gone.
  Result<ExportId> export_interface(std::string name, const Pdl& pdl, std::span<const EntryStub> stubs,
                                    const void* impl, ExportOptions options = {});
  /// Withdraws the name, even while there is no nameserver. Existing bindings live on. Even if this fails, the server
  /// does not export the name again. Errors: invalid_argument (no such export), timed_out, other errors of the
  /// nameserver.
  Status withdraw(ExportId id);

  /// Serves private bindings to whoever holds the other end of `socket` (see make_socket_pair), without any name. Takes
  /// ownership of the socket and makes it close-on-exec. If this fails, the socket is shut down, so that copies of this
  /// end are of no use either. Returns at once.
  Status serve_over(UniqueFd socket, const Pdl& pdl, std::span<const EntryStub> stubs, const void* impl,
                    ExportOptions options = {});

  /// Ends a binding (CallContext::binding_id()) from the server's side; the client sees the server as gone. When this
  /// returns, the handles have been run down, even if another thread ended the binding. on_unbound is called on the
  /// clerk's thread, maybe later, and not if the Server is destroyed first. Unknown ids are ignored. A procedure must
  /// not end the binding that called it.
  void end_binding(std::uint64_t binding_id);

  [[nodiscard]] ServerStatistics statistics() const;

 private:
  friend struct detail::StubAccess;
  [[nodiscard]] server::Domain& domain() const noexcept { return *domain_; }

  std::unique_ptr<server::Domain> domain_;
};

}  // namespace lrpc
