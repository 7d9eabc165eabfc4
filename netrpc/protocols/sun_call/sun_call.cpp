#include "netrpc/protocols/sun_call/sun_call.h"

#include <optional>

#include "header_room.h"
#include "lrpc/netrpc/wire.h"
#include "netrpc/protocols/sun_call/rpc_message.h"
#include "transparent_layer.h"

namespace lrpc::netrpc {

namespace sun {
namespace {

constexpr ParticipantSet kBelow{protocol_numbers::kSunCall, {}, {}};

/// struct call_body, before the credential.
struct CallHeader {
  static constexpr std::size_t kSize = 16;
  std::uint32_t rpc_version = kRpcVersion;
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::uint32_t procedure = 0;

  void encode(std::byte* to) const noexcept { WireWriter(to).put(rpc_version, program, version, procedure); }
  [[nodiscard]] static CallHeader decode(const std::byte* from) noexcept {
    CallHeader header;
    WireReader(from).get(header.rpc_version, header.program, header.version, header.procedure);
    return header;
  }
};

std::optional<std::uint32_t> pop_word(Message& message) noexcept {
  Message::Header<4> raw;
  message.pop(raw);
  return raw ? std::optional(WireReader(raw.bytes).get<std::uint32_t>()) : std::nullopt;
}

/// Takes reply_stat off a reply, and says why a message was denied.
Errc take_reply_stat(Message& reply) noexcept {
  const std::optional<std::uint32_t> stat = pop_word(reply);
  if (stat == static_cast<std::uint32_t>(ReplyStat::accepted)) return Errc::ok;
  if (stat != static_cast<std::uint32_t>(ReplyStat::denied)) return Errc::call_failed;
  const std::optional<std::uint32_t> why = pop_word(reply);
  if (why == static_cast<std::uint32_t>(RejectStat::rpc_mismatch)) return Errc::not_supported;
  return why == static_cast<std::uint32_t>(RejectStat::auth_error) ? Errc::not_permitted : Errc::call_failed;
}

class SunCall;

/// The client's end: one for each procedure of a host that is open.
class SunCallSession final : public Session {
 public:
  SunCallSession(SunCall& protocol, Protocol& high, const ParticipantSet& participants, ChannelPool& pool) noexcept;
  void call(Message request, Transaction& transaction, Duration timeout) noexcept override;
  void cancel(Transaction& transaction) noexcept override { pool_.cancel(transaction); }
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  void unreferenced() noexcept override;
  ChannelPool& pool_;
};

/// The key of an open session: what it was opened with.
struct SunCallKey {
  HostKey host;
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::uint32_t procedure = 0;
  const Protocol* high = nullptr;

  static SunCallKey of(const Protocol& high, const ParticipantSet& participants) noexcept {
    const Participant& remote = participants.remote;
    return {{0, remote.host, remote.port}, remote.program, remote.version, remote.procedure, &high};
  }
  [[nodiscard]] std::uint64_t hash() const noexcept {
    return mix(mix(mix(host.hash(), program), std::uint64_t{version} << 32 | procedure),
               reinterpret_cast<std::uintptr_t>(high));
  }
  friend bool operator==(const SunCallKey&, const SunCallKey&) = default;
};

/// Transparent to requests that arrive: each is wrapped in a session that has its numbers.
class SunCall final : public TransparentProtocol {
 public:
  SunCall(Host& host, std::string name, Protocol& below, const ChannelPoolOptions& options)
      : TransparentProtocol(host, std::move(name), below),
        pools_(*this, below, kBelow.protocol, options, take_reply_stat, counted.sent) {}

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

  void pass_call_demux(TransparentSession& session, Message request) noexcept override;
  void pass_reply(TransparentSession& session, Message message) noexcept override;
  [[nodiscard]] Errc pass_control(TransparentSession& session, control::Request& request) noexcept override;

 private:
  friend class SunCallSession;
  void deny(TransparentSession& session, RejectStat why, std::initializer_list<std::uint32_t> numbers) noexcept;

