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
  /// Return Errc::no_astack, without waiting for a call. While another thread is at idle A-stacks for a moment, waits
  /// for that, at most for as long as the call may take.
  fail,
  /// Ask the server for more: secondary A-stacks, in regions beyond the primary one, which go back when nobody has used
  /// them for a while (ImportOptions::grown_idle). Wait while it does not give any: it has limits (ServerOptions). Not
  /// with Gate::trap.
  grow,
};

}  // namespace lrpc

namespace lrpc::client {

/// Runs the server's half of a call in the caller's thread: what a binding with Gate::none has instead of a transfer
/// (tests/support/inline_server.h).
struct InlineServer {
  void (*serve)(void* server, std::uint32_t astack) = nullptr;
  void* server = nullptr;
};

class RemotePath;
struct Library;
class SecondaryAStacks;
class Waiting;

/// What a Binding Object is made of. The fds are the peer's pidfd (may be empty) and the client's end of the bell.
struct BindingParts {
  BindingParts() noexcept;
  BindingParts(BindingParts&&) noexcept;
  BindingParts& operator=(BindingParts&&) noexcept;
  ~BindingParts();

  std::uint64_t id = 0;
  shim::Nonce nonce{};
  shim::Credentials server;
  shim::Region region;
  UniqueFd server_pidfd;
  shim::PeerSocket bell = {};
  shim::Gate gate = shim::Gate::adaptive;
  AStackSupply supply = AStackSupply::wait;
  std::chrono::milliseconds grown_idle{1'000};  ///< For AStackSupply::grow; over zero, or kNoLimit.
  /// Set for a server on another host: then the region is this domain's alone, there is no pidfd, and the bell's other
  /// end is hung up by whoever learns that the path has ended.
  std::unique_ptr<RemotePath> remote;
  std::chrono::milliseconds call_timeout = kNoLimit;
  bool watched = true;
  std::function<void()> on_revoked;
};

/// Owns the mapping, the linkage records, the A-stack lists, the bell. Pinned in memory. Thread-safe.
class BindingObject {
 public:
  /// Starts watching the server. Fails with system_error.
  static Result<std::unique_ptr<BindingObject>> create(BindingParts parts);
  BindingObject(const BindingObject&) = delete;
  BindingObject& operator=(const BindingObject&) = delete;
  /// Not while there are started calls, nor where its end is told: its owner lets it go.
  ~BindingObject();
  /// By its owner, instead of deleting it. The server sees the end now. Calls that were started and not finished end as
  /// call_failed, unless they have returned already; the memory goes with the last of them, or when whoever is told of
  /// the server's end has returned. Not while other threads are in a call of the binding, or in a member of one of its
  /// started calls.
  void let_go() noexcept;
  /// Revokes the binding as if its server had ended, and shows the server the end. Nobody is told.
  void end() noexcept {
    end_watching();
    revoke();
  }
  /// True after let_go(), while started calls are left.
  [[nodiscard]] bool has_been_let_go() const noexcept { return let_go_.load(std::memory_order_acquire); }

  /// The remote bit: set, calls go over the network path (LRPC §5.1).
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
  /// Whether the binding's calls have a time limit of its own.
  [[nodiscard]] bool times_calls() const noexcept { return !(parts_.call_timeout == kNoLimit); }
  /// Of the calls from now on. Not while others use the binding.
  void set_call_timeout(std::chrono::milliseconds timeout) noexcept;
  [[nodiscard]] AStackList& astacks(std::uint16_t astack_class) noexcept { return lists_[astack_class]; }
  /// How long a caller polls before it gives an exchange up.
  [[nodiscard]] const shim::PollPace::Limits& poll_limits() const noexcept { return poll_limits_; }

  /// Null, and why: binding_revoked, no_astack (it is not to wait), call_aborted or call_cancelled (it has waited for
  /// call_timeout, or for as long as its scope lets it).
  struct Taken {
    shim::LinkageRecord* record = nullptr;
    Errc why_not = Errc::ok;
  };
  /// Step 2 when no A-stack is leased to the thread: any other, or by the binding's supply rule.
  [[nodiscard]] Taken take_slow(AStackList& list) noexcept;
  /// Puts a record aside until its own RETURNED(generation) is seen: abandoned calls, and those that were sent one-way.
  void quarantine(shim::LinkageRecord& record) noexcept;
  /// How many of those the server has not let go of yet.
  [[nodiscard]] std::size_t in_quarantine() noexcept;
  /// One byte on the bell: "there is a call on an A-stack without E-stack". Never blocks.
  void ring_bell() const noexcept;
  /// After a bounded sleep on a call that has not returned: wakes its E-stack and tells the clerk, whatever the hints
  /// in the region say: a call must not hang on a hint that its peer has rewritten.
  void overrule_hints(shim::AStackHead& head) const noexcept;
  /// Looks whether the server is gone, and revokes if so. For callers whose bounded sleep has ended.
  void check_server() noexcept;
  /// No more calls; outstanding ones return call-failed. Idempotent.
  void revoke() noexcept;
  /// See Binding::revocation_fd() and Binding::when_revoked().
  [[nodiscard]] Result<int> revocation_fd();
  Status when_revoked(std::function<void()> told);
  /// Tells the watcher that tails were used, so that it gives their pages back once they are idle.
  void note_tail_use() noexcept {
    if (!tails_used_.load(std::memory_order_relaxed)) [[unlikely]]
      schedule_trim(kTrimDelayMs);
  }

