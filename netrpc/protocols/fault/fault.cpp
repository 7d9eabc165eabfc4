#include "netrpc/protocols/fault/fault.h"

#include <memory>
#include <utility>
#include <vector>

#include "lrpc/netrpc/host.h"
#include "netrpc/src/attempt.h"
#include "netrpc/src/dropped.h"
#include "transparent_layer.h"

namespace lrpc::netrpc {

namespace {

class Fault final : public TransparentProtocol {
 public:
  explicit Fault(const InstanceParts& parts)
      : TransparentProtocol(parts.host, parts.name, *parts.below.front()),
        loss_(parts.options.rate("loss", 0)),
        duplicate_(parts.options.rate("duplicate", 0)),
        reorder_(parts.options.rate("reorder", 0)),
        corrupt_(parts.options.rate("corrupt", 0)),
        delay_(parts.options.duration("delay", {})),
        hold_(parts.options.duration("hold", std::chrono::milliseconds(1))),
        on_push_(parts.options.text("on") != "demux"),  // not given: both
        on_demux_(parts.options.text("on") != "push"),
        most_(parts.options.number("most", 1024)),
        state_(parts.options.number("seed", 0)) {
    if (state_ == 0) state_ = parts.host.random();
  }

  Errc pass_push(TransparentSession& session, Message message) noexcept override {
    if (!on_push_) return TransparentProtocol::pass_push(session, std::move(message));
    disturb(session, std::move(message), Direction::push);
    return Errc::ok;  // that a message was sent says nothing about its arrival
  }
  void pass_demux(TransparentSession& session, Message message) noexcept override {
    if (!on_demux_) return TransparentProtocol::pass_demux(session, std::move(message));
    disturb(session, std::move(message), Direction::demux);
  }
  void pass_call(TransparentSession& session, Message request, Transaction& transaction,
                 Duration timeout) noexcept override {
    if (on_push_ && chance(loss_)) {
      ++counted.refused;
      return transaction.completed(Errc::call_failed, {});
    }
    if (!on_push_ || delay_ <= Duration::zero())
      return TransparentProtocol::pass_call(session, std::move(request), transaction, timeout);
    Held* const held = hold(session, std::move(request), Direction::call, delay_);
    if (held == nullptr) return transaction.completed(Errc::limit_reached, {});
    held->transaction = &transaction;
    held->timeout = timeout;
    // Its timeout passes before it is sent.
    if (timeout <= delay_) host().events().schedule(held->due, timeout);
  }
  void pass_cancel(TransparentSession& session, Transaction& transaction) noexcept override {
    for (const std::unique_ptr<Held>& held : all_) {
      if (held->transaction != &transaction || held->session.get() != &session) continue;
      return release(*held);
    }
    TransparentProtocol::pass_cancel(session, transaction);
  }
  Errc control(control::Request& request) noexcept override {
    counted.state = held_;
    return TransparentProtocol::control(request);
  }

 private:
  enum class Direction : unsigned char { push, demux, call };
  /// A message that is passed on later. The object is used again.
  struct Held {
    explicit Held(Fault& fault) : due([&fault, this] { fault.go_on(*this); }) {}
    Event due;
    SessionRef session;
    Message message;
    Direction direction = Direction::push;
    Transaction* transaction = nullptr;
    Duration timeout{};
    Held* next_free = nullptr;
  };

  [[nodiscard]] std::uint64_t random() noexcept {  // xorshift64*
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1dULL;
  }
  [[nodiscard]] bool chance(double rate) noexcept {
    return rate > 0 && static_cast<double>(random() >> 11) * 0x1p-53 < rate;
  }

  /// The draws are made in the same order for every message, so that one seed gives one run.
  void disturb(TransparentSession& session, Message message, Direction direction) noexcept {
    if (chance(loss_)) return dropped(counted.refused);
    if (chance(duplicate_)) {
      Message copy = message.share();
      if (copy.size() == message.size()) {
        ++counted.duplicates;
        deliver(session, std::move(copy), direction);
      }
    }
    deliver(session, std::move(message), direction);
  }

  void deliver(TransparentSession& session, Message message, Direction direction) noexcept {
    if (chance(corrupt_)) message = corrupted(std::move(message));
    Duration delay = delay_;
    if (chance(reorder_)) delay += hold_;
    if (delay > Duration::zero()) return (void)hold(session, std::move(message), direction, delay);
    pass(session, std::move(message), direction);
  }

