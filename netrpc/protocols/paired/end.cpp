// What both ends of a channel have in common.
#include "lrpc/netrpc/session_cache.h"
#include "netrpc/protocols/paired/protocol.h"
#include "netrpc/src/header_room.h"

namespace lrpc::netrpc::paired {

End::End(PairedProtocol& protocol, Protocol& high, const ParticipantSet& participants, SessionRef lower,
         std::shared_ptr<OfHost> of_host, std::uint16_t from)
    : Session(protocol, high, participants),
      lower_(std::move(lower)),
      of_host_(std::move(of_host)),
      from_(from),
      round_trip_(protocol.options_.initial_timeout, protocol.options_.minimum_timeout,
                  protocol.options_.minimum_timeout, protocol.options_.longest_timeout),
      timer_([this] {
        const SessionRef keep(this);
        expired();
      }) {
  ask_size();
}

End::~End() {
  if (full_) paired().emptied(*this);
}

void End::ask_size() noexcept {
  path_changes_.look(protocol().host().peers(), peer());
  control::OptimumMessage uncut;
  if (control::ask(*lower_, uncut) != Errc::ok) return;
  segment_ = std::clamp(uncut.size - std::min(uncut.size, Header::kSize), kLeastSegment, kSegment);
}

// ---- down ----

bool End::begin(Message&& message) noexcept {
  if (path_changes_.noticed(protocol().host().peers(), peer())) [[unlikely]]
    ask_size();
  const std::size_t segments = message.empty() ? 1 : (message.size() + segment_ - 1) / segment_;
  sending_.begin(static_cast<std::uint16_t>(segments));
  rest_ = std::move(message);
  if (next_segment()) return true;
  sending_.stop();
  let_go_of_sent();
  return false;
}

bool End::next_segment() noexcept {
  if (sending_.last()) {
    present_ = std::move(rest_);
    return true;
  }
  present_ = rest_.split(segment_);
  return present_.size() == segment_;
}

Errc End::transmit() noexcept {
  if (!sending_.resent()) {
    sent_at_ = protocol().host().now();
    silence_.begins(sent_at_);
  }
  Message segment = present_.share();
  if (segment.size() != present_.size()) return Errc::limit_reached;  // it counts as lost
  return push_segment(std::move(segment), sending_.control(), sending_.segment());
}

Errc End::push_segment(Message message, std::uint16_t control, std::uint16_t segment) noexcept {
  if (message.pool() == nullptr) message = Message(protocol().host().pool());
  Header header;
  header.control = control | from_;
  header.segment = segment;
  header.call_number = call_;
  header.conversation = conversation_;
  header.protocol = participants().protocol;
  header.channel = participants().remote.channel;
  header.length = static_cast<std::uint16_t>(message.size());
  if (!push_header(header, message)) return Errc::limit_reached;  // as above
  ++paired().counted.sent;
  return lower_->push(std::move(message));
}

/// The present segment has been acknowledged. Only a segment that was sent once (Karn), and whose acknowledgement was
/// due at once, gives a measurement.
void End::measure() noexcept {
  if (patience_ != Duration(0)) return;
  sending_.resent() ? round_trip_.ambiguous() : round_trip_.sample(protocol().host().now() - sent_at_);
}

// ---- up ----

void End::arrived(const Header& header, Message&& message) noexcept {
  if (header.data()) return data(header, std::move(message));
  if (header.has(bits::kProbe)) {
    if (!header.has(bits::kAck)) return send(bits::kProbe | bits::kAck);
    probing_.acknowledged(paired().options_.longest_probe);
    return wait();
  }
  if (sending_.active() && header.segment == sending_.segment()) measure();
  if (sending_.active() && header.segment + 1 == sending_.segment())  // the peer has not taken the present one
    silence_.ends(protocol().host().now(), paired().repeats());
  const Sending::Next next = sending_.acknowledged(header.segment);
  if (next == Sending::Next::wait) return;
  if (next == Sending::Next::sent) {
    let_go_of_sent();
    probing_.begin(paired().options_.probe);
    sent();
  } else if (!next_segment() || transmit() == Errc::message_too_long) {
    return lost();
  }
  wait();
}

void End::data(const Header& header, Message&& message) noexcept {
  if (full_ && !deliver()) return;
  const Receiving::Verdict verdict = receiving_.arrived(header, full_);
  if (verdict.take) {
    buffer_ = std::move(message);
    buffer_.fit();
    full_ = true;
    paired().filled(*this);
    expecting_ = !receiving_.complete();
    probing_.begin(paired().options_.probe);
    wait();
  } else {
    ++paired().counted.duplicates;
  }
  if (verdict.acknowledge) send(bits::kAck, receiving_.last());
  if (!verdict.take) return;
  // A client that has just given back its reply's room and calls again must not get it before those that wait for it.
  if (receiving_.complete() && paired().some_wait(*of_host_)) return paired().deliver_soon(*of_host_);
  deliver();
}

/// Does what the paper's user does: takes the segment out of the receive buffer (§3.3).
bool End::deliver() noexcept {
  if (!full_) return true;
  if (receiving_.complete() && !may_receive()) return true;
  const bool only = receiving_.complete() && receiving_.last() == 1;
  if (!only && !paired().take_room(*this)) return true;
  if (!gathered_.allocated()) {
    gathered_ = std::move(buffer_);
  } else if (!gathered_.append(std::move(buffer_))) {
    return lost(), false;
  }
  paired().emptied(*this);
  if (gathered_.size() > paired().options_.max_message) return lost(), false;
  if (!receiving_.complete()) return true;
  Message whole = std::move(gathered_);
  let_go_of_received();
  received(std::move(whole));
  return false;
}

void End::let_go_of_received() noexcept {
  buffer_.clear();
  paired().emptied(*this);
  expecting_ = false;
  gathered_.clear();
  paired().give_room(*this);
}

// ---- time ----

void End::wait() noexcept {
  const Time now = protocol().host().now();
  due_ = Time::max();
  if (sending_.active()) {
    // The pause doubles with each timeout: two steps, because pause_after() doubles with every second one.
    due_ = now + RetryTimer::pause_after(2 * sending_.resends(), std::max(round_trip_.timeout(), patience_),
                                         paired().options_.longest_timeout);
  } else if (expecting_) {
    due_ = now + probing_.interval();
  }
  arm(now);
}

void End::expired() noexcept {
  const Time now = protocol().host().now();
  if (now < due_) return arm(now);
  const unsigned most = paired().options_.max_retry;
  if (sending_.active()) {
    if (sending_.expired(most) == Sending::Next::failed) return broken();
    ++paired().counted.retransmissions;
    if (transmit() == Errc::message_too_long) return lost();
  } else if (expecting_) {
    if (probing_.expired(most) == Probing::Next::failed) return broken();
    send(bits::kProbe);
  }
  wait();
}

Errc End::control(control::Request& request) noexcept {
  if (control::answered(request, control::RoundTrip{round_trip_.smoothed(), round_trip_.timeout()})) return Errc::ok;
  if (std::holds_alternative<control::Authenticated>(request) && lower_) return lower_->control(request);
  return Session::control(request);
}

}  // namespace lrpc::netrpc::paired
