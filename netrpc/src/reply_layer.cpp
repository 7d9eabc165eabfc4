#include "reply_layer.h"

#include <new>
#include <utility>

#include "lrpc/netrpc/host.h"

namespace lrpc::netrpc {

void ReplyLayer::pass_call(TransparentSession& session, Message request, Transaction& transaction,
                           Duration timeout) noexcept {
  Call* const call = take(transaction);
  if (call == nullptr) return transaction.completed(Errc::limit_reached, {});
  call->session = SessionRef(&session);
  call->user = &transaction;
  call->begun = host().now();
  TransparentProtocol::pass_call(session, std::move(request), *call, timeout);
}

/// Null: there is no memory for one.
ReplyLayer::Call* ReplyLayer::take(const Transaction& user) noexcept try {
  if (free_ == nullptr) {
    all_.push_back(std::make_unique<Call>(*this));
    free_ = all_.back().get();
  }
  calls_.bind(&user, free_);
  return std::exchange(free_, free_->next_free);
} catch (const std::bad_alloc&) {
  return nullptr;
}

ReplyLayer::Call* ReplyLayer::find(const TransparentSession& session, const Transaction& transaction) noexcept {
  Call** const found = calls_.resolve(&transaction);
  return found != nullptr && (*found)->session.get() == &session ? *found : nullptr;
}

void ReplyLayer::pass_cancel(TransparentSession& session, Transaction& transaction) noexcept {
  Call* const call = find(session, transaction);
  if (call == nullptr) return;
  calls_.unbind(call->user);  // first: the layer below may call this layer again
  TransparentProtocol::pass_cancel(session, *call);
  release(*call);
}

/// Drops the session last: its destruction may call this layer again.
void ReplyLayer::release(Call& call) noexcept {
  const SessionRef session = std::exchange(call.session, {});
  call.next_free = std::exchange(free_, &call);
}

Errc ReplyLayer::seen(Call& call, Errc outcome, Message& reply) noexcept {
  outcome = pass_completed(static_cast<TransparentSession&>(*call.session), call.begun, outcome, reply);
  if (outcome != Errc::ok && outcome != Errc::version_mismatch) reply.clear();
  return outcome;
}

void ReplyLayer::completed(Call& call, Errc outcome, Message&& reply) noexcept {
  Transaction& user = *call.user;
  outcome = seen(call, outcome, reply);
  calls_.unbind(&user);
  release(call);
  user.completed(outcome, std::move(reply));
}

}  // namespace lrpc::netrpc
