// PAIRED's protocol object: opening and enabling, finding the end for a segment, and what is kept for how long.
#include "netrpc/protocols/paired/protocol.h"

#include "lrpc/detail/shim/most_of_one.h"
#include "lrpc/netrpc/session_cache.h"
#include "netrpc/src/attempt.h"
#include "netrpc/src/dropped.h"
#include "netrpc/src/header_room.h"

namespace lrpc::netrpc {

std::unique_ptr<Protocol> make_paired(Host& host, std::string name, Protocol& below, const PairedOptions& options) {
  return std::make_unique<paired::PairedProtocol>(host, std::move(name), below, options);
}

namespace paired {

namespace {
constexpr ParticipantSet kBelow{protocol_numbers::kPaired, {}, {}};

std::uint32_t meeting_of(std::uint64_t conversation) noexcept { return static_cast<std::uint32_t>(conversation); }
}  // namespace

PairedProtocol::PairedProtocol(Host& host, std::string name, Protocol& below, const PairedOptions& options)
    : Protocol(host, std::move(name)),
      options_(options),
      below_(below),
      call_number_(options.first_call != 0 ? options.first_call - 1
                                           : static_cast<std::uint32_t>(host.random() & 0x3fff'ffff)),
      room_([this] { deliver_waiting(); }),
      sweep_([this] { sweep(false); }) {}

PairedProtocol::~PairedProtocol() {
  if (!enabled_.empty()) below_.open_disable(*this, kBelow);
  // The protocol above may still refer to ends that are executing. Their replies will go nowhere.
  servers_.for_each([](const ChannelKey&, SessionRef& end) { static_cast<ServerEnd&>(*end).vanish(); });
}

Result<SessionRef> PairedProtocol::open(Protocol& high, const ParticipantSet& participants) {
  ParticipantSet whole = participants;
  whole.protocol = kBelow.protocol;
  Result<SessionRef> lower = below_.open(*this, whole);
  if (!lower) return lower;
  whole.protocol = participants.protocol;
  ChannelKey key{host().hash_seed(), lower->get(), participants.protocol, participants.remote.channel};
  const bool any = key.channel == 0;
  do {
    if (any) ++key.channel;
    auto* const known = clients_.resolve(key);
    if (known == nullptr) {
      whole.remote.channel = key.channel;
      auto of_host = of(peer_host(**lower, whole));
      keep_sweeping();  // first: it may throw
      auto& end =
          clients_.bind(key, std::make_unique<ClientEnd>(*this, high, whole, std::move(*lower), std::move(of_host)));
      return SessionRef(end.get());
    }
    // Its user has released it, and its last call has ended.
    if ((*known)->references() == 0 && (*known)->idle() && &(*known)->high() == &high) return SessionRef(known->get());
  } while (any && key.channel != 0xffff);
  return Error{Errc::limit_reached,
               name() + (any ? ": all channels to this host are in use" : ": the channel is in use")};
}

Status PairedProtocol::open_enable(Protocol& high, const ParticipantSet& participants) {
  if (Protocol** const known = enabled_.resolve(participants.protocol); known != nullptr && *known != &high)
    return Error{Errc::name_taken,
                 name() + ": protocol " + std::to_string(participants.protocol) + " is enabled already"};
  if (enabled_.empty())
    if (Status status = below_.open_enable(*this, kBelow); !status) return status;
  enabled_.bind(participants.protocol, &high);
  return {};
}

void PairedProtocol::open_disable(Protocol& high, const ParticipantSet& participants) noexcept {
  if (enabled_.unbind(participants.protocol, &high) && enabled_.empty()) below_.open_disable(*this, kBelow);
}

// ---- what arrives ----

void PairedProtocol::demux(Session& lower, Message message) noexcept {
  Message::Header<Header::kSize> raw;
  message.pop(raw);
  const std::optional<Header> header = raw ? Header::decode(raw.bytes, message.size()) : std::nullopt;
  if (!header) return dropped(counted.malformed);
  message.truncate(header->length);
  if (!header->has(bits::kFromServer)) return input_request(lower, *header, std::move(message));
  auto* const client = clients_.resolve({host().hash_seed(), &lower, header->protocol, header->channel});
  if (client == nullptr) return dropped(counted.no_session);
  ++counted.received;
  (*client)->pop(*header, std::move(message));
}

void PairedProtocol::input_request(Session& lower, const Header& header, Message&& message) noexcept {
  const std::uint32_t meeting = meeting_of(header.conversation);
  // Only a request for this life is executed. A client that forges its address may have guessed the meeting's number.
  if (header.conversation >> 32 != host().boot_id() || ahead(meeting, meetings_) > 0) {
    if (!header.has(bits::kAck)) meet(lower, header);
    return;
  }
  const ChannelKey key{host().hash_seed(), &lower, header.protocol, header.channel};
  SessionRef* const known = servers_.resolve(key);
  auto* end = known == nullptr ? nullptr : static_cast<ServerEnd*>(known->get());
  const std::int32_t newer = end == nullptr ? 1 : ahead(meeting, meeting_of(end->conversation()));
  if (newer < 0) return dropped(counted.refused);  // of a client's former life, or of a call that it has given up
  if (newer > 0) {
    if (!header.data() || header.segment != 1) return dropped(counted.no_session);
    if (end != nullptr) drop(key, *end);
    end = accept(lower, header);
    if (end == nullptr) return;
  }
  ++counted.received;
  end->pop(header, std::move(message));
}

/// Tells a client that does not name this life the number of a new conversation. This leaves no state.
void PairedProtocol::meet(Session& lower, const Header& header) noexcept {
  if (enabled_.resolve(header.protocol) == nullptr) return dropped(counted.no_session);
  Header answer = header;
  answer.control = bits::kProbe | bits::kAck | bits::kFromServer;
  answer.segment = answer.length = 0;
  answer.conversation = std::uint64_t{host().boot_id()} << 32 | ++meetings_;
  Message message(host().pool());
  if (!push_header(answer, message)) return;
  ++counted.sent;
  (void)lower.push(std::move(message));  // if it cannot be sent it is lost, as on the way
}

/// A channel is never forgotten to make room for a new one: its request could be executed twice.
ServerEnd* PairedProtocol::accept(Session& lower, const Header& header) noexcept {
  Protocol** const high = enabled_.resolve(header.protocol);
  ParticipantSet participants{header.protocol, {}, {}};
  participants.local.host = host().address();
  participants.remote = lower.participants().remote;
  participants.remote.host = peer_host(lower, lower.participants());
  participants.remote.channel = header.channel;
  std::shared_ptr<OfHost> of_host;
  if (high != nullptr && !host().short_of_memory() && servers_.size() < options_.sessions)
    attempt([&] { of_host = of(participants.remote.host); });
  if (of_host == nullptr || of_host->sessions >= options_.sessions_per_host ||
      !shim::one_may_take(1, of_host->sessions, servers_.size(), options_.sessions)) {
    ++(high == nullptr ? counted.no_session : counted.refused);
    return nullptr;
  }
  ServerEnd* end = nullptr;
  const bool kept = attempt([&] {
    keep_sweeping();
    const SessionRef made(
        // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): attempt() handles it
        end = new ServerEnd(*this, **high, participants, SessionRef(&lower), std::move(of_host), header.conversation));
    servers_.bind(end->key(), made);
  });
  if (!kept) return dropped(counted.refused, nullptr);
  if ((*high)->open_done(*end, participants) == Errc::ok) return end;
  ++counted.refused;
  drop(end->key(), *end);
  return nullptr;
}

// ---- what is kept ----

/// Takes room for the segment in the receive buffer. If there is none, the segment stays there: its sender is held up,
/// and neither end fails. One message of each host may exceed the host's share, and one message may exceed `memory`, so
/// that messages do not block each other.
bool PairedProtocol::take_room(End& end) noexcept {
  OfHost& of_host = *end.of_host_;
  const auto goes_on = [&end](bool room, const End*& beyond, bool& waiting) {
    if (!room && beyond == nullptr) beyond = &end;
    const bool goes = room || beyond == &end;
    waiting = waiting || !goes;
    return goes;
  };
  const std::size_t cost = end.buffer_.footprint();
  const std::size_t most = shim::most_of_one(of_host.received, received_bytes_, options_.memory);
  if (!goes_on(of_host.received + cost <= most, of_host.beyond, of_host.waiting) ||
      !goes_on(received_bytes_ + cost <= options_.memory, beyond_, waiting_for_room_))
    return false;
  received_bytes_ += cost;
  of_host.received += cost;
  end.cost_ += cost;
  return true;
}

void PairedProtocol::give_room(End& end) noexcept {
  OfHost& of_host = *end.of_host_;
  received_bytes_ -= end.cost_;
  of_host.received -= std::exchange(end.cost_, 0);
  if (beyond_ == &end) beyond_ = nullptr;
  if (of_host.beyond == &end) of_host.beyond = nullptr;
  deliver_soon(of_host);
}

/// A reply cannot wait for room, because it takes as much while it waits, and its request cannot be executed again. So
/// while the host's share of replies is used up, the request waits, with its last segment in the receive buffer.
bool PairedProtocol::has_room_for_reply(OfHost& of_host) noexcept {
  const auto within = [&](std::size_t in_use) {
    return of_host.kept < shim::most_of_one(of_host.kept, in_use, options_.memory);
  };
  const bool of_one = within(kept_bytes_);
  const bool of_all = kept_bytes_ < std::max<std::size_t>(options_.memory, 1);
  of_host.waiting = of_host.waiting || !of_one;
  const bool for_others = !of_one && within(of_host.kept);  // without what the others have, it would have room
  waiting_for_room_ = waiting_for_room_ || !of_all || for_others;
  return of_one && of_all;
}

void PairedProtocol::deliver_waiting() noexcept {
  waiting_for_room_ = false;
  of_hosts_.for_each([](const HostKey&, std::shared_ptr<OfHost>& of_host) { of_host->waiting = false; });
  std::vector<SessionRef> waiting;
  const bool all = attempt([&] {
    for (End* end = first_full_; end != nullptr; end = end->later_) waiting.emplace_back(end);
  });
  if (!all) host().events().schedule(room_, options_.probe);  // the others have their turn when there may be memory
  for (const SessionRef& end : waiting) static_cast<End&>(*end).deliver();
}

/// The no-activity timer of all channels. `at_once`: drops also those that were active since the last sweep.
void PairedProtocol::sweep(bool at_once) noexcept {
  if (!at_once && stood_still(host().now(), sweep_.due())) return keep_sweeping();
  const auto over = [at_once](auto& end) { return end.idle() && (!std::exchange(end.used, false) || at_once); };
  clients_.unbind_if(
      [&](const ChannelKey&, std::unique_ptr<ClientEnd>& end) { return end->references() == 0 && over(*end); });
  servers_.unbind_if([&](const ChannelKey&, SessionRef& kept) {
    auto& end = static_cast<ServerEnd&>(*kept);
    end.swept();
    return over(end);
  });
  of_hosts_.unbind_if([](const HostKey&, std::shared_ptr<OfHost>& of_host) { return of_host.use_count() == 1; });
  if (clients_.empty() && servers_.empty()) {
    host().events().cancel(sweep_);
  } else {
    keep_sweeping();
  }
}

Errc PairedProtocol::control(control::Request& request) noexcept {
  if (told_statistics(request, clients_.size() + servers_.size())) return Errc::ok;
  if (control::answered(request, control::MaximumMessage{options_.max_message})) return Errc::ok;
  if (control::answered(request, control::OptimumMessage{kSegment})) return Errc::ok;
  if (control::answered(request, control::AdvertisedMaximum{kSegment + Header::kSize})) return Errc::ok;
  if (std::holds_alternative<control::DropIdle>(request)) sweep(true);
  return below_.control(request);
}

}  // namespace paired
}  // namespace lrpc::netrpc
