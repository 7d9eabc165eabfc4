// The server's half of one binding.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lrpc/detail/server/call_context.h"
#include "lrpc/detail/server/callback_port.h"
#include "lrpc/detail/server/handle_table.h"
#include "lrpc/detail/server/server.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/call/linkage.h"
#include "lrpc/detail/shim/call/region.h"
#include "lrpc/detail/shim/escaped.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/handover.h"
#include "lrpc/detail/shim/system/sleeping_word.h"
#include "lrpc/detail/shim/system/watcher.h"
#include "quota/accounts.h"
#include "unmapper.h"

namespace lrpc::server {

class EStack;
class SecondaryRegion;
class ServedBinding;
struct ServedAStack;

/// What the call path needs of a procedure: a row of 16 bytes, so that a call touches one cache line for it.
struct EntryPoint {
  EntryStub stub = nullptr;
  bool may_block = false;
};

/// An exported interface: what the clerk needs to make bindings, and the call path to enter procedures.
struct ServedInterface {
  const Pdl* pdl = nullptr;
  std::span<const EntryStub> stubs;
  void* impl = nullptr;
  ExportOptions options;
  /// One table for each class of A-stacks, with a row for each procedure. If the procedure uses another class, its row
  /// has a stub that refuses the call, so the call path need not check the class.
  std::vector<EntryPoint> entries;
  mutable shim::EscapedExceptions exceptions;  ///< Of its hooks, and of its procedures if there is no on_exception.

  /// Fills `entries`.
  void lay_out_entries();
  [[nodiscard]] const EntryPoint* entries_of(std::uint16_t astack_class) const noexcept {
    return entries.data() + astack_class * stubs.size();
  }
};

/// Prints the exception that is being handled, which this hook has thrown.
[[gnu::cold]] void tell_hook_threw(const ServedInterface& interface, std::string_view hook) noexcept;

/// Calls a function of ExportOptions on a thread of this library. An exception is printed: it must not end the thread.
template <class Callback>
void call_hook(const ServedInterface& interface, std::string_view hook, Callback&& callback) noexcept {
  try {
    callback();
  } catch (...) {
    tell_hook_threw(interface, hook);
  }
}

/// The clerk's decision on an import of `interface` (ExportOptions::authorise). A refusal is not_permitted or
/// limit_reached, with the reason.
[[nodiscard]] Status authorise(const ServedInterface& interface, const shim::ClientCredentials& client);
/// The same for a caller of another host (ExportOptions::authorise_remote).
[[nodiscard]] Status authorise(const ServedInterface& interface, const shim::Principal& principal);
/// Schedules the calling thread as the export asks (ExportOptions::scheduling). True: it asks for that, so the thread
/// must serve no other interface.
bool schedule_as_exported(const ServedInterface& interface) noexcept;

/// A call that waits for an E-stack.
struct WaitingCall {
  Holder holder = {};
  std::shared_ptr<ServedBinding> binding;  ///< Keeps the A-stack mapped: the binding, or its secondary region.
  ServedAStack* astack = nullptr;
  std::uint64_t number = 0;  ///< In the order of arrival, see EStackShares::add().
};

/// The list node of an A-stack's waiting call. It is allocated with the A-stack, so a call can wait without memory.
struct WaitingPlace {
  /// Holds the node, except while the call stands in its user's queue. Under the pool's lock.
  std::list<WaitingCall> here = std::list<WaitingCall>(1);
  const std::list<WaitingCall>::iterator call = here.begin();
};

/// Whether a poller has an A-stack in its hot set. This is the truth; the hint in the region is for the caller.
enum class Polled : std::uint8_t {
  no,
  remembered,  ///< Not now, but its poller may take it back without an offer until the E-stack sets `no`.
  yes,
};

/// The server's private state of one A-stack, with the same index as in the region. What a call reads is in its first
/// cache line.
struct alignas(128) ServedAStack : ArgumentPlace {
  shim::AStackHead* head = nullptr;
  const EntryPoint* entries = nullptr;        ///< Those of the A-stack's class, by procedure identifier.
  void* impl = nullptr;                       ///< The interface's implementation.
  std::atomic<std::uint32_t> entry_count{0};  ///< 0 once the binding is revoked: no procedure can be called any more.
  std::uint16_t astack_class = 0;
  std::atomic<Polled> polled{Polled::no};
  std::atomic<std::uint8_t> poller{0};       ///< The index of the poller that polls it, or did so last.
  ServedBinding* binding = nullptr;          ///< A thread that touches an A-stack holds a shared_ptr to its binding.
  shim::AStackLimit* limit = nullptr;        ///< In the region: the time that a call with a deadline has left.
  std::atomic<std::uint64_t> not_before{0};  ///< ticks() before which it is not to be polled again.
  std::atomic<EStack*> estack{nullptr};      ///< The associated E-stack. Written under the pool's lock.
  const std::unique_ptr<WaitingPlace> waiting = std::make_unique<WaitingPlace>();  ///< Its waiting call's node.
  std::uint64_t last_call = 0;       ///< ticks() of the last call that the E-stack served; only the E-stack uses it.
  std::uint64_t left_to_estack = 0;  ///< Last generation left to the E-stack (may_block); only its poller uses it.
  shim::SleepingWord summons;        ///< Raised after a flag. The E-stack sleeps on it, too: no client moves it off.
  std::uint16_t slow = 0;            ///< Slow calls in a row that a poller executed; only that poller uses it.
  std::atomic<std::uint16_t> caller{0xffff};  ///< The processor of the last call that PollerTeam noted.
};
static_assert(sizeof(ServedAStack) == 128);

/// T18, after the revoked flag has been set.
inline void revoke_word_of(ServedAStack& astack) noexcept {
  const bool served = astack.estack.load(std::memory_order_seq_cst) != nullptr;
  shim::revoke_word(*astack.head, shim::Sleeper::estack, served);
  if (served) astack.summons.raise(1);
}

/// Whether no procedure runs on any of them, or ever will: their entry_count is 0, and no call is claimed. Either this
/// sees a claim, or the claimer sees the 0.
[[nodiscard]] inline bool none_executes(std::span<const ServedAStack> astacks) noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const ServedAStack& astack : astacks) {
    if (astack.entry_count.load(std::memory_order_relaxed) != 0 || astack.linkage.next_generation() == 0) return false;
  }
  return true;
}

