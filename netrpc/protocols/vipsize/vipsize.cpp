#include "netrpc/protocols/vipsize/vipsize.h"

#include <utility>

#include "netrpc/protocols/vip/virtual_protocol.h"
#include "netrpc/src/header_room.h"
#include "netrpc/src/way.h"

namespace lrpc::netrpc {

namespace {

class VipSizeProtocol final : public vip::VirtualProtocol {
 public:
  VipSizeProtocol(Host& host, std::string name, Protocol& small_messages, Protocol& large_messages,
                  const VipSizeOptions& options)
      : VirtualProtocol(host, std::move(name), options.sessions, options.idle),
        small(small_messages),
        large(large_messages) {}

  Protocol& small;
  Protocol& large;

  using VirtualProtocol::recognise;

 private:
  vip::VirtualSession* make_session(Protocol& high, const ParticipantSet& participants, const PeerKey& key) override;
  Status enable_below(ProtocolNumber number) override {
    if (auto enabled = small.open_enable(*this, {number, {}, {}}); !enabled) return enabled;
    auto enabled = large.open_enable(*this, {number, {}, {}});
    if (!enabled) small.open_disable(*this, {number, {}, {}});
    return enabled;
  }
  void disable_below(ProtocolNumber number) noexcept override {
    small.open_disable(*this, {number, {}, {}});
    large.open_disable(*this, {number, {}, {}});
  }
  Errc control_below(control::Request& request) noexcept override {
    if (auto* const advertised = std::get_if<control::AdvertisedMaximum>(&request)) {
      // VIPaddr asks this. What `small` does not carry uncut goes through `large`.
      advertised->size = control::carried_uncut(small);
      return advertised->size != 0 ? Errc::ok : Errc::not_supported;
    }
    if (std::holds_alternative<control::MaximumMessage>(request)) return large.control(request);
    return small.control(request);
  }
};

class VipSizeSession final : public vip::VirtualSession {
 public:
  using VirtualSession::VirtualSession;

  Errc push(Message message) noexcept override {
    used = true;
    look_at_small();
    if (message.size() < small_bound_) [[likely]]
      return message.size() <= kSurelyCarried ? push_small(std::move(message)) : push_shrinking(std::move(message));
    return push_slowly(std::move(message));
  }
  Errc control(control::Request& request) noexcept override {
    look_at_small();
    if (std::holds_alternative<control::MaximumMessage>(request)) {
      if (open_large() == Errc::ok) return large_->control(request);
      return small_ ? small_->control(request) : Errc::host_unreachable;
    }
    if (small_bound_ != 0 && control::answered(request, control::OptimumMessage{small_bound_ - 1})) return Errc::ok;
    if (std::holds_alternative<control::OptimumMessage>(request) ||
        std::holds_alternative<control::LocalHost>(request) || std::holds_alternative<control::RoundTrip>(request)) {
      Session* const lower = large_ ? large_.get() : small_.get();
      return lower != nullptr ? lower->control(request) : Errc::host_unreachable;
    }
    return Session::control(request);
  }
  /// A host that opens gets both lower sessions. A host that was only spoken to opens the other one when its answer
  /// needs it: most peers send only small messages.
  Errc choose() override {
    if (passive_) return Errc::ok;
    const Errc small = open_small();
    const Errc large = open_large();
    return large_ || small_ ? Errc::ok : large != Errc::ok ? large : small;
  }
  void attach(Session& lower) override {
    if (!small_ && !large_) passive_ = true;
    if (&lower.protocol() == &vipsize().large) {
      large_.take(SessionRef(&lower));
    } else if (!small_) {
      small_.take_from_peer(SessionRef(&lower));
      ask_bound();
    } else {
      small_.hear(lower);
    }
  }

 private:
  void swept() noexcept override { follow_small(); }
  [[nodiscard]] VipSizeProtocol& vipsize() const noexcept { return static_cast<VipSizeProtocol&>(protocol()); }
  [[nodiscard]] Errc open_small() {
    if (small_) return Errc::ok;
    if (!peer().known()) return Errc::host_unreachable;
    if (const Errc outcome = small_.open(vipsize().small, participants()); outcome != Errc::ok) return outcome;
    ask_bound();
    return Errc::ok;
  }
  [[nodiscard]] Errc open_large() {
    if (large_) return Errc::ok;
    if (!peer().known() && !vipsize().recognise(*this))
      return Errc::message_too_long;  // only the session that it came by leads there
    return large_.open(vipsize().large, participants());
  }
  [[nodiscard]] Errc push_small(Message message) noexcept {
    const Errc outcome = small_->push(std::move(message));
    if (outcome == Errc::host_unreachable || outcome == Errc::message_too_long) [[unlikely]] {
      small_bound_ = 0;  // the next message opens the session for small messages again
      small_.leave();
    }
    return outcome;
  }
  /// The small session may carry less than when it was asked. Then the message goes through the large one.
  [[nodiscard]] Errc push_shrinking(Message message) noexcept {
    Message large = message.share();
    const Errc outcome = push_small(std::move(message));
    if (outcome != Errc::message_too_long || !large.allocated()) return outcome;
    return open_large() == Errc::ok ? large_->push(std::move(large)) : outcome;
  }
  [[nodiscard]] Errc push_slowly(Message message) noexcept {
    if (!small_ && open_small() == Errc::ok && message.size() < small_bound_) return small_->push(std::move(message));
    if (const Errc outcome = open_large(); outcome != Errc::ok) return outcome;
    return large_->push(std::move(message));
  }
  void ask_bound() { small_bound_ = control::carried_uncut(*small_) + 1; }
  /// If paths have changed, the small session may be another one, and carry less, or more.
  void look_at_small() noexcept {
    if (small_.changed()) [[unlikely]]
      follow_small();
  }
  void follow_small() noexcept {
    if (!small_) return;
    // If no path leads there now, the session keeps its present lower session.
    if (peer().known()) (void)small_.open(vipsize().small, participants());
    ask_bound();
  }

  Way small_{*this};  ///< VIPaddr enables the Ethernet and IP: messages may arrive by both.
  Way large_{*this};
  std::size_t small_bound_ = 0;  ///< Messages shorter than this go through small_; 0: it is not open.
  bool passive_ = false;
};

vip::VirtualSession* VipSizeProtocol::make_session(Protocol& high, const ParticipantSet& participants,
                                                   const PeerKey& key) {
  return new VipSizeSession(*this, high, participants, key);
}

}  // namespace

Result<std::unique_ptr<Protocol>> make_vipsize(Host& host, std::string name, Protocol& small, Protocol& large,
                                               const VipSizeOptions& options) {
  if (options.sessions == 0 || options.idle <= Duration::zero())
    return Error{Errc::invalid_argument, "sessions and idle must be more than nothing"};
  return std::make_unique<VipSizeProtocol>(host, std::move(name), small, large, options);
}

ProtocolKind vipsize_kind() {
  return {.name = "VIPSIZE",
          .summary = "small messages by one protocol, large ones by another; no header",
          .below = {{"the protocol for small messages", Service::datagram},
                    {"the protocol for large messages", Service::datagram}},
          .options = {{"sessions", OptionType::number, "sessions at once (4096)"},
                      {"idle", OptionType::duration, "after which an unused session is dropped (60s)", false, "1ms"}},
          .make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
            VipSizeOptions options;
            options.sessions = parts.options.number("sessions", options.sessions);
            options.idle = parts.options.duration("idle", options.idle);
            return make_vipsize(parts.host, parts.name, *parts.below[0], *parts.below[1], options);
          }};
}

}  // namespace lrpc::netrpc
