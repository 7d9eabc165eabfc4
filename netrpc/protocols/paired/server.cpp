// The server's end: receives a request, sends its reply.
#include "netrpc/protocols/paired/protocol.h"

namespace lrpc::netrpc::paired {

void ServerEnd::pop(const Header& header, Message&& message) noexcept {
  const SessionRef keep(this);
  used = true;
  const std::int32_t newer = fresh_ ? 1 : ahead(header.call_number, call_);
  if (newer > 0 && header.data() && header.segment == 1) {
    // The previous request has not been answered: drop this one, as if the receive buffer were full.
    if (executing_) return;
    // The new request acknowledges the reply to the previous one (§2.5).
    sending_.stop();
    let_go_of_reply();
    let_go_of_received();
    call_ = header.call_number;
    fresh_ = lost_ = false;
    moved_ = true;
    receiving_.begin();
    return arrived(header, std::move(message));
  }
  if (newer != 0 || lost_) {
    ++paired().counted.duplicates;
    if (newer == 0 && !header.has(bits::kAck)) send(bits::kLost);
    return;
  }
  if (header.data() && header.has(bits::kPleaseAck) && sending_.active() && sending_.segment() == 1) {
    // The client repeats its request because it lacks the reply. The reply's first segment acknowledges the request,
    // too.
    ++paired().counted.duplicates;
    ++paired().counted.retransmissions;
    sending_.again();
    if (transmit() == Errc::message_too_long) lost();
    return;
  }
  moved_ = moved_ || header.data();
  arrived(header, std::move(message));
}

bool ServerEnd::may_receive() noexcept { return paired().has_room_for_reply(*of_host_); }

void ServerEnd::received(Message&& request) noexcept {
  executing_ = true;
  hold(std::max(PairedProtocol::kCost, of_host_->likely));
  high().call_demux(*this, std::move(request));
}

void ServerEnd::reply(Message message) noexcept {
  if (!executing_) return;
  executing_ = false;
  const SessionRef keep(this);
  const std::size_t kept_free = kept_;
  hold(0);
  if (message.size() > paired().options_.max_message) return lost();
  const std::size_t cost = message.footprint();
  of_host_->replied(cost);
  // A reply that takes more than was reserved for it may exceed the limits if they are not reached yet. Otherwise it is
  // lost.
  if (cost > kept_free && !paired().has_room_for_reply(*of_host_)) return lost();
  hold(cost);
  moved_ = true;
  if (!begin(std::move(message))) return lost();
  patience_ = sending_.last() ? paired().options_.reply_timeout : Duration(0);
  wait();
  if (transmit() == Errc::message_too_long) lost();
}

Errc ServerEnd::control(control::Request& request) noexcept {
  if (!std::holds_alternative<control::Refuse>(request)) return End::control(request);
  if (std::exchange(executing_, false)) lost();
  return Errc::ok;
}

void ServerEnd::broken() noexcept {
  sending_.stop();
  let_go_of_reply();
  let_go_of_received();
  lost_ = true;
  due_ = Time::max();
}

void ServerEnd::hold(std::size_t bytes) noexcept {
  const std::size_t before = std::exchange(kept_, bytes);
  paired().kept_bytes_ += bytes - before;
  of_host_->kept += bytes - before;
  if (bytes < before) paired().deliver_soon(*of_host_);
}

}  // namespace lrpc::netrpc::paired