/// The process for which a binding counts: its number here, or the negative of the number that lrpcd has told, so that
/// the two are never confused. 0, if there is neither, stands for many processes: private clients of other process
/// namespaces, of whatever user, and callers of other hosts.
[[nodiscard]] constexpr pid_t client_process_of(const shim::Credentials& client, pid_t told) noexcept {
  if (client.pid > 0) return client.pid;
  return told > 0 ? -told : 0;
}

struct ServedParts {
  /// The holder for which its E-stacks and handles count. A host that has shown a key and one known only by its address
  /// are two holders.
  [[nodiscard]] Holder holder() const noexcept {
    if (!principal) return client.uid;
    return {client.uid, std::uint64_t{static_cast<std::uint8_t>(principal->authentication)} << 32 | principal->host};
  }
  /// See client_process_of().
  [[nodiscard]] pid_t process() const noexcept { return client_process_of(client, told); }

  Share share = {};  ///< Given back with the binding, or by settle().
  Unmapper::Place unmapping = {};
  /// Declared before the descriptors, so that it is given back after they are closed. The bell holds it, too.
  std::shared_ptr<const Share> descriptors = {};
  std::shared_ptr<HandleCount> handles = {};  ///< Its holder's.
  std::uint64_t id = 0;
  shim::Nonce nonce{};
  shim::Credentials client;
  pid_t told = 0;                                 ///< The client's number as lrpcd has told it; 0 for a private client.
  std::optional<shim::Principal> principal = {};  ///< Set: the caller is on another host, and `client` is nobody.
  shim::Region region;
  UniqueFd client_pidfd;  ///< Empty for a private client of another process namespace.
  UniqueFd bell;
  shim::Gate gate = shim::Gate::adaptive;
  std::shared_ptr<const ServedInterface> interface;
};

/// Shared by the domain, the E-stacks associated with its A-stacks, and the pollers. The last to release it has the
/// region unmapped.
class ServedBinding : public std::enable_shared_from_this<ServedBinding> {
 public:
  explicit ServedBinding(ServedParts parts);
  /// Runs on the thread that releases it last.
  ~ServedBinding();
  ServedBinding(const ServedBinding&) = delete;
  ServedBinding& operator=(const ServedBinding&) = delete;

