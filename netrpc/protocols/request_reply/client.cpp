// The client's end.
#include "lrpc/netrpc/session_cache.h"
#include "netrpc/protocols/request_reply/protocol.h"
#include "netrpc/src/dropped.h"

namespace lrpc::netrpc::request_reply {

ClientEnd::ClientEnd(RequestReplyProtocol& protocol, Protocol& high, const ParticipantSet& participants,
                     SessionRef lower)
    : Session(protocol, high, participants),
      lower_(std::move(lower)),
      round_trip_(protocol.options_.initial_timeout, protocol.options_.minimum_timeout,
                  protocol.options_.minimum_timeout, protocol.options_.longest_timeout),
      timer_([this] { expired(); }) {
  ++protocol.clients_;
}

ClientEnd::~ClientEnd() {
  let_go();
  --owner().clients_;
}

RequestReplyProtocol& ClientEnd::owner() const noexcept { return static_cast<RequestReplyProtocol&>(protocol()); }

void ClientEnd::call(Message request, Transaction& transaction, Duration timeout) noexcept {
  if (timeout <= Duration::zero()) return transaction.completed(Errc::call_aborted, {});
  RequestReplyProtocol& all = owner();
  if (transaction_ != nullptr) return transaction.completed(Errc::limit_reached, {});
  if (request.pool() == nullptr) request = Message(all.host().pool());
  std::byte* const to = request.push(Header::kSize);
  if (to == nullptr) return transaction.completed(Errc::limit_reached, {});
  let_go();
  // After 2^32 calls the numbers repeat: skip those whose calls are still under way.
  while (all.calls_.resolve(++all.last_xid_) != nullptr) {
  }
  xid_ = all.last_xid_;
  Header{xid_, Type::call}.encode(to);
  const SessionRef keep(this);  // completed() may drop the last other reference
  transaction_ = &transaction;
  request_ = std::move(request);
  sent_ = pauses_ = 0;
  left_ = false;
  sent_at_ = all.host().now();
  aborts_ = timeout < all.options_.give_up;
  deadline_ = sent_at_ + (aborts_ ? timeout : all.options_.give_up);
  all.calls_.bind(xid_, this);
  repeat_later();
  const std::uint32_t xid = xid_;
  const Errc outcome = transmit();
  // Other errors count as a loss: the timer sends the request again. These two would only come again.
  if ((outcome == Errc::message_too_long || outcome == Errc::host_unreachable) && transaction_ != nullptr &&
      xid_ == xid)
    fail(outcome);
}

Errc ClientEnd::transmit() noexcept {
  Message copy = request_.share();
  if (!copy.allocated()) return Errc::limit_reached;
  ++sent_;
  ++(sent_ == 1 ? owner().counted.sent : owner().counted.retransmissions);
  const Errc outcome = lower_->push(std::move(copy));
  left_ = left_ || outcome != Errc::limit_reached;
  sent_by_ = outcome == Errc::ok ? connection() : 0;
  return outcome;
}

/// The number of the layer below's connection, which loses nothing unless it ends; 0: there is none. A layer without
/// connections is asked once.
std::uint64_t ClientEnd::connection() noexcept {
  if (!connects_) return 0;
  control::Connection connection;
  connects_ = control::ask(*lower_, connection) == Errc::ok;
  return connection.number;
}

void ClientEnd::repeat_later() noexcept {
  const Time now = protocol().host().now();
  due_ = now + RetryTimer::pause_after(pauses_++, round_trip_.timeout(), owner().options_.longest_timeout);
  arm(now);
}

void ClientEnd::arm(Time now) noexcept { timer_.run_by(protocol().host().events(), now, std::min(due_, deadline_)); }

void ClientEnd::expired() noexcept {
  if (transaction_ == nullptr) return;
  const SessionRef keep(this);
  const Time now = protocol().host().now();
  if (now >= deadline_) return fail(!left_ ? Errc::limit_reached : aborts_ ? Errc::call_aborted : Errc::call_failed);
  if (now < due_) return arm(now);
  repeat_later();
  // What a connection has taken arrives, unless the connection ends: a copy would be executed as well (RFC 5531 §4).
  if (sent_by_ != 0 && sent_by_ == connection()) return;
  const std::uint32_t xid = xid_;
  // The link carries less than before. An earlier copy may be executed.
  if (transmit() == Errc::message_too_long && transaction_ != nullptr && xid_ == xid) fail(Errc::call_lost);
}

void ClientEnd::pop(Session& lower, Message&& reply) noexcept {
  if (&lower != lower_.get()) return dropped(owner().counted.refused);  // another host's, by chance or by intent
  if (transaction_ == nullptr) {  // the second reply to the last call: neither copy had been lost
    ++owner().counted.duplicates;
    round_trip_.needless(took_, true);
    return let_go();
  }
  ++owner().counted.received;
  const SessionRef keep(this);
  took_ = protocol().host().now() - sent_at_;
  // Of several copies it is not known which one was answered (Karn).
  sent_ == 1 ? round_trip_.sample(took_) : round_trip_.ambiguous();
  if (sent_ == 1) owner().calls_.unbind(xid_);
  end(Errc::ok, std::move(reply));
}

void ClientEnd::lost(Session& lower) noexcept {
  if (&lower != lower_.get() || transaction_ == nullptr) return dropped(owner().counted.refused);
  const SessionRef keep(this);
  fail(Errc::call_lost);
}

/// From now on replies to the present call are dropped, and a second reply to the last call, too.
void ClientEnd::let_go() noexcept { owner().calls_.unbind(xid_, this); }

void ClientEnd::cancel(Transaction& transaction) noexcept {
  if (transaction_ != &transaction) return;
  transaction_ = nullptr;
  request_.clear();
  let_go();
}

void ClientEnd::fail(Errc outcome) noexcept {
  let_go();
  end(outcome, {});
}

void ClientEnd::end(Errc outcome, Message&& reply) noexcept {
  request_.clear();
  if (outcome == Errc::call_failed || outcome == Errc::call_aborted || outcome == Errc::call_lost)
    ++owner().counted.failed;
  std::exchange(transaction_, nullptr)->completed(outcome, std::move(reply));
}

Errc ClientEnd::control(control::Request& request) noexcept {
  if (auto* const round_trip = std::get_if<control::RoundTrip>(&request)) {
    if (round_trip_.measured()) *round_trip = {round_trip_.smoothed(), round_trip_.timeout()};
    return Errc::ok;
  }
  if (std::holds_alternative<control::FreedByCancel>(request)) return Errc::ok;
  return less_header(lower_->control(request), request, Header::kSize);
}

}  // namespace lrpc::netrpc::request_reply
