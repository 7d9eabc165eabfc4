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

namespace lrpc::server {

class EStack;
class SecondaryRegion;
class ServedBinding;
struct ServedAStack;

/// What the call path needs of a procedure: one row of 16 bytes, so that a call touches one line for its procedure.
struct EntryPoint {
  EntryStub stub = nullptr;
  bool may_block = false;
};

/// An exported interface: what the clerk needs to bind and the call path to enter.
struct ServedInterface {
  const Pdl* pdl = nullptr;
  std::span<const EntryStub> stubs;
  void* impl = nullptr;
  ExportOptions options;
  /// A table for each class of A-stacks, with a row for each procedure: a call on an A-stack of the wrong class is
  /// refused by the stub that stands there, so that the call path need not ask for the class.
  std::vector<EntryPoint> entries;
  mutable shim::EscapedExceptions exceptions;  ///< Of its hooks, and of its procedures without on_exception.

  /// Makes the tables.
  void lay_out_entries();
  [[nodiscard]] const EntryPoint* entries_of(std::uint16_t astack_class) const noexcept {
    return entries.data() + astack_class * stubs.size();
  }
};

/// Prints what the hook of this name has thrown: the exception that is being handled.
[[gnu::cold]] void tell_hook_threw(const ServedInterface& interface, std::string_view hook) noexcept;

/// Calls a function of ExportOptions on a thread of this library, which an exception must not end: it is printed.
template <class Callback>
void call_hook(const ServedInterface& interface, std::string_view hook, Callback&& callback) noexcept {
  try {
    callback();
  } catch (...) {
    tell_hook_threw(interface, hook);
  }
}

/// The clerk's decision on an import of `interface` (ExportOptions::authorise). not_permitted, and why, if it refuses.
[[nodiscard]] Status authorise(const ServedInterface& interface, const shim::ClientCredentials& client);
/// The same for a caller of another host (ExportOptions::authorise_remote).
[[nodiscard]] Status authorise(const ServedInterface& interface, const shim::Principal& principal);

/// An A-stack with a call and no E-stack to be had.
struct WaitingCall {
  Holder holder = {};
  std::shared_ptr<ServedBinding> binding;  ///< Or its secondary region: holds the A-stack.
  ServedAStack* astack = nullptr;
  std::uint64_t number = 0;  ///< When it came, see EStackShares::add().
};

/// Where an A-stack's call waits: with the A-stack, so that a call can wait where there is no memory.
struct WaitingPlace {
  /// `here` is empty while the call stands in its user's queue; under the pool's lock.
  std::list<WaitingCall> here = std::list<WaitingCall>(1);
  const std::list<WaitingCall>::iterator call = here.begin();
};

/// Whether a poller has an A-stack in its hot set: the truth behind the hint in the region.
enum class Polled : std::uint8_t {
  no,
  remembered,  ///< Not now, but it may be taken back without being offered, until the E-stack says no.
  yes,
};

/// One A-stack as the server knows it; the private half of everything. Same index as in the region.
/// What a call reads fills its first line.
struct alignas(128) ServedAStack : ArgumentPlace {
  shim::AStackHead* head = nullptr;
  const EntryPoint* entries = nullptr;        ///< Those of the A-stack's class, by procedure identifier.
  void* impl = nullptr;                       ///< The binding's.
  std::atomic<std::uint32_t> entry_count{0};  ///< 0 once the binding is revoked: no procedure can be called any more.
  std::uint16_t astack_class = 0;
  std::atomic<Polled> polled{Polled::no};
  std::atomic<std::uint8_t> poller{0};       ///< The index of the one that it is or was polled by.
  ServedBinding* binding = nullptr;          ///< A thread that touches an A-stack holds a shared_ptr to its binding.
  shim::AStackLimit* limit = nullptr;        ///< What a call that carries a deadline has left of it.
  std::atomic<std::uint64_t> not_before{0};  ///< ticks() before which it is not to be polled again.
  std::atomic<EStack*> estack{nullptr};      ///< Associated E-stack. Written under the pool's lock.
  const std::unique_ptr<WaitingPlace> waiting = std::make_unique<WaitingPlace>();  ///< For an E-stack.
  std::uint64_t last_call = 0;       ///< ticks() of the last call an E-stack served; the E-stack's own.
  std::uint64_t left_to_estack = 0;  ///< Last generation a poller left to the E-stack (may_block); its poller's own.
  shim::SleepingWord summons;        ///< Raised behind a flag. Its E-stack sleeps on it, too: no client moves it there.
  std::uint16_t slow = 0;            ///< Long calls in a row that a poller executed; its poller's own.
  std::atomic<std::uint16_t> caller{0xffff};  ///< The processor that it was last called from, as far as was looked.
};
static_assert(sizeof(ServedAStack) == 128);

/// T18, when the flag is set.
inline void revoke_word_of(ServedAStack& astack) noexcept {
  const bool served = astack.estack.load(std::memory_order_seq_cst) != nullptr;
  shim::revoke_word(*astack.head, shim::Sleeper::estack, served);
  if (served) astack.summons.raise(1);
}

/// No procedure is executed on any of them, nor will be: their entry_count is 0, and no call is claimed. Either we see
/// a claim, or its claimer sees our 0.
[[nodiscard]] inline bool none_executes(std::span<const ServedAStack> astacks) noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const ServedAStack& astack : astacks) {
    if (astack.entry_count.load(std::memory_order_relaxed) != 0 || astack.linkage.next_generation() == 0) return false;
  }
  return true;
}

