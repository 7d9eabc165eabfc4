// Events of a composite protocol: micro-protocols work together by them without knowing each other (Bhatti and
// Schlichting, "A System for Constructing Configurable High-Level Protocols", SIGCOMM 1995, §3.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "lrpc/netrpc/event_manager.h"
#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/map.h"
#include "netrpc/composite/handler_threads.h"
#include "netrpc/src/cells.h"

namespace lrpc::netrpc::composite {

/// An event: its name and the types of its parameters. Each handler gets its own copies of the parameters. Those that
/// raise an event and those that handle it use the same definition.
template <class... Parameters>
struct EventName {
  static_assert((std::is_nothrow_copy_constructible_v<Parameters> && ...));
  std::string_view name;
};

/// Whether raise() returns after all handlers have run, or before.
enum class Raise : std::uint8_t { synchronous, asynchronous };
enum class Repeat : std::uint8_t { once, periodic };

class EventBase {
 public:
  explicit EventBase(const std::type_info& of_parameters) : types(of_parameters) {}
  EventBase(const EventBase&) = delete;
  EventBase& operator=(const EventBase&) = delete;
  virtual ~EventBase() = default;
  /// Puts the handlers in a random order, so that nobody relies on one.
  virtual void shuffle(const std::function<std::uint64_t()>& random) = 0;
  virtual void drop_handlers() noexcept = 0;

  const std::type_info& types;  ///< Of the parameters.
};

/// An event of a composition, with all its handlers. Handlers do not throw. None is added once messages come.
template <class... Parameters>
class Raisable final : public EventBase {
 public:
  using Handler = std::function<void(Parameters...)>;
  using Guard = std::function<bool(const Parameters&...)>;
  Raisable() : EventBase(typeid(std::tuple<Parameters...>)) {}

  void add(Handler handler, Guard guard) { handlers_.push_back({std::move(guard), std::move(handler)}); }
  /// Returns how many handlers were activated.
  std::size_t run(const Parameters&... parameters) const noexcept {
    std::size_t activated = 0;
    for (std::size_t i = 0; i < handlers_.size(); ++i) {
      if (!lets(i, parameters...)) continue;
      ++activated;
      handlers_[i].handler(parameters...);
    }
    return activated;
  }
  [[nodiscard]] std::size_t handlers() const noexcept { return handlers_.size(); }
  [[nodiscard]] bool lets(std::size_t handler, const Parameters&... parameters) const noexcept {
    const Guard& guard = handlers_[handler].guard;
    return !guard || guard(parameters...);
  }
  void run_one(std::size_t handler, const Parameters&... parameters) const noexcept {
    handlers_[handler].handler(parameters...);
  }
  void shuffle(const std::function<std::uint64_t()>& random) override {
    for (std::size_t i = handlers_.size(); i > 1; --i) std::swap(handlers_[i - 1], handlers_[random() % i]);
  }
  void drop_handlers() noexcept override { handlers_.clear(); }

 private:
  struct Guarded {
    Guard guard;  ///< Null: always.
    Handler handler;
  };
  std::vector<Guarded> handlers_;
};

class Events;

/// A raise that waits for its turn, for its time or for a thread. It holds its parameters, so that it allocates nothing
/// in the steady state.
class Waiting {
 public:
  static constexpr std::size_t kMostBytes = 48;  ///< Of parameters.
  static constexpr std::size_t kAll = ~std::size_t{0};

  /// `handler`: the only one to run, whose guard has allowed it; kAll: each whose guard allows it.
  template <class... Parameters>
  Waiting(std::size_t handler, const Raisable<Parameters...>& event, const Parameters&... parameters) noexcept
      : handler_(handler) {
    using Held = std::pair<const Raisable<Parameters...>*, std::tuple<Parameters...>>;
    static_assert(sizeof(Held) <= kMostBytes, "parameters too large");
    static_assert(alignof(Held) <= alignof(std::max_align_t), "parameters aligned too strictly");
    ::new (held_) Held(&event, std::tuple<Parameters...>(parameters...));
    run_ = [](Events& events, std::size_t which, const std::byte* held) noexcept {
      const Held copy = *reinterpret_cast<const Held*>(held);  // a handler may destroy this
      std::apply([&](const Parameters&... each) { run(events, which, *copy.first, each...); }, copy.second);
    };
    destroy_ = [](std::byte* held) noexcept { std::destroy_at(reinterpret_cast<Held*>(held)); };
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() { destroy_(held_); }
  void run(Events& events) const noexcept { run_(events, handler_, held_); }

 private:
  template <class... Parameters>
  static void run(Events& events, std::size_t handler, const Raisable<Parameters...>& event,
                  const Parameters&... parameters) noexcept;

  alignas(std::max_align_t) std::byte held_[kMostBytes];
  const std::size_t handler_;
  void (*run_)(Events&, std::size_t, const std::byte*) noexcept;
  void (*destroy_)(std::byte*) noexcept;
};

/// The events of one composition. Handlers run in the thread that raises (procedure dispatch) or in threads of their
/// own (thread dispatch); always in the monitor, so one at a time unless they block. Call everything under the monitor.
class Events {
  class Deferred;

