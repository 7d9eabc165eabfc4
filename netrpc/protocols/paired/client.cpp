// The client's end: sends a request, receives its reply.
#include "netrpc/protocols/paired/protocol.h"
#include "netrpc/src/dropped.h"

namespace lrpc::netrpc::paired {

namespace {
/// The life of the server in which a conversation began.
BootId life_of(std::uint64_t conversation) noexcept { return static_cast<BootId>(conversation >> 32); }
}  // namespace

void ClientEnd::call(Message request, Transaction& transaction, Duration timeout) noexcept {
  if (timeout <= Duration::zero()) return transaction.completed(Errc::call_aborted, {});
  if (state_ != State::idle) return transaction.completed(Errc::limit_reached, {});
  if (request.size() > paired().options_.max_message) return transaction.completed(Errc::message_too_long, {});
  const SessionRef keep(this);  // completed() may drop the last other reference
  used = true;
  call_ = ++paired().call_number_;
  transaction_ = &transaction;
  const Time now = protocol().host().now();
  deadline_ = deadline_after(now, timeout);
  receiving_.begin();
  request_ = std::move(request);
  if (conversation_ != 0) [[likely]]
    return start();
  state_ = State::meeting;
  unheard_ = Errc::limit_reached;
  sending_.begin(1);  // a probe; its acknowledgement answers it
  sent_at_ = now;
  ask_for_conversation();
  wait();
}

/// Sends the request. The caller keeps the session alive.
void ClientEnd::start() noexcept {
  state_ = State::calling;
  if (!begin(std::move(request_))) return finish(Errc::limit_reached, {});
  expecting_ = true;
  wait();
  const std::uint32_t call = call_;
  const Errc outcome = transmit();
  // If the request is lost, the timer sends it again. If it can never be sent, the call ends now.
  if (outcome != Errc::message_too_long && outcome != Errc::host_unreachable) [[likely]]
    return;
  if (state_ == State::calling && call_ == call && sending_.active()) finish(outcome, {});
}

void ClientEnd::pop(const Header& header, Message&& message) noexcept {
  if (header.call_number != call_) return dropped(paired().counted.duplicates);
  const SessionRef keep(this);
  used = true;
  if (header.conversation != conversation_) [[unlikely]] {
    // The server's answer to a client that does not know its life, or means a former one: the conversation to use.
    const bool answer = header.has(bits::kProbe) && header.has(bits::kAck) && header.conversation != 0;
    if (!answer || state_ == State::idle || life_of(header.conversation) == life_of(conversation_))
      return dropped(paired().counted.refused);
    conversation_ = header.conversation;
    if (state_ == State::calling) return finish(Errc::call_failed, {});
    measure();
    sending_.stop();
    return start();
  }
  if (header.has(bits::kLost)) {
    if (state_ == State::calling) lost();
    return;
  }
  if (state_ == State::calling) {
    // The reply acknowledges the request (§2.5).
    if (header.data() && header.segment == 1 && sending_.active()) {
      if (!sending_.answered()) return;  // a server cannot answer half a request
      measure();
      let_go_of_sent();
    }
    return arrived(header, std::move(message));
  }
  // A segment of a reply that has been received: its acknowledgement was lost.
  if (state_ == State::idle && receiving_.complete() && header.data()) arrived(header, std::move(message));
}

void ClientEnd::expired() noexcept {
  if (state_ == State::idle) return;
  const Time now = protocol().host().now();
  if (now >= deadline_ && transaction_ != nullptr) {
    Transaction& transaction = *transaction_;
    ++paired().counted.failed;
    cancel(transaction);
    arm(now);
    return transaction.completed(Errc::call_aborted, {});
  }
  // This host has stood still. The server may have executed the request and forgotten it: from now on it is only
  // probed.
  if (state_ == State::calling && sending_.active() && sending_.last() &&
      silence_.may_have_forgotten(now, paired().repeats())) {
    sending_.stop();
    let_go_of_sent();
    probing_.begin(paired().options_.probe);
  }
  if (state_ != State::meeting || now < due_) return End::expired();
  if (sending_.expired(paired().options_.max_retry) == Sending::Next::failed) return broken();
  ++paired().counted.retransmissions;
  ask_for_conversation();
  wait();
}

/// Gives the request up if it has not been sent whole. Otherwise the call goes on without its caller, so that a server
/// never works on two requests of one channel.
void ClientEnd::cancel(Transaction& transaction) noexcept {
  if (transaction_ != &transaction) return;
  transaction_ = nullptr;
  deadline_ = Time::max();
  if (state_ == State::meeting || (sending_.active() && !sending_.last())) finish(Errc::call_aborted, {});
}

void ClientEnd::finish(Errc outcome, Message&& reply) noexcept {
  state_ = State::idle;
  sending_.stop();
  request_.clear();
  let_go_of_sent();
  let_go_of_received();
  due_ = deadline_ = Time::max();
  Transaction* const transaction = std::exchange(transaction_, nullptr);
  if (transaction == nullptr) return;
  if (outcome != Errc::ok) ++paired().counted.failed;
  transaction->completed(outcome, std::move(reply));
}

}  // namespace lrpc::netrpc::paired
