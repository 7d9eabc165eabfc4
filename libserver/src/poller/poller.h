// Domain caching (LRPC §3.4): on an otherwise idle processor, a thread of the server's domain polls for calls.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "call/primed_context.h"
#include "call/served_binding.h"
#include "domain_processors.h"
#include "guest_policy.h"
#include "lrpc/detail/server/server.h"
#include "lrpc/detail/shim/system/sleeping_word.h"
#include "lrpc/detail/shim/system/thread.h"
#include "poller_grant.h"
#include "poller_load.h"
#include "poller_policy.h"

namespace lrpc::server {

class PollerTeam;

/// One poller thread with its hot set of call words. While it is parked, it costs nothing.
///
/// The public members are thread-safe. The thread starts with the first offer.
class Poller {
 public:
  static constexpr std::size_t kHotSet = 64;  ///< Scanning up to 64 words is free.
  /// Pollers count their stints from different numbers: a caller that distrusts a stint of one still trusts the others.
  static constexpr std::uint64_t kStintsApart = 64;

  /// The references must outlive it. `index`: its place in the team, 0 for the first.
  Poller(PollerTeam& team, std::size_t index, const ServerOptions& options, DomainProcessors& processors,
         PollerGrant& grant) noexcept
      : team_(team),
        index_(static_cast<std::uint8_t>(index)),
        grant_(grant),
        window_(options.poll_window),
        stack_size_(options.estack_size),
        processors_(processors) {}
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  ~Poller() { stop(); }