struct ServedParts {
  /// For whom its E-stacks and handles count. A host that has shown a key and one that is known by its address only are
  /// two.
  [[nodiscard]] Holder holder() const noexcept {
    if (!principal) return client.uid;
    return {client.uid, std::uint64_t{static_cast<std::uint8_t>(principal->authentication)} << 32 | principal->host};
  }

  Share share = {};  ///< Goes when the region is unmapped, or see settle().
  /// Next, so that it goes last: when they are closed. The bell keeps it, too.
  std::shared_ptr<const Share> descriptors = {};
  std::shared_ptr<HandleCount> handles = {};  ///< Its holder's.
  std::uint64_t id = 0;
  shim::Nonce nonce{};
  shim::Credentials client;
  std::optional<shim::Principal> principal = {};  ///< Set: a caller of another host, and `client` is nobody.
  shim::Region region;
  UniqueFd client_pidfd;  ///< None of a private client of another process namespace.
  UniqueFd bell;
  shim::Gate gate = shim::Gate::adaptive;
  std::shared_ptr<const ServedInterface> interface;
};

/// Shared by the domain, the E-stacks associated with its A-stacks, and the pollers; unmapped when the last lets go.
class ServedBinding : public std::enable_shared_from_this<ServedBinding> {
 public:
  explicit ServedBinding(ServedParts parts);
  /// On whichever thread lets go of it last.
  ~ServedBinding() { shim::take_over(shim::handover_place(id(), nullptr)); }
  ServedBinding(const ServedBinding&) = delete;
  ServedBinding& operator=(const ServedBinding&) = delete;

  [[nodiscard]] std::uint64_t id() const noexcept { return parts_.id; }
  [[nodiscard]] const shim::Nonce& nonce() const noexcept { return parts_.nonce; }
  [[nodiscard]] const shim::Credentials& client() const noexcept { return parts_.client; }
  /// Whose bindings are counted together. All callers of other hosts are one.
  [[nodiscard]] uid_t user() const noexcept { return parts_.client.uid; }
  [[nodiscard]] const shim::Principal* principal() const noexcept {
    return parts_.principal ? &*parts_.principal : nullptr;
  }
  [[nodiscard]] Holder holder() const noexcept { return parts_.holder(); }
  [[nodiscard]] shim::Gate gate() const noexcept { return parts_.gate; }
  [[nodiscard]] HandleTable& handles() noexcept { return handles_; }
  [[nodiscard]] CallbackPort& callback_port() noexcept { return callback_port_; }
  /// Those of the primary region, by number.
  [[nodiscard]] std::span<ServedAStack> astacks() noexcept { return astacks_; }
  [[nodiscard]] const ServedInterface& interface() const noexcept { return *parts_.interface; }
  [[nodiscard]] bool revoked() const noexcept { return revoked_.load(std::memory_order_acquire); }
  [[nodiscard]] const std::atomic<bool>& revoked_flag() const noexcept { return revoked_; }
  /// No call is claimed any more; sleeping E-stacks wake and leave; calls back fail. True the first time.
  bool revoke() noexcept;
  /// Once it has been revoked, is watched no more, its secondary regions have been settled, and its port has no stub:
  /// if no procedure of it runs, it counts for its user no longer, and has no descriptors. A mere holder (an E-stack
  /// that has not looked yet, the poller while it is in another client's procedure) is not to keep the user from
  /// binding anew. False: a procedure may run; to be tried again (Accounts::settle_later()). By one thread at a time.
  [[nodiscard]] bool settle() noexcept;
  [[nodiscard]] int bell() const noexcept { return bell_.get(); }
  /// What the client has sent is its user's to wait for.
  [[nodiscard]] shim::Stranger stranger() const { return {parts_.client.uid, parts_.descriptors}; }
  [[nodiscard]] int client_pidfd() const noexcept { return parts_.client_pidfd.get(); }

  // Secondary A-stacks (LRPC §5.2): everything about them takes a lock or looks into a table, and nothing that only
  // knows primary ones pays for that.
  /// False: the binding is revoked, or the place is taken.
  [[nodiscard]] bool add(const std::shared_ptr<SecondaryRegion>& region);
  /// False: it was not there.
  bool take_out(const SecondaryRegion& region);
  [[nodiscard]] std::vector<std::shared_ptr<SecondaryRegion>> take_secondary();
  /// Calls `use` with each of them, which stay meanwhile; it takes no lock.
  template <class Use>
  void each_secondary(Use&& use) const {
    const std::lock_guard lock(secondary_mutex_);
    for (const auto& region : secondary_) use(*region);
  }
  /// Copies: a thread that touches an A-stack holds its region. Throws std::bad_alloc.
  [[nodiscard]] std::vector<std::shared_ptr<SecondaryRegion>> secondary() const;
  /// Fills in what an A-stack of this binding's has to know.
  void equip(ServedAStack& astack, const shim::AStack& placed) noexcept;
  std::atomic<std::uint64_t> grown_astacks{0};  ///< That count: SecondaryRegion::settle() has not been, or not yet.

  std::uint64_t bell_watch = 0;   ///< The clerk's.
  std::uint64_t pidfd_watch = 0;  ///< The clerk's.
  std::thread::id ended_by;       ///< The clerk's. The thread that took it out of the bindings.
  shim::Watcher::Task unbound;    ///< Tells the server of its end, if it wants to know.

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
