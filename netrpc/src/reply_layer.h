// A transparent layer that also sees the replies: it puts a transaction of its own between the user's and the layer
// below.
#pragma once

#include <memory>
#include <vector>

#include "lrpc/netrpc/map.h"
#include "transparent_layer.h"

namespace lrpc::netrpc {

class ReplyLayer : public TransparentProtocol {
 public:
  using TransparentProtocol::TransparentProtocol;

  /// Without memory for a transaction it completes the call with limit_reached and sends nothing.
  void pass_call(TransparentSession& session, Message request, Transaction& transaction,
                 Duration timeout) noexcept override;
  void pass_cancel(TransparentSession& session, Transaction& transaction) noexcept override;

 protected:
  /// A call through `session`, which began at `begun`, has ended with `outcome`. For a call to a group: called also
  /// before that, for each member that has answered or failed. Returns the outcome for the call's user; may change the
  /// reply.
  [[nodiscard]] virtual Errc pass_completed(TransparentSession& session, Time begun, Errc outcome,
                                            Message& reply) noexcept = 0;
  /// Whether the transaction waits for the end of a call through `session`.
  [[nodiscard]] bool outstanding(const TransparentSession& session, const Transaction& transaction) noexcept {
    return find(session, transaction) != nullptr;
  }

 private:
  /// Stands between the layer below and the user's transaction.
  class Call final : public Transaction {
   public:
    explicit Call(ReplyLayer& layer) noexcept : layer_(layer) {}
    void completed(Errc outcome, Message reply) noexcept override {
      layer_.completed(*this, outcome, std::move(reply));
    }
    void collated(HostAddress member, Errc outcome, Message reply) noexcept override {
      outcome = layer_.seen(*this, outcome, reply);
      user->collated(member, outcome, std::move(reply));
    }
    [[nodiscard]] bool counts(const Message& reply) noexcept override { return user->counts(reply); }

    SessionRef session;
    Transaction* user = nullptr;
    Time begun{};
    Call* next_free = nullptr;

   private:
    ReplyLayer& layer_;
  };

  [[nodiscard]] Call* take(const Transaction& user) noexcept;
  [[nodiscard]] Call* find(const TransparentSession& session, const Transaction& transaction) noexcept;
  /// The outcome for the user.
  [[nodiscard]] Errc seen(Call& call, Errc outcome, Message& reply) noexcept;
  void completed(Call& call, Errc outcome, Message&& reply) noexcept;
  void release(Call& call) noexcept;

  Map<const Transaction*, Call*> calls_;
  std::vector<std::unique_ptr<Call>> all_;  ///< As many as were ever in use at once; reused.
  Call* free_ = nullptr;
};

}  // namespace lrpc::netrpc
