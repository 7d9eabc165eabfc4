// The fixed number of channels to one host, and the calls that wait for one (RPC in the x-Kernel §3.2: SELECT "simply
// chooses one of the existing channels when an RPC is invoked; it blocks if there are none available").
#pragma once

#include <memory>
#include <vector>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/protocol.h"
#include "netrpc/src/lazy_event.h"
#include "netrpc/src/waiting_calls.h"

namespace lrpc::netrpc {

/// Owned by the protocol that calls through it. When a call is cancelled or its timeout passes, its channel stays in
/// use until the server has answered, so that a server never works on more requests of a host than there are channels.
/// A channel that knows control::FreedByCancel is free at once. Waiting calls then start soon after, from the timer.
class ChannelPool {
 public:
  /// Takes the header off a reply before the caller gets it, and returns the outcome that its status means.
  using Unwrap = Errc (*)(Message& reply) noexcept;

  /// `participants`: to open channels at `below`, each when it is first needed. `queue`: how many calls may wait for a
  /// channel. `sent` counts the calls that a channel has not refused at once (too long, no memory, no path to the
  /// host); it outlives the pool.
  ChannelPool(Protocol& high, Protocol& below, ParticipantSet participants, std::size_t channels, std::size_t queue,
              Unwrap unwrap, std::uint64_t& sent);
  ChannelPool(const ChannelPool&) = delete;
  ChannelPool& operator=(const ChannelPool&) = delete;

  /// Opens one more channel. The owner opens the first one, so that opening a session fails at once if the host cannot
  /// be reached.
  [[nodiscard]] Status open_channel();
  /// As Session::call(). `request` has its header. First come, first served; the timeout includes the wait. A call is
  /// completed without being sent if there is no room in the queue (limit_reached), or if its timeout passes before a
  /// channel is free (call_aborted).
  void call(Message&& request, Transaction& transaction, Duration timeout) noexcept;
  void cancel(Transaction& transaction) noexcept;

  [[nodiscard]] bool busy() const noexcept { return in_use_ != 0 || !waiting_.empty() || entered_ != 0; }
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }
  /// Asks the first channel.
  [[nodiscard]] Errc control(control::Request& request) noexcept;

  std::size_t users = 0;       ///< Sessions that refer to it: counted by the owner.
  bool unused_before = false;  ///< Likewise, for its sweep.

 private:
  /// A channel, and the call that it carries.
  class Slot final : public Transaction {
   public:
    explicit Slot(ChannelPool& pool) noexcept : pool_(pool) {}
    void completed(Errc outcome, Message reply) noexcept override { pool_.completed(*this, outcome, std::move(reply)); }
    void collated(HostAddress member, Errc outcome, Message reply) noexcept override {
      if (user == nullptr) return;
      outcome = pool_.unwrapped(outcome, reply);
      user->collated(member, outcome, std::move(reply));
    }
    [[nodiscard]] bool counts(const Message& reply) noexcept override {
      Message seen = reply.share();
      return user != nullptr && pool_.unwrapped(Errc::ok, seen) == Errc::ok && user->counts(seen);
    }

    SessionRef channel;
    bool freed_by_cancel = false;  ///< See control::FreedByCancel.
    bool starting = false;         ///< The channel's call() is running.
    Transaction* user = nullptr;   ///< Null while in use: the caller does not wait any more.
    Time user_deadline = Time::max();
    Slot* next_free = nullptr;

   private:
    ChannelPool& pool_;
  };

  /// The outcome that the user gets; takes the header off `reply`, or clears it.
  [[nodiscard]] Errc unwrapped(Errc outcome, Message& reply) const noexcept {
    if (outcome == Errc::ok) outcome = unwrap_(reply);
    if (outcome != Errc::ok) reply.clear();
    return outcome;
  }
  [[nodiscard]] Slot* take_slot(Errc& outcome) noexcept;
  void free_slot(Slot& slot) noexcept;
  Transaction* abandon(Slot& slot) noexcept;
  void start(Slot& slot, Message&& request, Transaction& transaction, Time deadline) noexcept;
  void completed(Slot& slot, Errc outcome, Message&& reply) noexcept;
  void serve_waiting() noexcept;
  [[nodiscard]] Transaction* take_expired(Time now) noexcept;
  void expired() noexcept;

  Protocol& high_;
  Protocol& below_;
  const ParticipantSet participants_;
  const std::size_t limit_;
  const std::size_t queue_;
  const Unwrap unwrap_;
  std::uint64_t& sent_;
  std::vector<std::unique_ptr<Slot>> slots_;
  Slot* free_ = nullptr;  ///< The one that was used last is the first: its state is in the caches at both ends.
  std::size_t in_use_ = 0;
  WaitingCalls waiting_;
  bool serving_ = false;
  int entered_ = 0;
  LazyEvent timer_;
};

}  // namespace lrpc::netrpc
