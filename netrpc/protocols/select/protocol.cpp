#include "netrpc/protocols/select/protocol.h"

#include <algorithm>
#include <array>

#include "netrpc/src/header_room.h"

namespace lrpc::netrpc {

namespace {

/// The outcome of each SelectHeader::Status, in their order.
constexpr std::array kOutcomes{Errc::ok,          Errc::bad_procedure,    Errc::limit_reached,
                               Errc::call_failed, Errc::host_unreachable, Errc::host_unreachable,
                               Errc::call_lost};
static_assert(kOutcomes.size() == SelectHeader::kLost + 1);

/// Takes the header off a reply. CHANNEL has paired it with its request already.
Errc unwrap(Message& reply) noexcept {
  const std::optional<SelectHeader> header = pop_header<SelectHeader>(reply);
  return header && header->type == SelectHeader::kReply ? select_outcome(header->status) : Errc::call_failed;
}

}  // namespace

SelectHeader::Status select_status(Errc outcome) noexcept {
  const auto* const found = std::find(kOutcomes.begin(), kOutcomes.end(), outcome);
  return found == kOutcomes.end() ? SelectHeader::kFailed
                                  : static_cast<SelectHeader::Status>(found - kOutcomes.begin());
}

Errc select_outcome(std::uint8_t status) noexcept {
  return status < kOutcomes.size() ? kOutcomes[status] : Errc::call_failed;
}

// ---- the client's end ----

SelectSession::SelectSession(SelectProtocol& protocol, Protocol& high, const ParticipantSet& participants,
                             ChannelPool& pool) noexcept
    : Session(protocol, high, participants), pool_(pool) {
  ++pool.users;
}

void SelectSession::unreferenced() noexcept {
  auto& select = static_cast<SelectProtocol&>(protocol());
  select.sessions_.unbind({peer(), participants().remote.command, &high(), participants().remote.port});
  --pool_.users;  // the protocol's sweep will find it
  delete this;
}

void SelectSession::call(Message request, Transaction& transaction, Duration timeout) noexcept {
  if (request.pool() == nullptr) [[unlikely]]
    request = Message(protocol().host().pool());
  if (!push_header(SelectHeader{SelectHeader::kRequest, participants().remote.command, 0}, request)) [[unlikely]]
    return transaction.completed(Errc::limit_reached, {});
  pool_.call(std::move(request), transaction, timeout);
}

Errc SelectSession::control(control::Request& request) noexcept {
  if (std::holds_alternative<control::PeerHost>(request)) return Session::control(request);
  return less_header(pool_.control(request), request, SelectHeader::kSize);
}

// ---- the server's end ----

SelectServerSession::SelectServerSession(SelectProtocol& protocol, Protocol& high, const ParticipantSet& participants,
                                         Session& lower, std::uint16_t command) noexcept
    : Session(protocol, high, participants), lower_(&lower), command_(command) {}

void SelectServerSession::finish(SelectHeader::Status status, Message&& message) noexcept {
  if (std::exchange(answered_, true)) return;
  if (std::byte* const to = push_reply_header(message, protocol().host().pool(), SelectHeader::kSize)) [[likely]]
    SelectHeader{SelectHeader::kReply, command_, status}.encode(to);
  executed_ = status == SelectHeader::kOk;
  SelectServerSession*& finishing = static_cast<SelectProtocol&>(protocol()).finishing_;
  SelectServerSession* const outer = std::exchange(finishing, this);
  lower_->reply(std::move(message));
  finishing = outer;
}

Errc SelectServerSession::control(control::Request& request) noexcept {
  if (const auto* const refuse = std::get_if<control::Refuse>(&request)) {
    finish(select_status(refuse->reason), {});
    return Errc::ok;
  }
  return less_header(lower_->control(request), request, SelectHeader::kSize);
}

void SelectServerSession::unreferenced() noexcept {
  // The server dropped the request without a reply. Answer it, so that the channel does not stay in use for ever.
  if (!answered_) finish(SelectHeader::kFailed, {});
  static_cast<SelectProtocol&>(protocol()).requests_.destroy(*this);
}

// ---- the protocol ----

SelectProtocol::SelectProtocol(Host& host, std::string name, Protocol& below, const ChannelPoolOptions& options,
                               ProtocolNumber number)
    : Protocol(host, std::move(name)),
      below_(below),
      number_(number),
      pools_(*this, below, number, options, unwrap, counted.sent) {}

SelectProtocol::~SelectProtocol() {
  if (enabled_below_) below_.open_disable(*this, {number_, {}, {}});
}

Result<SessionRef> SelectProtocol::open(Protocol& high, const ParticipantSet& participants) {
  const CommandSessionKey key{participants.remote.host, participants.remote.command, &high, participants.remote.port};
  if (!key.host.known()) return Error{Errc::invalid_argument, name() + ": the remote host is missing"};
  if (SelectSession** const known = sessions_.resolve(key)) return SessionRef(*known);
  Result<ChannelPool*> pool = pools_.to(key.host, key.port);
  if (!pool) return pool.error();
  auto* const session = new SelectSession(*this, high, participants, **pool);
  SessionRef made(session);
  sessions_.bind(key, session);
  return made;
}

Status SelectProtocol::enable_below() {
  if (enabled_below_) return {};
  if (Status status = below_.open_enable(*this, {number_, {}, {}}); !status) return status;
  enabled_below_ = true;
  return {};
}

Status SelectProtocol::open_enable(Protocol& high, const ParticipantSet& participants) {
  const std::uint16_t command = participants.local.command;
  if (Protocol** const known = servers_.resolve(command); known != nullptr && *known != &high)
    return Error{Errc::name_taken, name() + ": command " + std::to_string(command) + " is served already"};
  if (Status status = enable_below(); !status) return status;
  servers_.bind(command, &high);
  return {};
}

void SelectProtocol::open_disable(Protocol& high, const ParticipantSet& participants) noexcept {
  servers_.unbind(participants.local.command, &high);
}

void SelectProtocol::call_demux(Session& lower, Message request) noexcept {
  const SelectHeader header = pop_header<SelectHeader>(request).value_or(SelectHeader());
  if (header.type != SelectHeader::kRequest) [[unlikely]] {
    ++counted.malformed;
    request.clear();
    lower.reply(Message(host().pool()));  // a reply without a header: the call has failed
    return;
  }
  Protocol** server = servers_.resolve(header.command);
  if (server == nullptr) [[unlikely]]
    server = servers_.resolve(0);
  ParticipantSet participants = lower.participants();
  participants.local.command = header.command;
  Protocol& high = server != nullptr ? **server : *this;
  SelectServerSession* const session = requests_.make(*this, high, participants, lower, header.command);
  if (session == nullptr) [[unlikely]] {
    ++counted.refused;
    request.clear();
    Message busy(host().pool());  // without memory for its header: the call has failed
    (void)push_header(SelectHeader{SelectHeader::kReply, header.command, SelectHeader::kBusy}, busy);
    return lower.reply(std::move(busy));
  }
  const SessionRef keep(session);
  if (server == nullptr) [[unlikely]]
    return unserved(*session, header, std::move(request));
  ++counted.received;
  high.call_demux(*session, std::move(request));
}

void SelectProtocol::unserved(SelectServerSession& session, const SelectHeader& /*header*/,
                              Message&& request) noexcept {
  ++counted.no_session;
  request.clear();
  session.finish(SelectHeader::kNoSuchCommand, Message(host().pool()));
}

/// A request that was not executed, or dropped without an answer, is answered nevertheless, after the server has undone
/// it.
Errc SelectProtocol::settle(control::Request& request) noexcept {
  if (finishing_ == nullptr) return Errc::not_supported;
  Protocol& server = finishing_->high();
  if (finishing_->executed_) return server.control(request);
  control::Request undo = control::Rollback{};
  if (&server != this) (void)server.control(undo);
  return Errc::ok;
}

Errc SelectProtocol::control(control::Request& request) noexcept {
  if (std::holds_alternative<control::Commit>(request)) return settle(request);
  if (told_statistics(request, sessions_.size() + requests_.in_use(), pools_.size())) return Errc::ok;
  if (std::holds_alternative<control::AdvertisedMaximum>(request)) return Errc::not_supported;  // asked from below
  if (std::holds_alternative<control::DropIdle>(request)) {
    pools_.drop_unused(true);
    return below_.control(request);
  }
  return less_header(below_.control(request), request, SelectHeader::kSize);
}

std::unique_ptr<Protocol> make_select(Host& host, std::string name, Protocol& below,
                                      const ChannelPoolOptions& options) {
  return std::make_unique<SelectProtocol>(host, std::move(name), below, options);
}

ProtocolKind select_kind() {
  return channel_pool_kind(
      "SELECT", "procedure identifiers, and a fixed number of channels to each host",
      {{"number", OptionType::number, "of the protocol, where several stand over one device, 240 to 252; default 203"}},
      [](const InstanceParts& parts, const ChannelPoolOptions& options) -> Result<std::unique_ptr<Protocol>> {
        const std::uint64_t number = parts.options.number("number", protocol_numbers::kSelect);
        constexpr ProtocolNumber kFirst = 240;  // the numbers that users assign, as in address.h
        constexpr ProtocolNumber kLast = 252;
        if (number != protocol_numbers::kSelect && (number < kFirst || number > kLast))
          return Error{Errc::invalid_argument, "number must be from 240 to 252"};
        return std::make_unique<SelectProtocol>(parts.host, parts.name, *parts.below.front(), options,
                                                static_cast<ProtocolNumber>(number));
      });
}

}  // namespace lrpc::netrpc
