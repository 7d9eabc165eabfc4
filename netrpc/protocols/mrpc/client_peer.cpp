// The client's rare cases: calls that wait for a channel or for the peer's boot identifier, reboots, cancelling.
#include "netrpc/protocols/mrpc/client.h"
#include "netrpc/protocols/mrpc/protocol.h"
#include "netrpc/src/dropped.h"

namespace lrpc::netrpc::mrpc {

void ClientPeer::wait(std::uint16_t command, Message&& request, Transaction& transaction, Time now) noexcept {
  if (waiting_.size() >= mrpc_.settings().queue) [[unlikely]] {
    ++mrpc_.counters().failed;
    return transaction.completed(Errc::limit_reached, {});
  }
  std::byte* const in_front = request.push(sizeof command);
  if (in_front == nullptr) return transaction.completed(Errc::limit_reached, {});
  WireWriter(in_front).put(command);
  waiting_.add(transaction, std::move(request));
  waiting_timer_.run_by(mrpc_.host().events(), now, transaction.deadline);
  if (!ready_ && !querying_) begin_query(now);
}

void ClientPeer::start_waiting() noexcept {
  if (serving_)
    return;  // a call has ended while the loop below was starting it: that loop takes its channel for the next one
  const Keep keep(this);
  serving_ = true;
  while (!waiting_.empty() && ready_ && free_ != 0) {
    Transaction& transaction = waiting_.take_first();
    const Time now = mrpc_.host().now();
    Message request = std::move(transaction.waiting_request);
    if (now >= transaction.deadline) {
      ++mrpc_.counters().failed;
      transaction.completed(Errc::call_aborted, {});
      continue;
    }
    std::byte scratch[2];
    const std::byte* const command = request.pop(sizeof scratch, scratch);
    look_at_path();
    if (request.size() > max_message()) {
      transaction.completed(Errc::message_too_long, {});
      continue;
    }
    start(WireReader(command).get<std::uint16_t>(), std::move(request), transaction, now);
  }
  serving_ = false;
  if (waiting_.empty()) {
    querying_ = false;
    mrpc_.host().events().cancel(waiting_timer_);
  } else if (!ready_ && !querying_) {
    begin_query(mrpc_.host().now());  // the peer has become silent while these waited for a channel
  }
}

void ClientPeer::cancel(Transaction& transaction) noexcept {
  if (waiting_.drop(transaction)) return;
  for (const auto& channel : channels_) {
    if (channel == nullptr || channel->transaction != &transaction) continue;
    release(*channel);
    return start_waiting();
  }
}

void ClientPeer::begin_query(Time now) noexcept {
  querying_ = true;
  query_number_ = static_cast<std::uint32_t>(mrpc_.host().random());
  query_tries_ = 0;
  unheard_ = Errc::limit_reached;
  query_began_ = now;
  query_silence_.begins(now);
  query(now);
}

void ClientPeer::query(Time now) noexcept {
  const Header header{.type = Type::query,
                      .client = mrpc_.host().address(),
                      .server = host_,
                      .sequence = query_number_,
                      .mask = 0,
                      .boot_id = mrpc_.host().boot_id()};
  // The pause doubles each time: two steps, because pause_after() doubles with every second one.
  const Duration pause = RetryTimer::pause_after(2U * query_tries_, kFirstTimeout, kLongestTimeout);
  if (query_tries_ < 12) ++query_tries_;
  query_due_ = std::min(now + pause, query_silence_.lasts_until(mrpc_.settings().give_up));
  waiting_timer_.run_by(mrpc_.host().events(), now, query_due_);
  const Errc sent = mrpc_.try_send(*lower_, header, Message(mrpc_.host().pool()));
  if (sent != Errc::limit_reached) unheard_ = Errc::host_unreachable;
  if (sent == Errc::host_unreachable) fail_waiting(sent);
}

void ClientPeer::on_life(const Header& header) noexcept {
  if (!querying_ || header.sequence != query_number_) return dropped(mrpc_.counters().duplicates);
  const Keep keep(this);
  querying_ = false;
  if (query_tries_ == 1) round_trips_[0].sample(mrpc_.host().now() - query_began_);
  mrpc_.host().peers().heard(host_, header.boot_id);
  rebooted(header.boot_id);
  ready_ = true;
  start_waiting();
}

void ClientPeer::on_rebooted(const Header& header) noexcept {
  if (outstanding(header) == nullptr || header.boot_id == boot_id_) return dropped(mrpc_.counters().duplicates);
  const Keep keep(this);
  mrpc_.host().peers().heard(host_, header.boot_id);
  rebooted(header.boot_id);
}

void ClientPeer::rebooted(BootId now) noexcept {
  if (now == boot_id_) return;
  const Keep keep(this);
  boot_id_ = now;
  ready_ = true;
  querying_ = false;  // calls that wait from here on wait for a channel
  // Calls that are started from here on are meant for the new life.
  const std::uint32_t last = mrpc_.last_sequence();
  for (const auto& channel : channels_)
    if (channel != nullptr && channel->transaction != nullptr && ahead(channel->sequence, last) <= 0)
      finish(*channel, Errc::call_failed, {});
  start_waiting();
}

void ClientPeer::on_waiting_timer() noexcept {
  const Keep keep(this);
  const Time now = mrpc_.host().now();
  query_silence_.timer_came(now, waiting_timer_.due());
  // One at a time: completed() may change the queue.
  while (Transaction* const expired = waiting_.drop_expired(now)) {
    ++mrpc_.counters().failed;
    expired->completed(Errc::call_aborted, {});
  }
  if (waiting_.empty()) {
    querying_ = false;
    return;
  }
  if (querying_ && now >= query_silence_.lasts_until(mrpc_.settings().give_up)) return fail_waiting(unheard_);
  if (querying_ && now >= query_due_) query(now);
  const Time query_due = querying_ ? query_due_ : Time::max();
  waiting_timer_.run_by(mrpc_.host().events(), now, std::min(query_due, waiting_.earliest_deadline()));
}

/// Ends all waiting calls, because the peer does not answer. Nothing of them has been sent.
void ClientPeer::fail_waiting(Errc outcome) noexcept {
  const Keep keep(this);
  querying_ = false;
  // Not those that completed() adds.
  for (std::size_t count = waiting_.size(); count > 0 && !waiting_.empty(); --count) {
    Transaction& transaction = waiting_.take_first();
    transaction.waiting_request.clear();
    ++mrpc_.counters().failed;
    transaction.completed(outcome, {});
  }
  if (waiting_.empty()) {
    querying_ = false;
    mrpc_.host().events().cancel(waiting_timer_);
  }
}

}  // namespace lrpc::netrpc::mrpc