 public:
  /// `threads`: how many run handlers. 0: procedure dispatch.
  explicit Events(Host& host, std::size_t threads = 0) : host_(host) {
    if (threads != 0) threads_.emplace(host, threads);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() { clear(); }
  /// Drops all timers and handlers: raises have no effect from now on.
  void clear() noexcept {
    waiting_timers_.for_each([this](TimerId, Timer* timer) { timers_.destroy(*timer); });
    waiting_timers_.clear();
    for (const auto& [name, event] : events_) event->drop_handlers();
  }

  /// The event of that name, which is made if there is none. Null: it has other parameters.
  template <class... Parameters>
  [[nodiscard]] Raisable<Parameters...>* find(const std::string& name) {
    auto& known = events_[name];
    if (known == nullptr) known = std::make_unique<Raisable<Parameters...>>();
    if (known->types != typeid(std::tuple<Parameters...>)) return nullptr;
    return static_cast<Raisable<Parameters...>*>(known.get());
  }
  template <class... Parameters>
  [[nodiscard]] Raisable<Parameters...>* find(const EventName<Parameters...>& event) {
    return find<Parameters...>(std::string(event.name));
  }
  /// Draws a random order for the handlers of each event.
  void shuffle() {
    for (const auto& [name, event] : events_) event->shuffle([this] { return host_.random(); });
  }

  /// Synchronous: all handlers run before this returns. Asynchronous: they run when this thread's current message or
  /// timer has been handled, in the order of the raises; if it handles none, at once. With threads, they start at once,
  /// in any order. If there is no memory, they run before this returns.
  template <class... Parameters>
  void raise(const Raisable<Parameters...>& event, Raise how, std::type_identity_t<Parameters>... parameters) noexcept {
    ++raised_;
    if (how == Raise::synchronous) return run(event, parameters...);
    Turn here(*this);
    if (threads_) return start(event, here, outermost(here).round_, parameters...);
    if (Deferred* const later = deferred_.make(*this, here, Waiting::kAll, event, parameters...))
      return defer(*later, outermost(here));
    run(event, parameters...);
  }

  /// 0: none.
  using TimerId = std::uint64_t;
  /// Raises the event `after` from now, once or periodically. Returns 0 if there is no memory. A periodic timer ends if
  /// there is no memory to set it again.
  template <class... Parameters>
  [[nodiscard]] TimerId set_timer(const Raisable<Parameters...>& event, Duration after, Repeat repeat,
                                  std::type_identity_t<Parameters>... parameters) noexcept {
    return begin(timers_.make(*this, after, repeat, Waiting::kAll, event, parameters...));
  }
  /// When the timer expires. Time::max(): it has ended.
  [[nodiscard]] Time due(TimerId timer) noexcept {
    Timer** const known = waiting_timers_.resolve(timer);
    return known != nullptr ? (*known)->event.due() : Time::max();
  }
  /// Ends the timer. No effect if it has ended.
  void cancel_timer(TimerId timer) noexcept;

  /// The handling of one message or timer. What is raised asynchronously in it runs at the end of the outermost turn.
  /// Turns are on the stack, so that those of a thread nest.
  class Turn {
   public:
    explicit Turn(Events& events) noexcept : Turn(events, inside(events, innermost)) {}
    /// `within`: the turn that this one belongs to, perhaps of another thread. Null: none.
    Turn(Events& events, Turn* within) noexcept
        : events_(events), outer_(std::exchange(innermost, this)), within_(within) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      if (within_ == nullptr) events_.end(*this);
      innermost = outer_;
    }

   private:
    friend class Events;
    static constinit thread_local Turn* innermost;  ///< Of this thread, for any Events.
    /// The innermost turn of `events` in the thread whose innermost turn is `turn`. Null: none, or it is in an Outside.
    static Turn* inside(const Events& events, Turn* turn) noexcept {
      while (turn != nullptr && &turn->events_ != &events) turn = turn->outer_;
      return turn == nullptr || turn->left_ ? nullptr : turn;
    }

    Events& events_;
    Turn* const outer_;
    Turn* const within_;  ///< Null: the outermost.
    bool left_ = false;   ///< See Outside.
    Deferred* first_ = nullptr;
    Deferred* last_ = nullptr;
    HandlerThreads::Round round_;
  };

