// The Binding Object: the client's half of one binding.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "lrpc/detail/client/binding/astack_list.h"
#include "lrpc/detail/client/binding/remote_path.h"
#include "lrpc/detail/client/binding/revocation.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/call/linkage.h"
#include "lrpc/detail/shim/call/region.h"
#include "lrpc/detail/shim/call/step.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/fork.h"
#include "lrpc/detail/shim/system/watcher.h"

namespace lrpc {

/// What a call does when all A-stacks of its class are in use (LRPC §5.2).
enum class AStackSupply : std::uint8_t {
  wait,  ///< Wait until an earlier call finishes.
  /// Return Errc::no_astack, without waiting for a call to finish. May wait for the moment in which another thread
  /// handles idle A-stacks, but not longer than the call may take.
  fail,
  /// Ask the server for more: secondary A-stacks, in further regions, which are returned when they have been unused for
  /// a while (ImportOptions::grown_idle). Wait while the server gives none: it has limits (ServerOptions). Not with
  /// Gate::trap.
  grow,
};

}  // namespace lrpc

namespace lrpc::client {

/// Runs the server's half of a call in the caller's thread, in place of a transfer: for a binding with Gate::none
/// (tests/support/inline_server.h).
struct InlineServer {
  void (*serve)(void* server, std::uint32_t astack) = nullptr;
  void* server = nullptr;
};

class SecondaryAStacks;
class Waiting;

/// The parts of a Binding Object. `server_pidfd` may be empty; `bell` is the client's end of the bell.
struct BindingParts {
  std::uint64_t id = 0;
  shim::Nonce nonce{};
  shim::Credentials server;
  shim::Region region;
  UniqueFd server_pidfd;
  shim::PeerSocket bell = {};
  shim::Gate gate = shim::Gate::adaptive;
  AStackSupply supply = AStackSupply::wait;
  std::chrono::milliseconds grown_idle{1'000};  ///< For AStackSupply::grow; above zero, or kNoLimit.
  /// Set for a server on another host: then the region is private to this domain, there is no pidfd, and the code that
  /// learns of the path's end hangs up the bell's other end.
  std::unique_ptr<RemotePath> remote;
  std::chrono::milliseconds call_timeout = kNoLimit;
  bool watched = true;
  std::function<void()> on_revoked;
};

/// Owns the mapping, the linkage records, the A-stack lists and the bell. Never moves. Thread-safe.
class BindingObject {
 public:
  /// Starts watching the server. Fails with system_error.
  static Result<std::unique_ptr<BindingObject>> create(BindingParts parts);
  BindingObject(const BindingObject&) = delete;
  BindingObject& operator=(const BindingObject&) = delete;
  /// Not while there are started calls, or functions are told of the revocation: an owner calls let_go() instead.
  ~BindingObject();
  /// The owner calls this instead of deleting the object. The server sees the end at once. Calls that were started and
  /// not finished end as call_failed, unless they have returned already. The object is deleted when the last of them
  /// has ended and the functions that are told of the server's end have returned. Not while other threads are in a call
  /// of the binding, or in a member of one of its started calls.
  void let_go() noexcept;
  /// Revokes the binding as if its server had ended; the server sees the end, too. Does not call the functions of
  /// when_revoked(). Does nothing in a forked child, whose watches are not this binding's.
  void end() noexcept {
    if (owner_ != shim::this_process()) return;
    end_watching();
    revoke();
  }
  /// True after let_go(), while some started calls are left.
  [[nodiscard]] bool has_been_let_go() const noexcept { return let_go_.load(std::memory_order_acquire); }

