// The ledger: shared memory into which every process of the storm writes which processes run, what each thread waits
// for, which calls were made, how often each was executed and what its caller got. The conductor owns it; it survives
// the death of any process.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace lrpc::storm {

/// Most processes at a time, and most threads of one that wait in a call.
inline constexpr std::size_t kMostProcesses = 96;
inline constexpr std::size_t kMostThreads = 288;
/// Most calls of a storm. Threads take their numbers in blocks. Only the calls of the current round use memory.
inline constexpr std::uint64_t kMostCalls = std::uint64_t{1} << 28;
inline constexpr std::uint64_t kCallsOfBlock = 64;
inline constexpr std::size_t kMostComplaints = 64;

enum class Role : std::uint32_t {
  none,
  client,
  sealed_client,
  server,
  survivor_client,
  survivor_server,
  nameserver,
  network_domain,
  newcomer
};
[[nodiscard]] const char* name_of(Role role) noexcept;

/// How a call ended, as its caller reports it.
enum class Fate : std::uint8_t {
  none,      ///< No such call.
  made,      ///< Not ended, or its caller has died.
  answered,  ///< By its results or a declared error: it was executed, once.
  not_made,  ///< Refused before it was rung: it was not executed.
  told,      ///< Sent one-way, over a binding that lasts, to a server that survives: it was executed, once.
  unknown,   ///< Failed, aborted, abandoned or one-way: it was executed once or never.
};

/// One thread that waits in a call. If `since` is 0, it does not wait.
struct Waiting {
  std::atomic<std::uint64_t> since;  ///< ns, CLOCK_MONOTONIC.
  std::atomic<std::uint64_t> call;
  std::atomic<const char*> what;     ///< A literal: valid in all processes, since they are forks of one.
  std::atomic<const void*> binding;  ///< The Binding Object's address in the process, for whoever examines a hang.
  std::atomic<int> thread;           ///< 0: free.
};

/// A process of the storm.
struct Place {
  std::atomic<pid_t> pid;
  std::atomic<Role> role;
  std::atomic<std::uint32_t> machine;  ///< The process's: 0, or 1 of two.
  std::atomic<std::uint32_t> go;       ///< Futex: the process may begin.
  std::atomic<bool> quiet;             ///< A survivor that now holds only what it always holds.
  std::array<Waiting, kMostThreads> threads;
  // A survivor server's own counts.
  std::atomic<std::uint64_t> bindings, estacks, associated, handles, trap_listeners, astacks_grown, reports;
};

struct Complaint {
  std::atomic<bool> ready;
  char text[512];
};

/// In one MAP_SHARED mapping that is made before the first fork. All zero is a valid initial state.
struct Ledger {
  std::atomic<bool> draining;        ///< The round ends: clients end, survivors release what they hold.
  std::atomic<bool> ending;          ///< The storm ends.
  std::atomic<std::uint32_t> fault;  ///< The Fault, below, that is planted.
  std::atomic<std::uint32_t> round;
  std::atomic<std::uint64_t> next_call;
  std::atomic<std::uint64_t> answered, failed;  ///< Calls, of all rounds.
  std::atomic<std::uint64_t> cancelled;         ///< Of those that failed.
  std::atomic<std::uint64_t> private_bindings;  ///< Private bindings that were made.
  std::atomic<std::uint64_t> polled;            ///< Calls that the surviving server's poller has executed.
  std::atomic<bool> cannot_seal;                ///< seal() has returned not_supported.
  std::atomic<std::uint32_t> machines;          ///< 1, or 2: there is a network.
  /// Addresses of the machines' lrpc-netd. Written before the first fork.
  std::array<std::array<char, 16>, 2> addresses;
  /// Ends of lrpc-netd that the storm has brought about, or is about to; and those of them that are over.
  std::atomic<std::uint64_t> network_ends, network_ends_over;
  std::atomic<std::uint64_t> remote_bindings, remote_answered;  ///< That were made; answered calls over them.
  std::atomic<std::uint32_t> complained;
  std::array<Complaint, kMostComplaints> complaints;
  std::array<Place, kMostProcesses> places;
  std::array<std::atomic<pid_t>, kMostCalls / kCallsOfBlock> callers;  ///< The process that has taken the block.
  std::array<std::atomic<Fate>, kMostCalls> fates;
  std::array<std::atomic<std::uint8_t>, kMostCalls> executed;
};

/// A fault that is planted, to show that the storm finds it.
enum class Fault : std::uint32_t {
  none,
  wrong_answer,
  executed_twice,
  kept_binding,
  hang,
  kept_descriptor,
  lrpcd_kept_descriptor,
  leaked_account,
  shut_out,
  lost_astack,
  kept_growth,
  lost_tell,
  step_not_hit,
  kept_path,
  netd_hang,
  netd_lost_calls,
  netd_lost_name,
};

/// The ledger of this storm. Call make_ledger() before the first fork; it ends the process if there is no memory.
void make_ledger();
[[nodiscard]] Ledger& ledger() noexcept;
/// Whether this storm has the fault planted.
[[nodiscard]] inline bool fault_is(Fault fault) noexcept {
  return ledger().fault.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(fault);
}

/// This process's own place; set in each process after fork.
void take_place(std::size_t number) noexcept;
[[nodiscard]] Place& place() noexcept;

[[nodiscard]] std::uint64_t monotonic_ns() noexcept;
constexpr std::uint64_t kMillisecond = 1'000'000;  ///< In ns.
/// Something is wrong: the storm fails. Never blocks. At most kMostComplaints are kept.
[[gnu::format(printf, 1, 2)]] void complain(const char* format, ...) noexcept;

/// A number for the next call of this thread; kMostCalls when all are used up.
[[nodiscard]] std::uint64_t new_call() noexcept;
/// For the server's procedure: call `call` is executed. Complains if it was executed before, or was never made.
void execute(std::uint64_t call) noexcept;

/// Put around one call: the thread waits in it. `what` is a literal.
class InCall {
 public:
  InCall(const char* what, std::uint64_t call, const void* binding) noexcept;
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
  ~InCall();

 private:
  Waiting* waiting_;
  std::uint64_t outer_since_ = 0;  ///< The wait of an outer InCall of the same thread.
};

}  // namespace lrpc::storm