  /// Takes an A-stack into the hot set and wakes the poller, unless it is polled already or there is no room
  /// (hot_places.h).
  void accept(const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack) {
    if (astack.polled.exchange(Polled::yes) != Polled::yes) take_over(binding, astack);
  }
  /// The same for an A-stack that is marked as polled already, and that no other poller has any more.
  void take_over(const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack);
  /// Whether it is not backing off.
  [[nodiscard]] bool takes_offers(shim::Moment now) const noexcept {
    return !now.before(not_before_.load(std::memory_order_relaxed));
  }
  /// Whether it may be a guest if callers run on all processors: only the first poller, while no other one polls, if
  /// the domain has 2 to GuestPolicy::kMostProcessors processors.
  [[nodiscard]] bool may_be_guest(shim::Moment now) const noexcept;
  void stop();
  /// Whether the calling thread is this one's.
  [[nodiscard]] bool runs_here() {
    std::lock_guard lock(mutex_);
    return thread_.is_this();
  }

  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  /// The processor that its hints name while it polls, else none.
  [[nodiscard]] std::uint16_t seat() const noexcept { return seat_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool polls() const noexcept { return polls_.load(std::memory_order_relaxed); }
  /// Whether it had room for more calls when it last looked. Returns true only once until it looks again.
  [[nodiscard]] bool claim_room() noexcept {
    return has_room_.load(std::memory_order_relaxed) && has_room_.exchange(false, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t hits() const noexcept { return hits_.load(std::memory_order_relaxed); }
  /// Adds its own.
  void count(ServerStatistics& counted) const noexcept {
    counted.poller_hits += hits();
    counted.poller_evictions += evictions_.load(std::memory_order_relaxed);
    counted.guest_turns += guest_turns_.load(std::memory_order_relaxed);
  }

 private:
  struct Hot {
    std::shared_ptr<ServedBinding> binding;
    ServedAStack* astack = nullptr;
    std::uint64_t last_hit = 0;
    std::uint16_t caller = shim::kNoProcessor;  ///< By the word of its last call.
    bool leaves = false;                        ///< Its hint is off. Noted here, because the client can write the hint.
  };
  [[nodiscard]] bool start_locked();
  void run();
  void take_offers(shim::Moment now);
  [[nodiscard]] bool make_room_for(const Hot& offer);
  void take_back_remembered(shim::Moment now);
  [[nodiscard]] bool scan(std::uint64_t& last_hit);
  void drop_cold(shim::Moment now);
  template <class Leaves>
  void drop_those(Leaves&& leaves, Poller* heir);
  void balance(shim::Moment now);
  void last_look(const Hot& hot, Polled then);
  void demote(std::size_t index);
  void drop(std::size_t index, Polled then);
  [[nodiscard]] bool shares_processor_with_caller() const noexcept;
  [[nodiscard]] bool took_too_long(ServedAStack& astack, std::uint64_t now) noexcept;
  [[nodiscard]] bool take_seat() noexcept;
  [[nodiscard]] bool keep_seat(std::uint64_t calls, shim::Moment now) noexcept;
  [[nodiscard]] bool begin_as_guest() noexcept;
  [[nodiscard]] bool stay_as_guest() noexcept;
  [[nodiscard]] std::uint16_t next_host() const noexcept;
  [[nodiscard]] bool sit_down_at(std::uint16_t host) noexcept;
  [[nodiscard]] bool change_seat_to(std::uint16_t host) noexcept;
  [[nodiscard]] bool go_on_if_it_pays(std::uint64_t calls, shim::Moment now) noexcept;
  [[nodiscard]] std::uint64_t be_nobodys_guest() noexcept;
  [[nodiscard]] bool leaves_host_waiting(const ServedAStack& astack) const noexcept;
  void serve_host();
  void fence() noexcept;
  [[nodiscard]] bool can_promise() noexcept;
  void say_polled(ServedAStack& astack) const noexcept;
  void say_all_polled(std::uint16_t processor = shim::current_processor()) noexcept;
  [[nodiscard]] bool step_aside(ServedAStack& astack) noexcept;
  void stint();
  void tell_hits() noexcept;
  void poll();
  void offer_processor() noexcept;
  void note_callers(std::uint64_t since, shim::Moment now) noexcept;
  void note_gap(std::uint64_t us, shim::Moment now) noexcept;
  void count_anew(shim::Moment now) noexcept;
  void cool_down();

  PollerTeam& team_;
  const std::uint8_t index_;
  PollerGrant& grant_;
  const std::chrono::microseconds window_;
  const std::size_t stack_size_;
  DomainProcessors& processors_;
  std::mutex mutex_;
  std::vector<Hot> offers_;     ///< Reserved for kHotSet when the thread starts, like taken_ and remembered_.
  shim::SleepingWord offered_;  ///< Raised for an offer; also tells the polling thread to look.
  std::atomic<std::uint64_t> not_before_{0};  ///< ticks() before which no offer is taken.
  std::atomic<std::uint16_t> seat_{shim::kNoProcessor};
  std::atomic<bool> polls_{false};
  std::atomic<bool> has_room_{false};
  std::atomic<std::uint64_t> hits_{0};
  std::atomic<std::uint64_t> evictions_{0};
  std::atomic<std::uint64_t> guest_turns_{0};
  shim::Thread thread_;  ///< Under mutex_ until it runs.

  // The poller thread's own.
  std::array<Hot, kHotSet> hot_{};
  std::size_t hot_count_ = 0;
  /// A-stacks that were hot when the poller parked for want of calls. They come back together: a caller with many calls
  /// in flight uses all of them again.
  struct Remembered {
    std::weak_ptr<ServedBinding> binding;
    ServedAStack* astack = nullptr;
  };
  std::vector<Remembered> remembered_;
  std::vector<Hot> taken_;  ///< Offers that are being looked at.
  std::uint32_t offers_seen_ = 0;
  PollerPolicy policy_{kStintsApart * index_};
  PollerLoad load_;
  GuestPolicy guest_policy_;
  bool guest_ = false;                       ///< It shares host_ with callers.
  bool serves_host_ = false;                 ///< This scan serves the callers on host_, too.
  bool has_to_pay_ = false;                  ///< It is a guest, or has been one in this stint.
  std::uint16_t host_ = shim::kNoProcessor;  ///< The last host, if it is no guest now.
  std::uint64_t noted_ = 0;                  ///< ticks() when all callers were noted.
  std::uint64_t told_hits_ = 0;              ///< Hits that the allocator has been told of.
  bool polling_ = false;                     ///< Within a stint: hints are on.
  bool fences_ = false;                      ///< When last asked, the kernel fenced for our callers, too.
  std::uint64_t ask_again_ = 0;              ///< ticks() at which to ask it again.
  bool promised_ = false;                    ///< This stint's hints say that the poller fences for its callers.
  std::uint64_t mark_ = 0;                   ///< ticks() at the last look at the clock.
  std::uint64_t slow_looked_ = 0;            ///< involuntary_switches() when a call last seemed slow.
  std::uint64_t counted_ = 0;                ///< ticks() when thread_microseconds() were counted_us_.
  std::uint64_t counted_us_ = 0;
  PrimedContext context_;
};

}  // namespace lrpc::server