  /// The remote bit: if set, calls go over the network path (LRPC §5.1).
  [[nodiscard]] bool remote() const noexcept {
    LRPC_STEP("client 1");
    return local_ != kLocal;
  }
  /// Null unless remote().
  [[nodiscard]] RemotePath* remote_path() const noexcept { return parts_.remote.get(); }
  [[nodiscard]] bool revoked() const noexcept { return revoked_.load(std::memory_order_acquire); }
  [[nodiscard]] const std::atomic<bool>& revoked_flag() const noexcept { return revoked_; }
  [[nodiscard]] const shim::Credentials& server() const noexcept { return parts_.server; }
  [[nodiscard]] const shim::Nonce& nonce() const noexcept { return parts_.nonce; }
  [[nodiscard]] std::uint64_t id() const noexcept { return parts_.id; }
  [[nodiscard]] int bell() const noexcept { return parts_.bell.get(); }
  [[nodiscard]] shim::Gate gate() const noexcept { return parts_.gate; }
  [[nodiscard]] std::chrono::milliseconds call_timeout() const noexcept { return parts_.call_timeout; }
  /// Whether the binding itself limits the time of its calls.
  [[nodiscard]] bool times_calls() const noexcept { return !(parts_.call_timeout == kNoLimit); }
  /// For calls from now on. Not while other threads use the binding.
  void set_call_timeout(std::chrono::milliseconds timeout) noexcept;
  [[nodiscard]] AStackList& astacks(std::uint16_t astack_class) noexcept { return lists_[astack_class]; }
  /// How long a caller polls before it gives up an exchange.
  [[nodiscard]] const shim::PollPace::Limits& poll_limits() const noexcept { return poll_limits_; }

  /// `record` or, if that is null, `why_not`: binding_revoked, no_astack (the supply rule forbids to wait),
  /// call_aborted or call_cancelled (the call has waited for call_timeout, or for as long as its scopes allow).
  struct Taken {
    shim::LinkageRecord* record = nullptr;
    Errc why_not = Errc::ok;
  };
  /// Step 2 when no A-stack is leased to the thread: takes any other; if there is none, follows the supply rule.
  [[nodiscard]] Taken take_slow(AStackList& list) noexcept;
  /// Keeps the record of an abandoned or one-way call aside until its RETURNED(generation) is seen.
  void quarantine(shim::LinkageRecord& record) noexcept;
  /// How many A-stacks in quarantine the server has not returned yet.
  [[nodiscard]] std::size_t in_quarantine() noexcept;
  /// Sends the clerk one byte: there is a call on an A-stack that has no E-stack. Never blocks.
  void ring_bell() const noexcept;
  /// After a bounded sleep on a call that has not returned: wakes its E-stack and tells the clerk, whatever the hints
  /// in the region say. A call must not hang because its peer has forged a hint.
  void overrule_hints(shim::AStackHead& head) const noexcept;
  /// Revokes the binding if the server is gone. For callers whose bounded sleep has ended.
  void check_server() noexcept;
  /// Revokes the binding: no more calls; outstanding ones return call_failed. Idempotent.
  void revoke() noexcept;
  /// See Binding::revocation_fd() and Binding::when_revoked().
  [[nodiscard]] Result<int> revocation_fd();
  Status when_revoked(std::function<void()> told);
  /// Tells the watcher that tails were used, so that it returns their pages to the system once they are idle.
  void note_tail_use() noexcept {
    if (!tails_used_.load(std::memory_order_relaxed)) [[unlikely]]
      schedule_trim(kTrimDelayMs);
  }

  /// Raised when the watcher takes idle A-stacks (to trim tails or return regions) and when it has put them back: odd
  /// in between.
  [[nodiscard]] std::uint32_t trim_phase() const noexcept { return trim_phase_.load(std::memory_order_acquire); }

  /// For Gate::trap: whether this process runs under the seccomp filter whose listener the server holds. Until then no
  /// call is made.
  [[nodiscard]] bool sealed() const noexcept { return sealed_.load(std::memory_order_acquire); }
  void set_sealed() noexcept { sealed_.store(true, std::memory_order_release); }

  /// In a forked child: the region is not mapped, so every call must fail before it touches the region.
  void forget_after_fork() noexcept;
  /// True in a forked child: not even the call words can be read.
  [[nodiscard]] bool forgotten() const noexcept { return forgotten_; }

  [[nodiscard]] const InlineServer& inline_server() const noexcept { return inline_server_; }
  /// For Gate::none only.
  void set_inline_server(InlineServer server) noexcept { inline_server_ = server; }