  /// Held around calls out of the composite protocol, as the framework does, and around what blocks in a handler. The
  /// callee may handle other messages in the same thread meanwhile: those do not belong to the current turn.
  class Outside {
   public:
    explicit Outside(const Events& events) noexcept : turn_(Turn::inside(events, Turn::innermost)) {
      if (turn_ != nullptr) turn_->left_ = true;
    }
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;
    ~Outside() {
      if (turn_ != nullptr) turn_->left_ = false;
    }

   private:
    Turn* const turn_;
  };

  [[nodiscard]] std::uint64_t raised() const noexcept { return raised_; }
  [[nodiscard]] std::uint64_t activations() const noexcept { return activations_; }  ///< Of handlers.
  [[nodiscard]] std::size_t timers() const noexcept { return timers_.in_use(); }

 private:
  class Deferred final : public HandlerThreads::Job {
   public:
    template <class... Arguments>
    Deferred(Events& events, Turn& raised_in, const Arguments&... arguments) noexcept
        : what(arguments...), events_(events), turn_(&outermost(raised_in)) {}
    void run() noexcept override;
    const Waiting what;
    Deferred* next = nullptr;

   private:
    Events& events_;
    Turn* const turn_;
  };
  struct Timer {
    template <class... Arguments>
    Timer(Events& events, Duration after, Repeat again, const Arguments&... arguments) noexcept
        : what(arguments...), event([this, &events] { events.expired(*this); }), pause(after), repeat(again) {}
    Waiting what;
    Event event;
    Duration pause;
    Repeat repeat;
    TimerId id = 0;
  };
  [[nodiscard]] TimerId begin(Timer* timer) noexcept;
  void expired(Timer& timer) noexcept;
  [[nodiscard]] static Turn& outermost(Turn& turn) noexcept {
    return turn.within_ == nullptr ? turn : outermost(*turn.within_);
  }
  static void defer(Deferred& later, Turn& turn) noexcept {
    (turn.first_ != nullptr ? turn.last_->next : turn.first_) = &later;
    turn.last_ = &later;
  }
  void end(Turn& turn) noexcept {
    while (turn.first_ != nullptr) std::exchange(turn.first_, turn.first_->next)->run();
    if (threads_) threads_->wait(turn.round_);
  }
  template <class... Parameters>
  void run(const Raisable<Parameters...>& event, const Parameters&... parameters) noexcept {
    if (!threads_) [[likely]] {
      activations_ += event.run(parameters...);
      return;
    }
    Turn here(*this);
    HandlerThreads::Round round;
    start(event, here, round, parameters...);
    threads_->wait(round);
  }
  /// Gives each handler whose guard allows it to a thread. If no thread is free or there is no memory, runs it here.
  template <class... Parameters>
  void start(const Raisable<Parameters...>& event, Turn& raised_in, HandlerThreads::Round& round,
             const Parameters&... parameters) noexcept {
    for (std::size_t i = 0; i < event.handlers(); ++i) {
      if (!event.lets(i, parameters...)) continue;
      if (Deferred* const job = deferred_.make(*this, raised_in, i, event, parameters...)) {
        if (!threads_->start(*job, round)) job->run();
      } else {
        ++activations_;
        event.run_one(i, parameters...);
      }
    }
  }
  friend class Waiting;

  Host& host_;
  std::optional<HandlerThreads> threads_;
  std::map<std::string, std::unique_ptr<EventBase>, std::less<>> events_;
  Cells<Deferred> deferred_;
  Cells<Timer> timers_;
  Map<TimerId, Timer*> waiting_timers_;
  TimerId last_timer_ = 0;
  std::uint64_t raised_ = 0;
  std::uint64_t activations_ = 0;
};

template <class... Parameters>
void Waiting::run(Events& events, std::size_t handler, const Raisable<Parameters...>& event,
                  const Parameters&... parameters) noexcept {
  if (handler == kAll) {
    events.run(event, parameters...);
  } else {
    ++events.activations_;
    event.run_one(handler, parameters...);
  }
}

}  // namespace lrpc::netrpc::composite
