// Events of a composite protocol: by them micro-protocols work together that know nothing of each other (Bhatti and
// Schlichting, "A System for Constructing Configurable High-Level Protocols", SIGCOMM 1995, §3.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
#include "netrpc/src/cells.h"

namespace lrpc::netrpc::composite {

/// An event: its name, and what its handlers are given, each a copy of its own. Who raises it and who handles it share
/// one definition.
template <class... Parameters>
struct EventName {
  static_assert((std::is_nothrow_copy_constructible_v<Parameters> && ...));
  std::string_view name;
};

/// Whether who raises an event goes on when all handlers have run, or before.
enum class Raise : std::uint8_t { synchronous, asynchronous };
enum class Repeat : std::uint8_t { once, periodic };

class EventBase {
 public:
  EventBase(std::string_view name, const std::type_info& parameters) : name_(name), parameters_(parameters) {}
  EventBase(const EventBase&) = delete;
  EventBase& operator=(const EventBase&) = delete;
  virtual ~EventBase() = default;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::type_info& parameters() const noexcept { return parameters_; }
  /// Puts the handlers in an order that nobody may rely on.
  virtual void shuffle(const std::function<std::uint64_t()>& random) = 0;
  virtual void drop_handlers() noexcept = 0;

 private:
  const std::string name_;
  const std::type_info& parameters_;
};

/// An event of a composition, with all its handlers. Handlers do not throw, and none comes once messages do.
template <class... Parameters>
class Raisable final : public EventBase {
 public:
  using Handler = std::function<void(Parameters...)>;
  using Guard = std::function<bool(const Parameters&...)>;
  explicit Raisable(std::string_view name) : EventBase(name, typeid(std::tuple<Parameters...>)) {}

  void add(Handler handler, Guard guard) { handlers_.push_back({std::move(guard), std::move(handler)}); }
  /// Returns how many handlers were activated.
  std::size_t run(const Parameters&... parameters) const noexcept {
    std::size_t activated = 0;
    for (const Guarded& one : handlers_) {
      if (one.guard && !one.guard(parameters...)) continue;
      ++activated;
      one.handler(parameters...);
    }
    return activated;
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

/// A raise that waits: for its turn, or for its time. Its parameters lie inside, so that it costs no allocation once
/// warm.
class Waiting {
 public:
  static constexpr std::size_t kMostBytes = 48;  ///< Of parameters.

  template <class... Parameters>
  Waiting(const Raisable<Parameters...>& event, const Parameters&... parameters) noexcept {
    using Held = std::pair<const Raisable<Parameters...>*, std::tuple<Parameters...>>;
    static_assert(sizeof(Held) <= kMostBytes, "parameters too large");
    static_assert(alignof(Held) <= alignof(std::max_align_t), "parameters aligned too strictly");
    ::new (held_) Held(&event, std::tuple<Parameters...>(parameters...));
    run_ = [](const std::byte* held) noexcept {
      const Held copy = *reinterpret_cast<const Held*>(held);  // handlers may take this away
      return std::apply([&](const Parameters&... each) { return copy.first->run(each...); }, copy.second);
    };
    destroy_ = [](std::byte* held) noexcept { std::destroy_at(reinterpret_cast<Held*>(held)); };
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() { destroy_(held_); }
  [[nodiscard]] std::size_t run() const noexcept { return run_(held_); }

 private:
  alignas(std::max_align_t) std::byte held_[kMostBytes];
  std::size_t (*run_)(const std::byte*) noexcept;
  void (*destroy_)(std::byte*) noexcept;
};

/// The events of one composition, dispatched by procedure calls: a handler runs in the thread that is inside the
/// monitor. Under the monitor.
class Events {
  struct Deferred;

 public:
  explicit Events(Host& host) noexcept : host_(host) {}
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() { clear(); }
  /// Drops the timers, and all handlers: what is raised from now on goes to nobody.
  void clear() noexcept;

  /// The event of that name. Null: there is one, with other parameters.
  template <class... Parameters>
  [[nodiscard]] Raisable<Parameters...>* find(const std::string& name) {
    auto& known = events_[name];
    if (known == nullptr) known = std::make_unique<Raisable<Parameters...>>(name);
    if (known->parameters() != typeid(std::tuple<Parameters...>)) return nullptr;
    return static_cast<Raisable<Parameters...>*>(known.get());
  }
  template <class... Parameters>
  [[nodiscard]] Raisable<Parameters...>* find(const EventName<Parameters...>& event) {
    return find<Parameters...>(std::string(event.name));
  }
  /// The order of all handlers is drawn anew.
  void shuffle();

  /// Synchronous: all handlers run before this returns. Asynchronous: when what this thread has come in for has been
  /// handled, in the order of the raises; at once, if it has come in for nothing. False: there is no memory to remember
  /// it.
  template <class... Parameters>
  bool raise(const Raisable<Parameters...>& event, Raise how, std::type_identity_t<Parameters>... parameters) noexcept {
    ++raised_;
    if (how == Raise::synchronous) [[likely]] {
      activations_ += event.run(parameters...);
      return true;
    }
    Deferred* const later = deferred_.make(event, parameters...);
    if (later != nullptr) defer(*later);
    return later != nullptr;
  }

  /// 0: none.
  using TimerId = std::uint64_t;
  /// Raises the event `after` from now, once or again and again. Returns 0 if there is no memory. A periodic one ends
  /// when there is none to go on.
  template <class... Parameters>
  [[nodiscard]] TimerId set_timer(const Raisable<Parameters...>& event, Duration after, Repeat repeat,
                                  std::type_identity_t<Parameters>... parameters) noexcept {
    return begin(timers_.make(*this, after, repeat, event, parameters...));
  }
  /// It will not be raised any more. No effect on one that is over.
  void cancel_timer(TimerId timer) noexcept;

  /// What comes from outside is handled in one: at the end of the outermost, what has been raised asynchronously in it
  /// runs. On the stack, so that those of a thread nest.
  class Turn {
   public:
    explicit Turn(Events& events) noexcept
        : events_(events), outer_(std::exchange(innermost, this)), within_(inside(events, outer_)) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      if (within_ == nullptr) events_.run_deferred(*this);
      innermost = outer_;
    }

   private:
    friend class Events;
    static constinit thread_local Turn* innermost;  ///< Of this thread, whosoever events they are.
    /// The turn of `events` that a thread is in whose innermost turn is `turn`. Null: in none, or outside for a while.
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
  };

  /// Around what leads out of the composite protocol. Whoever is called there may block, and see to other messages in
  /// the same thread meanwhile: those do not belong to the turn that has led there.
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
  struct Deferred {
    template <class... Arguments>
    explicit Deferred(const Arguments&... arguments) noexcept : what(arguments...) {}
    Waiting what;
    Deferred* next = nullptr;
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
  struct TimerKey {
    TimerId id = 0;
    [[nodiscard]] std::uint64_t hash() const noexcept { return mix(0, id); }
    friend bool operator==(TimerKey, TimerKey) = default;
  };
  [[nodiscard]] TimerId begin(Timer* timer) noexcept;
  void expired(Timer& timer) noexcept;
  void defer(Deferred& later) noexcept;
  void run_deferred(Turn& turn) noexcept;

  Host& host_;
  std::map<std::string, std::unique_ptr<EventBase>, std::less<>> events_;
  Cells<Deferred> deferred_;
  Cells<Timer> timers_;
  Map<TimerKey, Timer*> waiting_timers_;
  TimerId last_timer_ = 0;
  std::uint64_t raised_ = 0;
  std::uint64_t activations_ = 0;
};

}  // namespace lrpc::netrpc::composite
