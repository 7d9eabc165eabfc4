#include "netrpc/composite/composite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "netrpc/composite/group_session.h"
#include "netrpc/composite/suite/suite.h"
#include "netrpc/graph/options.h"
#include "netrpc/src/dropped.h"
#include "netrpc/src/header_room.h"

namespace lrpc::netrpc::composite {
namespace {

/// Inserts every message (§3.4).
class Verify final : public MicroProtocol {
 public:
  explicit Verify(MicroParts& parts) : parts_(parts) {
    const auto insert = [this](const Entering& entering) {
      if (const ItemRef item = parts_.item_of(entering)) parts_.bag().insert(item);
    };
    parts_.handle(kMessagePoppedToCp, insert);
    parts_.handle(kMessagePushedToCp, insert);
  }

 private:
  MicroParts parts_;
};

MicroKind verify_kind() {
  return {.name = "VERIFY",
          .summary = "inserts every message",
          .imports = {kMessagePoppedToCp.name, kMessagePushedToCp.name},
          .verifies = true,
          .make = make_micro<Verify>};
}

}  // namespace

// ---- MicroParts ----

Host& MicroParts::host() const noexcept { return framework_.host(); }
Events& MicroParts::events() const noexcept { return framework_.events(); }
Bag& MicroParts::bag() const noexcept { return framework_.bag(); }
Calls& MicroParts::calls() const noexcept { return framework_.calls_; }
AttributeTable& MicroParts::attributes() const noexcept { return framework_.attributes(); }
Procedures& MicroParts::procedures() const noexcept { return framework_.procedures_; }

void MicroParts::map_headers(HeaderMapping mapping) {
  if (!kind_.maps) fail("its kind does not map attributes to headers");
  if (mapping.size > Item::kAttributeBytes) fail(fmt::format("a header of more than {} bytes", Item::kAttributeBytes));
  framework_.mapping_ = std::move(mapping);
}

void MicroParts::fail(const std::string& why) { framework_.errors_.push_back(kind_.name + ": " + why); }

CallStyle MicroParts::style() const noexcept { return framework_.style(); }

GroupSession* MicroParts::group_of(const Entering& entering) noexcept {
  // A passive session's peer is whatever address a message was sent from, perhaps a group's.
  return Groups::is_group(entering.session->peer()) ? dynamic_cast<GroupSession*>(entering.session.get()) : nullptr;
}

ItemRef MicroParts::item_for(const Entering& entering, const SessionRef& session) noexcept {
  Message message = entering.message->share();
  if (entering.message->allocated() && !message.allocated()) return {};
  return framework_.fresh_item(entering, session, std::move(message));
}

ItemRef MicroParts::item_of(const Entering& entering) noexcept {
  Message& message = *entering.message;
  const std::size_t size = entering.direction == Direction::up ? attributes().header_size() : 0;
  std::byte scratch[Item::kAttributeBytes];
  const std::byte* const header = message.pop(size, scratch);
  if (header == nullptr && size != 0) return {};
  if (group_of(entering) != nullptr) return {};  // the verifier makes one for each member
  ItemRef item = framework_.fresh_item(entering, entering.session, Message());
  if (!item) return {};
  if (size != 0 && !attributes().read_header(*item, header)) {
    ++framework_.counted.malformed;
    entering.entry->malformed = true;
    return {};
  }
  item->message = std::move(message);
  entering.entry->item = item;
  return item;
}

bool MicroParts::may(const std::vector<std::string_view>& declared, std::string_view event, std::string_view verb) {
  if (std::ranges::find(declared, event) != declared.end()) return true;
  fail(fmt::format("its kind does not {} '{}'", verb, event));
  return false;
}

SendBit MicroParts::send_bit() {
  const SendBit bit = bag().add_send_bit();
  if (bit.mask == 0) fail("more than 63 micro-protocols have a say in when messages leave");
  return bit;
}

SendBit MicroParts::last_send_bit(std::function<void(const ItemRef&)> asked) {
  const SendBit bit = bag().add_last_send_bit(std::move(asked));
  if (bit.mask == 0)
    fail("another micro-protocol has the last word, or more than 63 have a say in when messages leave");
  return bit;
}

void MicroParts::later(std::function<void(MicroParts&)> look) {
  framework_.later_.emplace_back([parts = *this, look = std::move(look)]() mutable { look(parts); });
}

// ---- Framework ----

Framework::Framework(Host& host, std::string name, Protocol& below, std::size_t threads)
    : TransparentProtocol(host, std::move(name), below),
      events_(host, threads),
      popped_to_(*events_.find(kMessagePoppedToCp)),
      popped_from_(*events_.find(kMessagePoppedFromCp)),
      pushed_to_(*events_.find(kMessagePushedToCp)),
      pushed_from_(*events_.find(kMessagePushedFromCp)),
      request_ended_(*events_.find(kRequestEnded)),
      bag_(
          events_, *events_.find(kMessageInsertedIntoBag), *events_.find(kMessageDeletedFromBag),
          *events_.find(kMessageReadyToBeSent), [this](const ItemRef& item, Errc& outcome) { leave(item, outcome); },
          [this](const ItemRef& item) { return has_room(item); }),
      calls_(host, events_, host.random()) {
  // A request that is deleted before it reaches the protocol above has ended, too.
  events_.find(kMessageDeletedFromBag)
      ->add([this](const ItemRef& item) { over(item); },
            [](const ItemRef& item) { return item->request_ && !item->has_left(); });
}

Result<std::unique_ptr<Framework>> Framework::make(Host& host, std::string name, Protocol& below,
                                                   std::vector<Part> parts, std::size_t threads) {
  const auto failed = [&](const std::vector<std::string>& errors) {
    return Error{Errc::invalid_argument, fmt::format("{}: {}", name, fmt::join(errors, "; "))};
  };
  if (std::ranges::none_of(parts, [](const Part& part) { return part.kind.verifies; }))
    parts.push_back({verify_kind()});
  std::vector<const MicroKind*> kinds;
  for (const Part& part : parts) kinds.push_back(&part.kind);
  if (const auto errors = check_composition(kinds); !errors.empty()) {
    std::vector<std::string> texts;
    for (const auto& error : errors) texts.push_back(error.text);
    return failed(texts);
  }
  // The options of a graph's text have been checked already.
  for (const Part& part : parts)
    for (const OptionDescription& option : part.kind.options)
      if (part.options.has(option.name) && !in_range(option, part.options.text(option.name)))
        return failed(
            {fmt::format("'{}' is out of range for the option '{}' of {}, write {}", part.options.text(option.name),
                         option.name, part.kind.name, describe_range(option))});

  std::unique_ptr<Framework> made(new Framework(host, name, below, threads));
  made->parts_ = std::move(parts);
  for (const Part& part : made->parts_)
    if (part.kind.style != CallStyle::none) made->style_ = part.kind.style;
  for (const Part& part : made->parts_) {
    MicroParts for_it(*made, part.kind, part.options);
    auto micro = part.kind.make(for_it);
    if (!micro) return Error{micro.code(), fmt::format("{}: {}: {}", name, part.kind.name, micro.error().message())};
    made->micro_protocols_.push_back(std::move(micro).value());
  }
  for (std::size_t i = 0; i < made->later_.size(); ++i) std::exchange(made->later_[i], {})();  // may add some
  made->later_.clear();
  if (!made->errors_.empty()) return failed(made->errors_);
  made->attributes_.seal(std::move(made->mapping_));
  made->events_.shuffle();
  return made;
}

ItemRef Framework::fresh_item(const Entering& entering, const SessionRef& session, Message message) noexcept {
  ItemRef item = bag_.new_item(session, entering.direction, std::move(message));
  if (!item) return {};
  item->entered_ = true;
  item->call_ = entering.entry->call;
  item->answers_ = entering.entry->answers;
  return item;
}

Errc Framework::enter(const Raisable<Entering>& event, Session& session, Direction way, Message message, CallId call,
                      ItemRef answers) noexcept {
  Entering::Entry entry{.item = {}, .malformed = false, .call = call, .answers = std::move(answers), .told = {}};
  const Events::Turn turn(events_);
  events_.raise(event, Raise::synchronous, Entering{&message, SessionRef(&session), way, &entry});
  if (entry.told) return *entry.told;
  if (entry.item && entry.item->was_inserted()) return entry.item->outcome();
  if (!entry.malformed) ++counted.refused;
  return Errc::limit_reached;
}

Result<SessionRef> Framework::open(Protocol& high, const ParticipantSet& participants) {
  if (style_ == CallStyle::none || !Groups::is_group(participants.remote.host))
    return TransparentProtocol::open(high, participants);
  const SessionRef made(new GroupSession(*this, high, participants));
  auto& group = static_cast<GroupSession&>(*made);
  const auto members = group.members();
  if (std::ranges::any_of(members, [](const SessionRef& one) { return bool(one); })) return made;
  const std::string called = to_string(participants.remote.host);
  if (members.empty())
    return Error{Errc::host_unreachable, fmt::format("{}: this host knows nobody in the group {}", name(), called)};
  const Error& why = group.why_none();
  return Error{why.code, fmt::format("{}: no session to a member of the group {}: {}", name(), called, why.message())};
}

Errc Framework::push_through(Session& session, Message message) noexcept {
  if (style_ == CallStyle::call) return Errc::not_supported;
  const CallId call = style_ == CallStyle::push ? calls_.begin(session, nullptr, kNoLimit) : 0;
  if (style_ == CallStyle::push && call == 0) return Errc::limit_reached;
  const Errc outcome = enter(pushed_to_, session, Direction::down, std::move(message), call);
  if (outcome != Errc::ok) calls_.drop(call);  // the returned outcome tells the caller
  return outcome;
}

void Framework::call_through(Session& session, Message request, Transaction& transaction, Duration timeout) noexcept {
  if (style_ != CallStyle::call) return transaction.completed(Errc::not_supported, {});
  if (timeout <= Duration::zero()) return transaction.completed(Errc::call_aborted, {});
  const CallId call = calls_.begin(session, &transaction, timeout);
  if (call == 0) return transaction.completed(Errc::limit_reached, {});
  const Errc outcome = enter(pushed_to_, session, Direction::down, std::move(request), call);
  if (outcome != Errc::ok) calls_.end(call, outcome, {});
}

void Framework::pass_demux(TransparentSession& session, Message message) noexcept {
  if (message.size() < attributes_.header_size()) return dropped(counted.malformed);
  (void)enter(popped_to_, session, Direction::up, std::move(message));
}

void Framework::leave(const ItemRef& item, Errc& outcome) noexcept {
  auto& session = static_cast<TransparentSession&>(*item->session());
  if (item->direction == Direction::down) {
    outcome = send(session, *item);
    events_.raise(pushed_from_, Raise::synchronous, item);
  } else {
    deliver(session, item);
    events_.raise(popped_from_, Raise::synchronous, item);
  }
}

/// Whether a message that is to be a request finds room. One without room is not acknowledged, so it comes again.
/// Requests whose send bits are not all set take at most a part (kShareOfBuffers) of this host's buffers.
bool Framework::has_room(const ItemRef& item) noexcept {
  if (!item->request_) return true;
  const HostKey from = Peer::of(host(), *item).key_of_host();
  const std::size_t waits = item->missing_ != Item::kInsertion ? item->message.footprint() : 0;
  const bool room = places_.has_room(from, 1, kMostRequests) &&
                    (waits == 0 || (waiting_.has_room(from, waits, host().pool().limit() / kShareOfBuffers) &&
                                    (item->place_ = waiting_.take(from, waits))));
  if (!room) ++counted.refused;
  return room;
}

void Framework::deliver(TransparentSession& session, const ItemRef& item) noexcept {
  Message message = std::move(item->message);
  if (style_ == CallStyle::none || item->call_ != 0) {
    const Events::Outside outside(events_);
    return TransparentProtocol::pass_demux(session, std::move(message));
  }
  // Even beyond its host's share: the request found room when it came, and may have waited since.
  if (item->request_) item->place_ = places_.take(Peer::of(host(), *item).key_of_host(), 1);
  if (RequestSession* const made = item->place_ ? requests_.make(*this, item) : nullptr) {
    ++counted.received;
    item->given_ = true;
    const SessionRef request(made);
    const Events::Outside outside(events_);
    style_ == CallStyle::call ? session.high().call_demux(*request, std::move(message))
                              : session.high().demux(*request, std::move(message));
  } else {
    ++counted.refused;
    item->over_ = item->request_;
    item->place_ = {};
  }
  item->given_ = false;
  if (item->over_) events_.raise(request_ended_, Raise::asynchronous, item);
}

Errc Framework::send(TransparentSession& session, Item& item) noexcept {
  Message message = std::move(item.message);
  if (message.pool() == nullptr) message = Message(host().pool());
  if (const std::size_t size = attributes_.header_size(); size != 0) {
    std::byte* const to = message.push(size);
    if (to == nullptr) return dropped(counted.refused, Errc::limit_reached);
    attributes_.write_header(item, to);
  }
  const Events::Outside outside(events_);
  return TransparentProtocol::pass_push(session, std::move(message));
}

Errc Framework::control(control::Request& request) noexcept {
  counted.state = bag_.count() + calls_.count() + requests_.in_use();
  return with_header(TransparentProtocol::control(request), request, attributes_.header_size());
}

Errc Framework::pass_control(TransparentSession& session, control::Request& request) noexcept {
  if (style_ == CallStyle::call && std::holds_alternative<control::FreedByCancel>(request)) return Errc::ok;
  return with_header(TransparentProtocol::pass_control(session, request), request, attributes_.header_size());
}

Errc Framework::pass_high_control(Protocol& high, control::Request& request) noexcept {
  return with_header(TransparentProtocol::pass_high_control(high, request), request, attributes_.header_size());
}

}  // namespace lrpc::netrpc::composite