 private:
  friend class SecondaryAStacks;
  explicit BindingObject(BindingParts parts);
  Status watch();
  void end_watching() noexcept;
  [[nodiscard]] std::size_t count_started(std::size_t quarantined) const noexcept;
  void let_go_after_fork() noexcept;
  void release() noexcept;
  void watcher_saw_end(std::uint64_t watch) noexcept;
  /// revoke() without the hang-up, of which a server that has gone need not hear. True: no other thread was first.
  [[nodiscard]] bool end_calls() noexcept;
  [[nodiscard]] Status watched() const;
  [[nodiscard]] bool release_quarantined(AStackList& list) noexcept;
  void wait_for_quarantined(AStackList& list, std::uint32_t seen, const Waiting& waiting,
                            std::chrono::nanoseconds limit) noexcept;
  static constexpr std::uint32_t kTrimDelayMs = 1000;
  void schedule_trim(std::uint32_t delay_ms) noexcept;
  /// On the watcher: runs a task of the binding with this number, under the library's lock. By then the binding may be
  /// gone, and another one may be at its address.
  static void run(BindingObject* binding, std::uint64_t number, void (BindingObject::*task)());
  void trim();
  void return_unused();
  [[nodiscard]] std::chrono::nanoseconds wait_for_growth(AStackList& list, std::chrono::nanoseconds limit) noexcept;
  [[nodiscard]] bool anybody_reads_quarantine() noexcept;
  /// Allocates room for every record up to the last one of a secondary region's place.
  void make_room_in_quarantine(std::uint32_t first_secondary, std::uint32_t place);
  void schedule_return() noexcept;

  // Read by every call; written at most once.
  /// local_ of a local binding; a remote one has 0. The comparison with a number that is used nowhere else is one
  /// instruction: to compare with 0, the compiler would load the word first, and it would keep a 1 in a register for
  /// other uses.
  static constexpr std::uint32_t kLocal = 0x10ca1;
  const std::uint32_t local_;
  std::atomic<bool> revoked_{false};
  shim::PollPace::Limits poll_limits_;
  InlineServer inline_server_;
  std::unique_ptr<AStackList[]> lists_;

  bool forgotten_ = false;  ///< Written only in a forked child.
  const shim::ProcessNumber owner_;
  const std::uint64_t number_ = ++numbers_;  ///< No other binding of this process has it.
  static inline std::atomic<std::uint64_t> numbers_{0};
  BindingParts parts_;
  std::vector<shim::LinkageRecord> records_;     ///< Of the primary region.
  std::unique_ptr<SecondaryAStacks> secondary_;  ///< Null unless the supply may grow.
  std::atomic<bool> return_scheduled_{false};    ///< The watcher will look for unused secondary regions.
  std::atomic<bool> sealed_{false};
  std::atomic<bool> tails_used_{false};
  std::uint32_t trim_delay_ms_ = kTrimDelayMs;  ///< Belongs to the thread that has set tails_used_.
  const shim::Watcher::Task trim_{[this, number = number_] { run(this, number, &BindingObject::trim); }};
  shim::Watcher::Task return_;                ///< No work unless the supply may grow.
  std::atomic<std::uint32_t> trim_phase_{0};  ///< Odd: the watcher holds idle A-stacks. Only the watcher writes.
  std::mutex quarantine_mutex_;
  std::vector<shim::LinkageRecord*> quarantined_;
  std::atomic<bool> any_quarantined_{false};
  /// Threads that look at secondary A-stacks in quarantine. Under quarantine_mutex_.
  std::size_t quarantine_readers_ = 0;
  std::uint64_t pidfd_watch_ = 0;
  std::uint64_t bell_watch_ = 0;
  bool watching_ended_ = false;  ///< Used by the owner, and by the last keeper in the destructor.
  RevocationNews news_;
  std::atomic<bool> let_go_{false};
  std::atomic<std::size_t> keepers_{1};  ///< Owner, started calls that outlive it, watcher_saw_end().
};

}  // namespace lrpc::client
