// A call at the client: call, start, then what the network or the timer brings, until finish.
#include "netrpc/protocols/mrpc/client.h"

#include <bit>
#include <utility>

#include "netrpc/protocols/mrpc/protocol.h"
#include "netrpc/src/dropped.h"

namespace lrpc::netrpc::mrpc {

namespace {
using std::chrono::microseconds;
using std::chrono::milliseconds;

// The step function: the least time to wait for a reply while packets are lost, and while none are.
constexpr Duration kLeastTimeout = microseconds(30);
constexpr Duration kCalmTimeout = microseconds(500);
constexpr Duration kCalmTimeoutOfFragments = milliseconds(1);
/// The outcome for an error that a server sends instead of a reply. Any but two of them becomes call_failed.
Errc outcome_of(std::uint16_t error) noexcept {
  const Errc said{error};
  return said == Errc::bad_procedure || said == Errc::call_lost ? said : Errc::call_failed;
}
}  // namespace

ClientSession::ClientSession(Monolithic& mrpc, Protocol& high, const ParticipantSet& participants,
                             ClientPeer& peer) noexcept
    : Session(mrpc, high, participants), mrpc_(mrpc), peer_(&peer) {}

void ClientSession::unreferenced() noexcept {
  mrpc_.session_gone(*this);
  delete this;
}

void ClientSession::call(Message request, Transaction& transaction, Duration timeout) noexcept {
  peer_->call(participants().remote.command, std::move(request), transaction, timeout);
}

void ClientSession::cancel(Transaction& transaction) noexcept { peer_->cancel(transaction); }

Errc ClientSession::control(control::Request& request) noexcept {
  peer_->look_at_path();
  if (control::answered(request, control::MaximumMessage{peer_->max_message()})) return Errc::ok;
  if (control::answered(request, control::OptimumMessage{peer_->single()})) return Errc::ok;
  if (control::answered(request, control::RoundTrip{peer_->round_trip().smoothed(), peer_->round_trip().timeout()}))
    return Errc::ok;
  return Session::control(request);
}

ClientChannel::ClientChannel(ClientPeer& owner, std::uint16_t its_number)
    : peer(owner), number(its_number), timer([this] { peer.on_timer(*this); }) {}

ClientPeer::ClientPeer(Monolithic& mrpc, HostAddress host, SessionRef lower)
    : mrpc_(mrpc),
      host_(host),
      lower_(std::move(lower)),
      single_(mrpc.single(*lower_)),
      boot_id_(mrpc.host().peers().boot_id(host)),
      ready_(boot_id_ != 0),
      all_free_(~std::uint64_t{0} >> (kMaxChannels - mrpc.settings().channels)),
      round_trips_{RetryTimer(kFirstTimeout, kLeastTimeout, kCalmTimeout, kLongestTimeout),
                   RetryTimer(kFirstTimeoutOfFragments, kLeastTimeout, kCalmTimeoutOfFragments, kLongestTimeout)},
      waiting_timer_([this] { on_waiting_timer(); }) {
  free_ = all_free_;
  for (std::size_t i = 0; i < mrpc.settings().channels; ++i)
    channels_[i] = std::make_unique<ClientChannel>(*this, static_cast<std::uint16_t>(i));
}

void ClientPeer::call(std::uint16_t command, Message request, Transaction& transaction, Duration timeout) noexcept {
  if (timeout <= Duration::zero()) return transaction.completed(Errc::call_aborted, {});
  look_at_path();
  if (request.size() > max_message()) return transaction.completed(Errc::message_too_long, {});
  if (request.pool() == nullptr) request = Message(mrpc_.host().pool());
  const Time now = mrpc_.host().now();
  transaction.deadline = deadline_after(now, timeout);
  used = true;
  if (!ready_ || free_ == 0 || !waiting_.empty()) [[unlikely]]
    return wait(command, std::move(request), transaction, now);
  start(command, std::move(request), transaction, now);
}

void ClientPeer::look_at_path() noexcept {
  if (path_changes_.noticed(mrpc_.host().peers(), host_)) [[unlikely]]
    single_ = mrpc_.single(*lower_);
}

Header ClientPeer::header(const ClientChannel& channel, Type type) const noexcept {
  return {.type = type,
          .client = mrpc_.host().address(),
          .server = host_,
          .channel = channel.number,
          .sequence = channel.sequence,
          .fragments = channel.request.fragments,
          .command = channel.command,
          .boot_id = mrpc_.host().boot_id(),
          .peer_boot_id = boot_id_};
}

/// Precondition: ready, and a channel is free. Takes the lowest: its next request soon acknowledges its last reply.
void ClientPeer::start(std::uint16_t command, Message&& request, Transaction& transaction, Time now) noexcept {
  ClientChannel& channel = *channels_[static_cast<std::size_t>(std::countr_zero(free_))];
  free_ &= free_ - 1;
  channel.transaction = &transaction;
  channel.sequence = mrpc_.next_sequence();
  channel.command = command;
  channel.acknowledged = 0;
  channel.reply_fragments = 0;
  channel.tries = 0;
  channel.sampled = channel.lacked = false;
  channel.started = now;
  channel.silence.begins(now);
  channel.request.set(std::move(request), single_);
  arm(channel, now, now + round_trip(channel).timeout());
  const std::uint32_t sequence = channel.sequence;
  const auto refused = [&](Errc sent) {
    return (sent == Errc::host_unreachable || sent == Errc::message_too_long) && channel.transaction == &transaction &&
           channel.sequence == sequence;
  };
  Errc sent = send_request(channel);
  if (!refused(sent)) [[likely]]
    return;
  // Nothing has left this host. So the call may end at once, and a request that is too long for the link may be cut
  // anew.
  if (sent == Errc::message_too_long) {
    single_ = mrpc_.single(*lower_);
    if (single_ < channel.request.cut && channel.request.whole.size() <= max_message()) {
      channel.request.set(std::move(channel.request.whole), single_);
      sent = send_request(channel);
    }
  }
  if (refused(sent)) finish(channel, sent, {});
}

Errc ClientPeer::send_request(ClientChannel& channel) noexcept {
  if (channel.request.fragments > 1) return send_fragments(channel, all_of(channel.request.fragments), false);
  Header header = this->header(channel, Type::request);
  header.size = static_cast<std::uint16_t>(channel.request.whole.size());
  Message copy = channel.request.whole.share();
  if (copy.size() != header.size) return Errc::ok;  // the pool has no more: as if it were lost
  return mrpc_.try_send(*lower_, header, std::move(copy));
}

/// Sends the fragments of the request that are in `mask`; `please_ack`: the last of them asks for an answer.
Errc ClientPeer::send_fragments(ClientChannel& channel, std::uint16_t mask, bool please_ack) noexcept {
  Errc refused = Errc::ok;
  bool first = true;
  Header header = this->header(channel, Type::request);
  channel.request.each(header, mask, please_ack, [&](Message&& part) {
    const Errc sent = mrpc_.try_send(*lower_, header, std::move(part));
    if (std::exchange(first, false)) refused = sent;
    // Stop, too, if the call has ended meanwhile.
    return refused == Errc::ok && channel.transaction != nullptr && channel.sequence == header.sequence;
  });
  return refused;
}

void ClientPeer::on_reply(const Header& header, Message&& message) noexcept {
  ClientChannel* const channel = outstanding(header);
  if (channel == nullptr || header.boot_id != boot_id_) [[unlikely]] {
    ++mrpc_.counters().duplicates;
    if (header.boot_id != boot_id_ || header.channel >= kMaxChannels) return;
    ClientChannel* const idle = channels_[header.channel].get();
    if (idle != nullptr && idle->repeated.is(header.sequence, header.boot_id))
      round_trip(idle->repeated.more).needless(std::exchange(idle->repeated.took, Duration::zero()), true);
    if ((header.bits & kPleaseAck) == 0) return;
    // The server does not know that its reply to the last call here has arrived.
    if (idle != nullptr && idle->transaction == nullptr && idle->sequence == header.sequence && well_formed(header))
      acknowledge_reply(*idle, header.fragments, all_of(header.fragments));
    return;
  }
  if (!well_formed(header)) return dropped(mrpc_.counters().malformed);
  const Time now = mrpc_.host().now();
  if (header.fragments > 1) return on_fragment(*channel, header, std::move(message), now);
  ++mrpc_.counters().received;
  measure(*channel, now);
  if ((header.bits & kError) != 0) [[unlikely]]
    return finish(*channel, outcome_of(header.command), {});
  finish(*channel, Errc::ok, std::move(message));
}

void ClientPeer::on_fragment(ClientChannel& channel, const Header& header, Message&& message, Time now) noexcept {
  message.fit();
  switch (channel.reply.add(header, std::move(message))) {
    case Incoming::Added::contradiction: ++mrpc_.counters().malformed; return;
    case Incoming::Added::duplicate: ++mrpc_.counters().duplicates; break;
    case Incoming::Added::part: break;
    case Incoming::Added::complete: {
      Message reply = channel.reply.join();
      if (!reply.allocated()) return;  // the pool has no more: the timer asks for all of it again
      ++mrpc_.counters().received;
      channel.reply_fragments = header.fragments;
      measure(channel, now);
      return finish(channel, Errc::ok, std::move(reply));
    }
  }
  channel.silence.ends(now, mrpc_.settings().give_up);
  channel.tries = 0;
  arm(channel, now, now + round_trip(channel).timeout());  // the next probe of a slow server may be far off
  const bool last = header.mask == 1U << (header.fragments - 1);
  if (last || (header.bits & kPleaseAck) != 0)  // the ones before it should be here
    acknowledge_reply(channel, channel.reply.fragments(), channel.reply.mask());
}

/// Measures the round trip of a call whose reply has arrived.
void ClientPeer::measure(ClientChannel& channel, Time now) noexcept {
  if (!channel.sampled) [[likely]]
    return channel.lacked ? round_trip(channel).lost() : round_trip(channel).sample(now - channel.started);
  if (at_work(channel)) return round_trip(channel).needless(now - channel.started);
  round_trip(channel).ambiguous();
  channel.repeated = {channel.sequence, boot_id_, channel.request.fragments - std::size_t{1}, now - channel.started};
}

void ClientPeer::acknowledge_reply(const ClientChannel& channel, std::uint16_t fragments, std::uint16_t mask) noexcept {
  Header header = this->header(channel, Type::reply_ack);
  header.fragments = fragments;
  header.mask = mask;
  mrpc_.send(*lower_, header);
}

/// The server has part of the request, or all of it and is at work.
void ClientPeer::on_ack(const Header& header) noexcept {
  ClientChannel* const channel = outstanding(header);
  if (channel == nullptr || header.boot_id != boot_id_ || header.fragments != channel->request.fragments)
    return dropped(mrpc_.counters().duplicates);
  const Time now = mrpc_.host().now();
  const std::uint16_t all = all_of(header.fragments);
  const Duration give_up = mrpc_.settings().give_up;
  channel->silence.ends(now, give_up);
  channel->acknowledged = header.mask & all;
  const auto missing = static_cast<std::uint16_t>(all & ~header.mask);
  if (missing == 0) return;  // the next probe stays due when it was, with the same back-off
  if (channel->silence.may_have_forgotten(now, give_up)) return finish(*channel, Errc::call_failed, {});
  // Of a request that was lost in part, only the time until its loss is known is measured.
  if (!channel->sampled && !std::exchange(channel->lacked, true)) round_trip(*channel).sample(now - channel->started);
  channel->tries = 0;
  arm(*channel, now, now + round_trip(*channel).timeout());
  mrpc_.counters().retransmissions += static_cast<unsigned>(std::popcount(missing));
  send_fragments_again(*channel, missing);
}

void ClientPeer::arm(ClientChannel& channel, Time now, Time due) noexcept {
  channel.due = std::min(due, channel.transaction->deadline);
  channel.timer.run_by(mrpc_.host().events(), now, channel.due);
}

void ClientPeer::on_timer(ClientChannel& channel) noexcept {
  if (channel.transaction == nullptr) {
    // No next request has come to acknowledge the last reply: let the server drop it, if it is large.
    if (channel.reply_fragments > 1)
      acknowledge_reply(channel, channel.reply_fragments, all_of(channel.reply_fragments));
    channel.reply_fragments = 0;
    return;
  }
  const Time now = mrpc_.host().now();
  channel.silence.timer_came(now, channel.timer.due());
  if (now < channel.due) return arm(channel, now, channel.due);
  if (now >= channel.transaction->deadline) return finish(channel, Errc::call_aborted, {});
  const Time gone = channel.silence.lasts_until(mrpc_.settings().give_up);
  if (now >= gone) {
    ready_ = false;  // it may come back in another life: the next call asks first
    return finish(channel, Errc::call_failed, {});
  }
  channel.sampled = true;
  // While the server executes the request, probes are not urgent: the pause is doubled each time.
  channel.tries = static_cast<std::uint8_t>(std::min(channel.tries + (at_work(channel) ? 2 : 1), 254));
  const Duration pause = RetryTimer::pause_after(channel.tries, round_trip(channel).timeout(), kLongestTimeout);
  arm(channel, now, std::min(gone, now + pause));
  send_again(channel, channel.silence.may_have_forgotten(now, mrpc_.settings().give_up));
}

/// Sends one packet that makes the server say what it has, or send what the client lacks. `only_ask`: it must not be
/// one that could be executed.
void ClientPeer::send_again(ClientChannel& channel, bool only_ask) noexcept {
  ++mrpc_.counters().retransmissions;
  if (channel.reply.mask() != 0) return acknowledge_reply(channel, channel.reply.fragments(), channel.reply.mask());
  const auto missing = static_cast<std::uint16_t>(all_of(channel.request.fragments) & ~channel.acknowledged);
  if (missing != 0 && !only_ask) return send_fragments_again(channel, std::bit_floor(missing));
  Header probe = header(channel, Type::request);
  probe.bits = kPleaseAck;
  probe.mask = 0;
  mrpc_.send(*lower_, probe);
}

/// The fragments are not cut anew: the server may have some of the old size, or execute the request already.
void ClientPeer::send_fragments_again(ClientChannel& channel, std::uint16_t mask) noexcept {
  const std::uint32_t sequence = channel.sequence;
  if (send_fragments(channel, mask, true) == Errc::message_too_long && channel.transaction != nullptr &&
      channel.sequence == sequence)
    finish(channel, Errc::call_lost, {});
}

void ClientPeer::finish(ClientChannel& channel, Errc outcome, Message&& reply) noexcept {
  Transaction& transaction = *channel.transaction;
  release(channel);
  if (outcome != Errc::ok) ++mrpc_.counters().failed;
  const Keep keep(this);  // completed() may release the last session, and sweep
  transaction.completed(outcome, std::move(reply));
  if (!waiting_.empty()) start_waiting();
}

}  // namespace lrpc::netrpc::mrpc
