// The client's half of CHANNEL.
#include "lrpc/netrpc/session_cache.h"
#include "netrpc/protocols/channel/protocol.h"
#include "netrpc/src/dropped.h"

namespace lrpc::netrpc::channel {

namespace flags = channel_flags;

namespace {
/// After this many unanswered questions a large request is sent again all the same, unless the server has answered a
/// question in this life: older servers do not know questions.
constexpr std::uint8_t kQuestions = 3;
}  // namespace

ClientChannel::ClientChannel(ChannelProtocol& protocol, Protocol& high, const ParticipantSet& participants,
                             ChannelPeer& peer, std::uint64_t sequence)
    : Session(protocol, high, participants), peer_(peer), sequence_(sequence), timer_([this] { expired(); }) {
  place = peer.clients.size();
  peer.clients.push_back(this);
  try {
    protocol.clients_.bind(protocol.key_of(*this, peer), this);
  } catch (...) {
    peer.clients.pop_back();
    throw;
  }
}

void ClientChannel::unreferenced() noexcept {
  // This cancels an outstanding call. The channel number may be used again at once: the next request has a higher
  // sequence number, and the server accepts it only when it has finished this one.
  channels().closed(*this, peer_, sequence_);
  delete this;
}

ChannelProtocol& ClientChannel::channels() const noexcept { return static_cast<ChannelProtocol&>(protocol()); }

void ClientChannel::call(Message request, Transaction& transaction, Duration timeout) noexcept {
  if (timeout <= Duration::zero()) return transaction.completed(Errc::call_aborted, {});
  if (state_ != State::idle) return transaction.completed(Errc::limit_reached, {});
  peer_.look_at_sizes(channels().options_);
  if (request.size() + ChannelHeader::kSize > peer_.maximum) return transaction.completed(Errc::message_too_long, {});
  if (request.pool() == nullptr) request = Message(channels().host().pool());
  const SessionRef keep(this);  // completed() may drop the last other reference
  ++sequence_;
  transaction_ = &transaction;
  again_ = 0;
  const Time now = channels().host().now();
  sent_ = now;
  silence_.begins(now);
  deadline_ = deadline_after(now, timeout);
  if (peer_.boot_id != 0) [[likely]]
    return start(std::move(request));

  // The first call to this host: a request must name the life it is meant for.
  request_ = std::move(request);
  state_ = State::querying;
  unheard_ = Errc::limit_reached;
  interval_ = peer_.round_trip.timeout(0, {});
  send_due_ = now + interval_;
  arm(now);
  (void)query();  // if it fails, the layer below may know another path next time
}

Errc ClientChannel::query() noexcept {
  const Errc sent = send(flags::kBootQuery);
  if (sent != Errc::limit_reached) unheard_ = Errc::host_unreachable;
  return sent;
}

/// Sends the request for the first time. The caller keeps the session alive.
void ClientChannel::start(Message&& request) noexcept {
  const std::size_t more = peer_.more_packets(request.size());
  // The kept share has its header, so that every copy is the same. (The header is pushed before the bytes are shared:
  // then there is room in front of them.)
  if (!push_header(flags::kRequest, request)) return finish(Errc::limit_reached, {});
  request_ = request.share();
  if (request_.size() != request.size()) return finish(Errc::limit_reached, {});
  state_ = State::waiting;
  life_ = peer_.boot_id;
  more_in_request_ = more;
  control::RoundTrip below;
  if (more + more_in_reply_ != 0) [[unlikely]]
    (void)control::ask(*peer_.lower, below);
  interval_ = peer_.round_trip.timeout(more + more_in_reply_, below);
  asking_after_ = more == 0 ? interval_ : peer_.round_trip.until_asked(more + more_in_reply_);
  requested_ = sent_;
  asked_ = 0;
  one_question_ = true;
  lacking_ = lacked_ = ambiguous_ = false;
  resent_ = 0;
  send_due_ = sent_ + asking_after_;
  arm(sent_);
  const std::uint64_t sequence = sequence_;
  ++channels().counted.sent;
  const Errc outcome = peer_.lower->push(std::move(request));
  // If the request is lost, the timer sends it again. If it can never be sent, the call ends now.
  if (outcome != Errc::message_too_long && outcome != Errc::host_unreachable) [[likely]]
    return;
  if (state_ == State::waiting && sequence_ == sequence) finish(outcome, {});
}

/// Sends a packet without data. Most callers ignore errors: a packet that cannot be sent counts as lost.
Errc ClientChannel::send(std::uint16_t flag) noexcept {
  Message message(channels().host().pool());
  if (!push_header(flag, message)) return Errc::limit_reached;
  ++channels().counted.sent;
  return peer_.lower->push(std::move(message));
}

void ClientChannel::arm(Time now) noexcept {
  timer_.run_by(channels().host().events(), now, std::min(send_due_, deadline_));
}

void ClientChannel::expired() noexcept {
  if (state_ == State::idle) return;
  const SessionRef keep(this);
  const Time now = channels().host().now();
  if (now >= deadline_ && transaction_ != nullptr) {
    Transaction& transaction = *transaction_;
    ++channels().counted.failed;
    cancel(transaction);
    if (state_ != State::idle) arm(now);
    return transaction.completed(Errc::call_aborted, {});
  }
  silence_.timer_came(now, timer_.due());
  if (now < send_due_) return arm(now);
  if (now >= silence_.lasts_until(channels().options_.give_up))
    // While querying, nothing has been sent that the peer could have executed.
    return finish(state_ == State::querying ? unheard_ : Errc::call_failed, {});
  // While the server executes the request, probes are not urgent: the pause is doubled each time.
  again_ = static_cast<std::uint8_t>(std::min(again_ + (state_ == State::executing ? 2 : 1), 254));
  const Duration first = state_ == State::querying ? interval_
                         : more_in_request_ != 0   ? answered_after()
                                                   : asking_after_;
  send_due_ = now + RetryTimer::pause_after(again_, first, channels().options_.longest_pause());
  arm(now);
  send_again(now);
}

void ClientChannel::send_again(Time now) noexcept {
  ambiguous_ = true;
  ++channels().counted.retransmissions;
  if (state_ == State::querying) {
    // Nothing has been sent that could be executed: if the host is unreachable, the call ends at once.
    if (query() == Errc::host_unreachable) finish(Errc::host_unreachable, {});
  } else if (state_ == State::executing || transaction_ == nullptr ||
             silence_.may_have_forgotten(now, channels().options_.give_up)) {
    (void)send(flags::kPleaseAck);
  } else if (more_in_request_ != 0 && !lacking_ && (asked_ < kQuestions || peer_.answers_questions)) {
    if (asked_ != 0) one_question_ = false;
    if (asked_ < 100) ++asked_;
    asked_at_ = now;
    (void)send(flags::kDoYouHave);
  } else {
    send_request_again(now);
  }
}

void ClientChannel::send_request_again(Time now) noexcept {
  requested_ = now;
  if (asked_ != 0) one_question_ = false;
  asked_ = 0;
  lacking_ = false;
  if (resent_ < 100) ++resent_;
  if (more_in_request_ != 0) {
    // Questions about this copy begin anew, twice as far apart as those about the copy before.
    again_ = static_cast<std::uint8_t>(2 * resent_);
    send_due_ = now + RetryTimer::pause_after(again_, asking_after_, channels().options_.longest_pause());
    arm(now);
  }
  Message again = request_.share();
  if (again.size() != request_.size()) return;
  const std::uint64_t sequence = sequence_;
  ++channels().counted.sent;
  const Errc outcome = peer_.lower->push(std::move(again));
  // The path no longer carries a message this long. An earlier copy may be executed.
  if (outcome == Errc::message_too_long && state_ == State::waiting && sequence_ == sequence)
    finish(Errc::call_lost, {});
}

/// This answer is no sign of life: a server that never gets the request must not keep its caller for ever. The layer
/// below may still be recovering the request's fragments. Until the time for that is over, the server is only asked
/// again, each time after at least half of the time since the request was sent last, but at most longest_pause(): what
/// has taken long is likely to take longer.
void ClientChannel::lacking(Time now) noexcept {
  if (state_ != State::waiting || transaction_ == nullptr || more_in_request_ == 0) return;
  peer_.answers_questions = true;
  if (asked_ == 1 && one_question_) peer_.round_trip.answered(now - asked_at_);
  asked_ = again_ = 0;
  lacked_ = true;
  const Duration longest = channels().options_.longest_pause();
  lacking_ = now - requested_ >= RetryTimer::pause_after(2U * resent_, interval_, longest);
  send_due_ = lacking_ ? now : now + std::min(std::max<Duration>(answered_after(), (now - requested_) / 2), longest);
  arm(now);
}

/// The channel stays busy, though nobody waits, until the server has answered a probe (the request is finished, or has
/// never arrived) or is given up. If a copy of the request is still on its way then, the server accepts it only before
/// the next request, which has a higher sequence number. So it is executed once or, if it arrives after the next
/// request, never: at-most-once would hold even if the next request were sent at once. The wait keeps a server from
/// working on many requests that nobody wants.
void ClientChannel::cancel(Transaction& transaction) noexcept {
  if (transaction_ != &transaction) return;
  transaction_ = nullptr;
  deadline_ = Time::max();
  request_.clear();
  if (state_ == State::querying) state_ = State::idle;  // nothing has been sent
}

void ClientChannel::follow_life() noexcept {
  // The user of a call that has just failed on another channel may have begun one here, which is for the new life.
  if (!outdated()) return;
  if (state_ != State::querying) return finish(Errc::call_failed, {});
  sent_ = channels().host().now();
  silence_.begins(sent_);
  again_ = 0;
  Message request = std::move(request_);  // start() puts a share of it there
  start(std::move(request));
}

void ClientChannel::pop(const ChannelHeader& header, Message&& message) noexcept {
  ChannelProtocol& protocol = channels();
  if (state_ == State::idle || header.sequence != static_cast<std::uint32_t>(sequence_)) [[unlikely]] {
    ++protocol.counted.duplicates;
    if (header.flags == flags::kReply && repeated_.is(header.sequence, header.boot_id)) answered_twice();
    return;
  }
  const SessionRef keep(this);
  if (header.flags == flags::kBootAnswer) {
    // This host may have learnt the life elsewhere meanwhile (AUTH's handshake, another channel's open). Then heard()
    // changes nothing and notifies no channel, so the call goes on from here.
    if (state_ == State::querying && protocol.heard(peer_, header.boot_id)) follow_life();
    return;
  }
  if (state_ == State::querying) return;  // there is no request yet that this could answer
  if (header.flags == flags::kRebooted) {
    (void)protocol.heard(peer_, header.boot_id);  // once the peer confirms it, this call fails with all others
    return;
  }
  if (header.boot_id != peer_.boot_id) [[unlikely]]
    return dropped(protocol.counted.refused);
  switch (header.flags) {
    case flags::kReply: {
      more_in_reply_ = peer_.more_packets(message.size());
      measure(protocol.host().now());
      return finish(Errc::ok, std::move(message));
    }
    case flags::kFail:
      // Whatever the reason, another copy of the request may be under way, and be executed once the reason is gone. If
      // the reply is too long, only this call is lost: the server's host lives.
      return finish(Errc{header.error} == Errc::message_too_long ? Errc::call_lost : Errc::call_failed, {});
    case flags::kAck:
      if (state_ == State::waiting) request_.clear();  // the server has it: it will not be sent again
      state_ = State::executing;
      return silence_.ends(protocol.host().now(), protocol.options_.give_up);
    case flags::kLacking: return lacking(protocol.host().now());
    default:  // in-progress
      silence_.ends(protocol.host().now(), protocol.options_.give_up);
      asked_ = 0;
  }
}

/// A second reply to the last request.
void ClientChannel::answered_twice() noexcept {
  const Duration took = std::exchange(repeated_.took, Duration::zero());
  repeated_.asked ? peer_.round_trip.crossed(took, repeated_.more)
                  : peer_.round_trip.needless(took, repeated_.more, true);
}

/// The reply has arrived.
void ClientChannel::measure(Time now) noexcept {
  const std::size_t more = more_in_request_ + more_in_reply_;
  if (!ambiguous_) [[likely]]
    return peer_.round_trip.sample(now - sent_, more);
  if (state_ == State::executing) return peer_.round_trip.needless(now - sent_, more);
  // If questions were sent, but not the request again, the timeout need not grow: a question is answered however long
  // the request takes.
  const bool asked = more_in_request_ != 0 && resent_ == 0;
  asked ? peer_.round_trip.lost() : peer_.round_trip.ambiguous();
  // A request that the server lacked was lost in part: its time is no measure of other requests.
  const Duration took = asked && lacked_ ? Duration::zero() : now - sent_;
  repeated_ = {static_cast<std::uint32_t>(sequence_), life_, more, took, asked};
}

void ClientChannel::finish(Errc outcome, Message&& reply) noexcept {
  state_ = State::idle;
  request_.clear();
  if (outcome != Errc::ok) ++channels().counted.failed;
  if (Transaction* const waits = std::exchange(transaction_, nullptr)) waits->completed(outcome, std::move(reply));
}

Errc ClientChannel::control(control::Request& request) noexcept {
  peer_.look_at_sizes(channels().options_);
  if (control::answered(request, control::MaximumMessage{peer_.maximum - ChannelHeader::kSize})) return Errc::ok;
  if (control::answered(request, control::OptimumMessage{peer_.optimum - ChannelHeader::kSize})) return Errc::ok;
  if (control::answered(request, control::RoundTrip{peer_.round_trip.smoothed(), peer_.round_trip.timeout(0, {})}))
    return Errc::ok;
  return Session::control(request);
}

}  // namespace lrpc::netrpc::channel