  void pass(TransparentSession& session, Message message, Direction direction) noexcept {
    if (direction == Direction::push)
      (void)TransparentProtocol::pass_push(session, std::move(message));
    else
      TransparentProtocol::pass_demux(session, std::move(message));
  }

  /// Flips one bit, in a copy of its byte: others may share the message's bytes, to send them again.
  Message corrupted(Message message) noexcept {
    if (message.empty()) return message;
    const std::size_t at = random() % message.size();
    const auto bit = static_cast<std::byte>(1U << random() % 8);
    BufferPool& pool = host().pool();
    Message damaged = message.split(at);
    std::byte scratch;
    const std::byte* const original = message.pop(1, &scratch);
    if (original == nullptr || damaged.size() != at) return message;
    const std::byte changed = *original ^ bit;
    if (!damaged.append(Message::copy_of(pool, {&changed, 1})) || !damaged.append(std::move(message))) return damaged;
    ++counted.malformed;
    return damaged;
  }

  Held* hold(TransparentSession& session, Message message, Direction direction, Duration delay) noexcept {
    if (free_ == nullptr && held_ != most_)
      attempt([&] {
        all_.push_back(std::make_unique<Held>(*this));
        all_.back()->next_free = std::exchange(free_, all_.back().get());
      });
    if (free_ == nullptr || held_ == most_) return dropped(counted.refused, nullptr);
    Held& held = *std::exchange(free_, free_->next_free);
    ++held_;
    held.session = SessionRef(&session);
    held.message = std::move(message);
    held.direction = direction;
    held.transaction = nullptr;
    held.timeout = {};
    host().events().schedule(held.due, delay);
    return &held;
  }

  void release(Held& held) noexcept {
    host().events().cancel(held.due);
    held.message = {};
    held.transaction = nullptr;
    held.next_free = std::exchange(free_, &held);
    --held_;
    const SessionRef session = std::exchange(held.session, {});  // last: destroying the session may call back here
  }

  void go_on(Held& held) noexcept {
    const SessionRef keep = held.session;
    auto& session = static_cast<TransparentSession&>(*keep);
    Message message = std::move(held.message);
    Transaction* const transaction = held.transaction;
    const Direction direction = held.direction;
    const Duration timeout = held.timeout;
    release(held);
    if (direction != Direction::call) {
      pass(session, std::move(message), direction);
    } else if (timeout <= delay_) {
      ++counted.failed;
      transaction->completed(Errc::call_aborted, {});
    } else {
      TransparentProtocol::pass_call(session, std::move(message), *transaction,
                                     timeout == kNoLimit ? timeout : timeout - delay_);
    }
  }

  const double loss_;
  const double duplicate_;
  const double reorder_;
  const double corrupt_;
  const Duration delay_;
  const Duration hold_;
  const bool on_push_;
  const bool on_demux_;
  const std::size_t most_;
  std::uint64_t state_;
  std::vector<std::unique_ptr<Held>> all_;
  Held* free_ = nullptr;
  std::size_t held_ = 0;
};

}  // namespace

ProtocolKind fault_kind() {
  return {.name = "FAULT",
          .summary = "loses, doubles, reorders, delays and damages what goes through it",
          .transparent = true,
          .below = {{"the protocol to spoil", Service::datagram}},
          .options = {{"loss", OptionType::rate, "of messages that are lost, of calls that fail; 0", false},
                      {"duplicate", OptionType::rate, "of messages that are doubled; 0", false},
                      {"reorder", OptionType::rate, "of messages that are held for `hold` more; 0", false},
                      {"corrupt", OptionType::rate, "of messages in which one bit is flipped; 0", false},
                      {"delay", OptionType::duration, "of every message and call; 0ns", false},
                      {"hold", OptionType::duration, "how much later a reordered message goes on; 1ms", false},
                      {"on", OptionType::text, "push, demux or both; both", false},
                      {"seed", OptionType::number, "of the random choices; 0: from the host's", false},
                      {"most", OptionType::number, "messages held at a time; 1024", false}},
          .make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
            const std::string on = parts.options.text("on", "both");
            if (on != "push" && on != "demux" && on != "both")
              return Error{Errc::invalid_argument,
                           "'" + on + "' is no value for the option 'on', write push, demux or both"};
            return std::make_unique<Fault>(parts);
          }};
}

}  // namespace lrpc::netrpc