  Map<SunCallKey, SunCallSession*> sessions_;
  ChannelPools pools_;
  Protocol* server_ = nullptr;  ///< The protocol that has enabled this one.
};

// ---- the client's end ----

SunCallSession::SunCallSession(SunCall& protocol, Protocol& high, const ParticipantSet& participants,
                               ChannelPool& pool) noexcept
    : Session(protocol, high, participants), pool_(pool) {
  ++pool.users;
}

void SunCallSession::unreferenced() noexcept {
  static_cast<SunCall&>(protocol()).sessions_.unbind(SunCallKey::of(high(), participants()));
  --pool_.users;  // the pools' sweep will find it
  delete this;
}

void SunCallSession::call(Message request, Transaction& transaction, Duration timeout) noexcept {
  auto& owner = static_cast<SunCall&>(protocol());
  if (request.pool() == nullptr) request = Message(owner.host().pool());
  std::byte* const to = request.push(CallHeader::kSize);
  if (to == nullptr) return transaction.completed(Errc::limit_reached, {});
  const Participant& remote = participants().remote;
  CallHeader{kRpcVersion, remote.program, remote.version, remote.procedure}.encode(to);
  pool_.call(std::move(request), transaction, timeout);
}

Errc SunCallSession::control(control::Request& request) noexcept {
  if (std::holds_alternative<control::PeerHost>(request)) return Session::control(request);
  return less_header(pool_.control(request), request, CallHeader::kSize);
}

// ---- the protocol ----

Result<SessionRef> SunCall::open(Protocol& high, const ParticipantSet& participants) {
  if (!participants.remote.host.known()) return Error{Errc::invalid_argument, name() + ": the remote host is missing"};
  const SunCallKey key = SunCallKey::of(high, participants);
  if (SunCallSession** const known = sessions_.resolve(key)) return SessionRef(*known);
  Result<ChannelPool*> pool = pools_.to(participants.remote.host, participants.remote.port);
  if (!pool) return pool.error();
  SessionRef made(new SunCallSession(*this, high, participants, **pool));
  sessions_.bind(key, static_cast<SunCallSession*>(made.get()));
  return made;
}

Status SunCall::open_enable(Protocol& high, const ParticipantSet& /*participants*/) {
  if (server_ == &high) return {};
  if (server_ != nullptr) return Error{Errc::name_taken, name() + ": " + server_->name() + " is served already"};
  if (Status status = TransparentProtocol::open_enable(high, kBelow); !status) return status;
  server_ = &high;
  return {};
}

void SunCall::open_disable(Protocol& high, const ParticipantSet& /*participants*/) noexcept {
  if (server_ != &high) return;
  server_ = nullptr;
  TransparentProtocol::open_disable(high, kBelow);
}

void SunCall::pass_call_demux(TransparentSession& session, Message request) noexcept {
  Message::Header<CallHeader::kSize> raw;
  request.pop(raw);
  if (!raw) {
    ++counted.malformed;
    // A reply without reply_stat says that the call has failed. CHANNEL needs a reply; over REQUEST_REPLY it does no
    // harm.
    return session.lower().reply(Message(host().pool()));
  }
  const CallHeader header = CallHeader::decode(raw.bytes);
  if (header.rpc_version != kRpcVersion) {
    ++counted.refused;
    request.clear();
    return deny(session, RejectStat::rpc_mismatch, {kRpcVersion, kRpcVersion});
  }
  Participant& local = session.own_participants().local;
  local.program = header.program;
  local.version = header.version;
  local.procedure = header.procedure;
  TransparentProtocol::pass_call_demux(session, std::move(request));
}

void SunCall::pass_reply(TransparentSession& session, Message message) noexcept {
  if (std::byte* const to = push_reply_header(message, host().pool(), 4))
    WireWriter(to).put(static_cast<std::uint32_t>(ReplyStat::accepted));
  TransparentProtocol::pass_reply(session, std::move(message));
}

void SunCall::deny(TransparentSession& session, RejectStat why, std::initializer_list<std::uint32_t> numbers) noexcept {
  Message message(host().pool());
  if (std::byte* const to = message.push(4 * (2 + numbers.size()))) {
    WireWriter writer(to);
    writer.put(static_cast<std::uint32_t>(ReplyStat::denied)).put(static_cast<std::uint32_t>(why));
    for (const std::uint32_t number : numbers) writer.put(number);
  }
  session.lower().reply(std::move(message));
}

Errc SunCall::pass_control(TransparentSession& session, control::Request& request) noexcept {
  if (auto* const refuse = std::get_if<control::Refuse>(&request)) {
    if (refuse->reason != Errc::not_permitted) return Errc::not_supported;
    ++counted.refused;
    const auto unspecified = static_cast<std::uint32_t>(AuthStat::failed);
    deny(session, RejectStat::auth_error, {refuse->detail != 0 ? refuse->detail : unspecified});
    return Errc::ok;
  }
  if (std::holds_alternative<control::ClaimedUser>(request)) return Errc::not_supported;  // no layer below knows either
  return less_header(TransparentProtocol::pass_control(session, request), request, CallHeader::kSize);
}

Errc SunCall::control(control::Request& request) noexcept {
  if (told_statistics(request, sessions_.size() + sessions(), pools_.size())) return Errc::ok;
  if (std::holds_alternative<control::DropIdle>(request)) {
    pools_.drop_unused(true);
    return below().control(request);
  }
  return less_header(TransparentProtocol::control(request), request, CallHeader::kSize);
}

}  // namespace
}  // namespace sun

std::unique_ptr<Protocol> make_sun_call(Host& host, std::string name, Protocol& below,
                                        const ChannelPoolOptions& options) {
  return std::make_unique<sun::SunCall>(host, std::move(name), below, options);
}

ProtocolKind sun_call_kind() {
  return channel_pool_kind("SUN_CALL", "Sun RPC's numbers of program, version and procedure", make_sun_call);
}

}  // namespace lrpc::netrpc
