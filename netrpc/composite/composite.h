// A composite protocol: to the graph a protocol like any other; inside, micro-protocols in a framework of events and a
// bag of messages (Bhatti and Schlichting §3.4). It carries messages, independently of each other; or, if a part sets
// a CallStyle, requests and their replies.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "netrpc/composite/calls.h"
#include "netrpc/composite/micro_protocol.h"
#include "netrpc/src/transparent_layer.h"

namespace lrpc::netrpc::composite {

/// A micro-protocol of a composition.
struct Part {
  MicroKind kind;
  Options options{};
};

/// What micro-protocols have in common: the events, the bag and the attributes of one composite protocol.
class Framework final : public TransparentProtocol {
 public:
  /// Over `below`, a datagram service. If no part verifies, the framework's own VERIFY inserts every message. Errors:
  /// invalid_argument (check_composition(), an option out of range, a part that does not do as its kind says), those of
  /// the parts. Inside the monitor.
  /// `threads`: for handlers; 0: they run in the thread that brings the message (Events).
  static Result<std::unique_ptr<Framework>> make(Host& host, std::string name, Protocol& below, std::vector<Part> parts,
                                                 std::size_t threads = 0);
  /// Drops the handlers first: they must not be called for what ends here, and may hold items.
  ~Framework() override {
    events_.clear();
    bag_.empty();
    micro_protocols_.clear();
  }

  [[nodiscard]] Events& events() noexcept { return events_; }
  [[nodiscard]] Bag& bag() noexcept { return bag_; }
  [[nodiscard]] AttributeTable& attributes() noexcept { return attributes_; }
  /// printBag: a line an item.
  [[nodiscard]] std::string describe_bag() {
    std::string text;
    bag_.for_each([&](const ItemRef& item) { text += describe(*item) + "\n"; });
    return text;
  }
  [[nodiscard]] std::string describe(const Item& item) const {
    const std::string attributes = attributes_.describe(item);
    return Bag::describe(item) + (attributes.empty() ? "" : "; " + attributes);
  }

  [[nodiscard]] CallStyle style() const noexcept { return style_; }

  /// With calls, a group's address can be opened, too: a call through that session asks all members.
  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  /// A push or a call from above, through a TransparentSession or a GroupSession.
  [[nodiscard]] Errc push_through(Session& session, Message message) noexcept;
  void call_through(Session& session, Message request, Transaction& transaction, Duration timeout) noexcept;
  void cancel(Transaction& transaction) noexcept { calls_.cancel(transaction); }

  [[nodiscard]] Errc pass_push(TransparentSession& session, Message message) noexcept override {
    return push_through(session, std::move(message));
  }
  void pass_call(TransparentSession& session, Message request, Transaction& transaction,
                 Duration timeout) noexcept override {
    call_through(session, std::move(request), transaction, timeout);
  }
  void pass_cancel(TransparentSession& /*session*/, Transaction& transaction) noexcept override { cancel(transaction); }
  void pass_demux(TransparentSession& session, Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;
  [[nodiscard]] Errc pass_control(TransparentSession& session, control::Request& request) noexcept override;
  [[nodiscard]] Errc pass_high_control(Protocol& high, control::Request& request) noexcept override;

 private:
  friend class MicroParts;
  friend class RequestSession;
  static constexpr std::size_t kMostRequests = 4096;  ///< At once in the protocol above.

  Framework(Host& host, std::string name, Protocol& below, std::size_t threads);
  /// The outcome of the message. limit_reached: VERIFY has not inserted it.
  [[nodiscard]] Errc enter(const Raisable<Entering>& event, Session& session, Direction way, Message message,
                           CallId call = 0, ItemRef answers = {}) noexcept;
  void leave(const ItemRef& item, Errc& outcome) noexcept;
  [[nodiscard]] Errc send(TransparentSession& session, Item& item) noexcept;
  [[nodiscard]] bool has_room(const ItemRef& item) noexcept;
  void deliver(TransparentSession& session, const ItemRef& item) noexcept;
  [[nodiscard]] Errc reply(const ItemRef& request, Message message) noexcept {
    const Errc outcome = enter(pushed_to_, *request->session(), Direction::down, std::move(message), 0, request);
    if (style_ == CallStyle::call || outcome != Errc::limit_reached) over(request);
    return outcome;
  }
  void let_go(RequestSession& session, const ItemRef& unanswered) noexcept {
    if (unanswered) over(unanswered);
    requests_.destroy(session);
  }
  /// While the protocol above is receiving the request, Request_Ended waits: otherwise the next request would come to
  /// it within this one, and so on.
  void over(const ItemRef& request) noexcept {
    request->over_ = true;
    request->place_ = {};
    if (!request->given_) events_.raise(request_ended_, Raise::asynchronous, request);
  }
  [[nodiscard]] ItemRef fresh_item(const Entering& entering, const SessionRef& session, Message message) noexcept;

  Events events_;
  const Raisable<Entering>& popped_to_;
  const Raisable<ItemRef>& popped_from_;
  const Raisable<Entering>& pushed_to_;
  const Raisable<ItemRef>& pushed_from_;
  const Raisable<ItemRef>& request_ended_;
  AttributeTable attributes_;
  HeaderMapping mapping_;  ///< Set by a part that maps, until the attributes are sealed.
  Procedures procedures_;
  HostShares places_;   ///< Requests in the protocol above. This and the next outlive the bag.
  HostShares waiting_;  ///< Buffers of requests whose send bits are not all set.
  Bag bag_;
  Calls calls_;
  Cells<RequestSession> requests_;
  CallStyle style_ = CallStyle::none;
  std::vector<Part> parts_;  ///< Micro-protocols refer to them.
  std::vector<std::unique_ptr<MicroProtocol>> micro_protocols_;
  std::vector<std::function<void()>> later_;
  std::vector<std::string> errors_;  ///< Of the parts, from making them.
};

/// The last reference to the session is gone.
inline void RequestSession::unreferenced() noexcept { framework_.let_go(*this, request_); }

}  // namespace lrpc::netrpc::composite