  /// How often idle tails were given back, twice; odd: just now.
  [[nodiscard]] std::uint32_t trim_phase() const noexcept { return trim_phase_.load(std::memory_order_acquire); }

  /// For Gate::trap: whether this process is under the filter whose listener the server has; before, no call is made.
  [[nodiscard]] bool sealed() const noexcept { return sealed_.load(std::memory_order_acquire); }
  void set_sealed() noexcept { sealed_.store(true, std::memory_order_release); }

  /// In a fork child: the region is not there, so every call must fail before it touches it.
  void forget_after_fork() noexcept;
  /// True there: not even the call words are.
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
  [[nodiscard]] Status watched() const;
  [[nodiscard]] bool release_quarantined(AStackList& list) noexcept;
  void wait_for_sent(AStackList& list, std::uint32_t seen, const Waiting& waiting,
                     std::chrono::nanoseconds limit) noexcept;
  static constexpr std::uint32_t kTrimDelayMs = 1000;
  void schedule_trim(std::uint32_t delay_ms) noexcept;
  /// Work that was posted for the binding of this number. It runs on the watcher's thread, when the binding may be
  /// gone, and another one at its address.
  static void trim(BindingObject* binding, std::uint64_t number);
  static void return_unused(BindingObject* binding, std::uint64_t number);
  [[nodiscard]] static bool is_there(const Library& library, BindingObject* binding, std::uint64_t number);
  /// False: some A-stacks with tails were in a call and keep theirs.
  [[nodiscard]] bool trim_idle_tails();
  [[nodiscard]] std::chrono::nanoseconds wait_for_growth(AStackList& list, std::chrono::nanoseconds limit) noexcept;
  [[nodiscard]] bool anybody_waits_for_sent() noexcept;
  /// Room for every record up to the last of a secondary region's place.
  void make_room_in_quarantine(std::uint32_t first_secondary, std::uint32_t place);
  void schedule_return() noexcept;

  // Read by every call, written never or once.
  /// Without the remote bit; with it, 0. A comparison with a number that is used nowhere else is one instruction: 0
  /// would be loaded first, and 1 kept for where a 1 is needed.
  static constexpr std::uint32_t kLocal = 0x10ca1;
  const std::uint32_t local_;
  std::atomic<bool> revoked_{false};
  shim::PollPace::Limits poll_limits_;
  InlineServer inline_server_;
  std::unique_ptr<AStackList[]> lists_;

  bool forgotten_ = false;  ///< Written in a fork child alone.
  const shim::ProcessNumber owner_;
  const std::uint64_t number_ = ++numbers_;  ///< No other binding of this process has it.
  static inline std::atomic<std::uint64_t> numbers_{0};
  BindingParts parts_;
  std::vector<shim::LinkageRecord> records_;     ///< Of the primary region.
  std::unique_ptr<SecondaryAStacks> secondary_;  ///< Null unless the supply may grow.
  std::atomic<bool> return_scheduled_{false};    ///< The watcher will look for unused secondary regions.
  std::atomic<bool> sealed_{false};
  std::atomic<bool> tails_used_{false};
  std::uint32_t trim_delay_ms_ = kTrimDelayMs;  ///< Of the one who has set tails_used_.
  const shim::Watcher::Task trim_{[this, number = number_] { trim(this, number); }};
  shim::Watcher::Task return_;                ///< None unless the supply may grow.
  std::atomic<std::uint32_t> trim_phase_{0};  ///< Odd: the watcher holds idle A-stacks for a moment. It alone writes.
  std::mutex quarantine_mutex_;
  std::vector<shim::LinkageRecord*> quarantined_;
  std::atomic<bool> any_quarantined_{false};
  std::size_t sent_waiters_ = 0;  ///< Threads that look at a secondary A-stack in quarantine; under quarantine_mutex_.
  std::uint64_t pidfd_watch_ = 0;
  std::uint64_t bell_watch_ = 0;
  bool watching_ended_ = false;  ///< Its owner's, and whoever's it is at its end.
  RevocationNews news_;
  std::atomic<bool> let_go_{false};
  std::atomic<std::size_t> keepers_{1};  ///< The owner, or the started calls that outlive it; and who tells of the end.
};

}  // namespace lrpc::client
