// ATOMIC: requests are executed one at a time, each entirely or not at all (§4.2: atomic execution).
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

namespace {

class Atomic final : public MicroProtocol {
 public:
  explicit Atomic(MicroParts& parts)
      : parts_(parts),
        bit_(parts.last_send_bit([this](const ItemRef& item) { asked(item); })),
        hold_(parts.options.number("hold", 1024)) {
    waiting_.reserve(hold_);
    parts_.handle(
        kMessageInsertedIntoBag, [this](const ItemRef& item) { inserted(item); },
        [this](const ItemRef& item) {
          return item->direction == Direction::up && (*type_)(*item) == CallType::request;
        });
    parts_.handle(kRequestEnded, [this](const ItemRef& item) { ended(item); });
    parts_.later([this](MicroParts& all) { type_.emplace(all.public_attribute<CallType>(kCallType)); });
  }

 private:
  struct Request {
    ItemRef item;
    bool asked = false;  ///< All other send bits are set.
  };

  /// One host has its fair share of the places and of the buffers in which requests wait. Another handler may have
  /// deleted `item` already; with threads, even between this handler's guard and this call.
  void inserted(const ItemRef& item) noexcept {
    if (!item->in_bag()) return;
    const HostKey client = Peer::of(parts_.host(), *item).key_of_host();
    std::size_t count = 0;  // of this client
    std::size_t bytes = 0;
    std::size_t all_bytes = 0;
    for (const Request& one : waiting_) {
      const std::size_t size = one.item->message.footprint();
      all_bytes += size;
      if (Peer::of(parts_.host(), *one.item).key_of_host() != client) continue;
      bytes += size;
      ++count;
    }
    const std::size_t more = item->message.footprint();
    if (!shim::one_may_take(1, count, waiting_.size(), hold_) ||
        !shim::one_may_take(more, bytes, all_bytes, parts_.host().pool().limit() / kShareOfBuffers))
      return parts_.bag().erase(item, Errc::limit_reached);
    waiting_.push_back({item});  // its memory is reserved
  }

  /// Again, if one of the other bits is set again.
  void asked(const ItemRef& item) noexcept {
    if (item.get() == settling_) return;
    const auto known = std::ranges::find(waiting_, item, &Request::item);
    if (known == waiting_.end()) {
      const bool may_leave = !item->answers() || item->answers() != running_ || commit(item);
      return may_leave ? parts_.bag().set_send_bit(bit_, item) : parts_.bag().erase(item);
    }
    if (known->asked) return;
    // In the order of asking, which is FIFO's, and before those that are not asked yet.
    const auto place = std::ranges::find(waiting_, false, &Request::asked);
    std::rotate(place, known, known + 1);
    place->asked = true;
    next();
  }

  /// The protocol above has executed the running request. Its reply leaves only when the changes are permanent
  /// (Commit): nobody may keep a copy of it before, to send that.
  [[nodiscard]] bool commit(const ItemRef& reply) noexcept {
    settled_ = true;
    settling_ = reply.get();
    const Errc answer = ask_server(*reply, control::Commit{});
    settling_ = nullptr;
    return answer == Errc::ok;
  }

  Errc ask_server(const Item& item, control::Request request) noexcept {
    const Events::Outside outside(parts_.events());
    return item.session()->high().control(request);
  }

  void ended(const ItemRef& item) noexcept {
    if (item != running_) {
      std::erase_if(waiting_, [&](const Request& one) { return one.item == item; });
      return;
    }
    const ItemRef gone = std::exchange(running_, {});
    if (!std::exchange(settled_, false) && gone->has_left())  // dropped without an answer
      ask_server(*gone, control::Rollback{});
    next();
  }

  void next() noexcept {
    if (running_) return;
    const auto first = std::ranges::find(waiting_, true, &Request::asked);
    if (first == waiting_.end()) return;
    running_ = std::move(first->item);
    waiting_.erase(first);
    parts_.bag().set_send_bit(bit_, ItemRef(running_));
  }

  MicroParts parts_;
  const SendBit bit_;
  const std::size_t hold_;
  std::optional<PublicAttribute<CallType>> type_;
  ItemRef running_;
  const Item* settling_ = nullptr;  ///< The reply for which the server is asked to commit.
  bool settled_ = false;            ///< The running request has been committed, or its commit was refused.
  std::vector<Request> waiting_;
};

}  // namespace

MicroKind atomic_kind() {
  return {.name = "ATOMIC",
          .summary = "requests one at a time, each entirely or not at all",
          .imports = {kMessageInsertedIntoBag.name, kRequestEnded.name},
          .needs = {{"GRPC"}},
          .options = {{"hold", OptionType::number, "how many requests wait; 1024", false, "1", "65536"}},
          .make = make_micro<Atomic>};
}

}  // namespace lrpc::netrpc::composite