  [[nodiscard]] std::uint64_t id() const noexcept { return parts_.id; }
  [[nodiscard]] const shim::Nonce& nonce() const noexcept { return parts_.nonce; }
  [[nodiscard]] const shim::Credentials& client() const noexcept { return parts_.client; }
  /// The user for which the binding counts. All callers of other hosts are one user.
  [[nodiscard]] uid_t user() const noexcept { return parts_.client.uid; }
  [[nodiscard]] const shim::Principal* principal() const noexcept {
    return parts_.principal ? &*parts_.principal : nullptr;
  }
  [[nodiscard]] Holder holder() const noexcept { return parts_.holder(); }
  [[nodiscard]] pid_t process() const noexcept { return parts_.process(); }
  [[nodiscard]] shim::Gate gate() const noexcept { return parts_.gate; }
  [[nodiscard]] HandleTable& handles() noexcept { return handles_; }
  [[nodiscard]] CallbackPort& callback_port() noexcept { return callback_port_; }
  /// Those of the primary region, by number.
  [[nodiscard]] std::span<ServedAStack> astacks() noexcept { return astacks_; }
  [[nodiscard]] const ServedInterface& interface() const noexcept { return *parts_.interface; }
  [[nodiscard]] bool revoked() const noexcept { return revoked_.load(std::memory_order_acquire); }
  [[nodiscard]] const std::atomic<bool>& revoked_flag() const noexcept { return revoked_; }
  /// From now on no call begins; sleeping E-stacks wake and leave; calls back to the client fail. True the first time.
  bool revoke() noexcept;
  /// Call it after the binding has been revoked, is no longer watched and has no callback stub, and its secondary
  /// regions have been settled. If no procedure of it runs, gives back its share and closes its descriptors. So a
  /// thread that only holds it (an E-stack that has not looked yet, a poller in another client's procedure) does not
  /// keep the user from binding anew. False: a procedure may run; try again (Accounts::settle_later()). By one thread
  /// at a time.
  [[nodiscard]] bool settle() noexcept;
  [[nodiscard]] int bell() const noexcept { return bell_.get(); }
  /// The stranger for which descriptors that the client sends count.
  [[nodiscard]] shim::Stranger stranger() const { return {parts_.client.uid, parts_.descriptors}; }
  [[nodiscard]] int client_pidfd() const noexcept { return parts_.client_pidfd.get(); }

  // Secondary A-stacks (LRPC §5.2): everything about them takes a lock or searches a list; code that deals only with
  // primary ones does neither.
  /// False: the binding is revoked, or the place is taken.
  [[nodiscard]] bool add(const std::shared_ptr<SecondaryRegion>& region);
  /// False: it was not there.
  bool take_out(const SecondaryRegion& region);
  [[nodiscard]] std::vector<std::shared_ptr<SecondaryRegion>> take_secondary() {
    const std::lock_guard lock(secondary_mutex_);
    return std::exchange(secondary_, {});
  }
  /// Calls `use` for each region, under a lock, so none is removed meanwhile; `use` must take no lock.
  template <class Use>
  void each_secondary(Use&& use) const {
    const std::lock_guard lock(secondary_mutex_);
    for (const auto& region : secondary_) use(*region);
  }
  /// Copies, because a thread that uses an A-stack must hold its region. Throws std::bad_alloc.
  [[nodiscard]] std::vector<std::shared_ptr<SecondaryRegion>> secondary() const {
    const std::lock_guard lock(secondary_mutex_);
    return secondary_;
  }
  /// Sets the members of an A-stack of this binding.
  void equip(ServedAStack& astack, const shim::AStack& placed) noexcept;
  std::atomic<std::uint64_t> grown_astacks{0};  ///< Those whose region still counts: see SecondaryRegion::settle().

  std::uint64_t bell_watch = 0;   ///< The clerk's.
  std::uint64_t pidfd_watch = 0;  ///< The clerk's.
  std::thread::id ended_by;       ///< The thread that removed it from the bindings. For Bindings.
  shim::Watcher::Task unbound;    ///< Calls on_unbound, if the program has set it.

 private:
  std::atomic<bool> revoked_{false};
  ServedParts parts_;
  shim::PeerSocket bell_;
  std::vector<ServedAStack> astacks_;
  mutable std::mutex secondary_mutex_;
  std::vector<std::shared_ptr<SecondaryRegion>> secondary_;
  HandleTable handles_;
  CallbackPort callback_port_;
};

}  // namespace lrpc::server
