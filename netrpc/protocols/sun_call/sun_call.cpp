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
  ProcedureKey called{};

  void encode(std::byte* to) const noexcept {
    WireWriter(to).put(rpc_version, called.program, called.version, called.procedure);
  }
  [[nodiscard]] static CallHeader decode(const std::byte* from) noexcept {
    CallHeader header;
    WireReader(from).get(header.rpc_version, header.called.program, header.called.version, header.called.procedure);
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

/// The key of an open session: what it was opened with.
struct SunCallKey {
  HostKey host;
  ProcedureKey procedure;
  const Protocol* high = nullptr;

  static SunCallKey of(const Protocol& high, const Participant& remote) noexcept {
    return {{0, remote.host, remote.port}, ProcedureKey::of(remote), &high};
  }
  [[nodiscard]] std::uint64_t hash() const noexcept {
    return mix(mix(host.hash(), procedure.hash()), reinterpret_cast<std::uintptr_t>(high));
  }
  friend bool operator==(const SunCallKey&, const SunCallKey&) = default;
};

/// The client's end: one for each procedure of a host that is open.
class SunCallSession final : public Session {
 public:
  SunCallSession(Protocol& protocol, Protocol& high, const ParticipantSet& participants, ChannelPool& pool) noexcept
      : Session(protocol, high, participants), pool_(pool) {
    ++pool.users;
  }
  void call(Message request, Transaction& transaction, Duration timeout) noexcept override {
    if (request.pool() == nullptr) request = Message(protocol().host().pool());
    if (!push_header(CallHeader{kRpcVersion, ProcedureKey::of(participants().remote)}, request))
      return transaction.completed(Errc::limit_reached, {});
    pool_.call(std::move(request), transaction, timeout);
  }
  void cancel(Transaction& transaction) noexcept override { pool_.cancel(transaction); }
  [[nodiscard]] Errc control(control::Request& request) noexcept override {
    if (std::holds_alternative<control::PeerHost>(request)) return Session::control(request);
    return less_header(pool_.control(request), request, CallHeader::kSize);
  }

 private:
  void unreferenced() noexcept override;
  ChannelPool& pool_;
};

/// Transparent to requests that arrive: each is wrapped in a session that has its numbers.
class SunCall final : public TransparentProtocol {
 public:
  SunCall(Host& host, std::string name, Protocol& below, const ChannelPoolOptions& options)
      : TransparentProtocol(host, std::move(name), below),
        pools_(*this, below, kBelow.protocol, options, take_reply_stat, counted.sent) {}

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    const Participant& remote = participants.remote;
    if (!remote.host.known()) return Error{Errc::invalid_argument, name() + ": the remote host is missing"};
    const auto key = SunCallKey::of(high, remote);
    if (SunCallSession** const known = sessions_.resolve(key)) return SessionRef(*known);
    Result<ChannelPool*> pool = pools_.to(remote.host, remote.port);
    if (!pool) return pool.error();
    SessionRef made(new SunCallSession(*this, high, participants, **pool));
    sessions_.bind(key, static_cast<SunCallSession*>(made.get()));
    return made;
  }
  Status open_enable(Protocol& high, const ParticipantSet& /*participants*/) override {
    if (server_ == &high) return {};
    if (server_ != nullptr) return Error{Errc::name_taken, name() + ": " + server_->name() + " is served already"};
    if (Status status = TransparentProtocol::open_enable(high, kBelow); !status) return status;
    server_ = &high;
    return {};
  }
  void open_disable(Protocol& high, const ParticipantSet& /*participants*/) noexcept override {
    if (server_ != &high) return;
    server_ = nullptr;
    TransparentProtocol::open_disable(high, kBelow);
  }
  [[nodiscard]] Errc control(control::Request& request) noexcept override {
    if (told_statistics(request, sessions_.size() + sessions(), pools_.size())) return Errc::ok;
    if (std::holds_alternative<control::DropIdle>(request)) {
      pools_.drop_unused(true);
      return below().control(request);
    }
    return less_header(TransparentProtocol::control(request), request, CallHeader::kSize);
  }

  void pass_call_demux(TransparentSession& session, Message request) noexcept override {
    const std::optional<CallHeader> header = pop_header<CallHeader>(request);
    if (!header) {
      ++counted.malformed;
      // A reply without reply_stat says that the call has failed. CHANNEL needs a reply; over REQUEST_REPLY it does no
      // harm.
      return session.lower().reply(Message(host().pool()));
    }
    if (header->rpc_version != kRpcVersion) {
      ++counted.refused;
      request.clear();
      return deny(session, RejectStat::rpc_mismatch, {kRpcVersion, kRpcVersion});
    }
    Participant& local = session.own_participants().local;
    local.program = header->called.program;
    local.version = header->called.version;
    local.procedure = header->called.procedure;
    TransparentProtocol::pass_call_demux(session, std::move(request));
  }
  void pass_reply(TransparentSession& session, Message message) noexcept override {
    if (std::byte* const to = push_reply_header(message, host().pool(), 4))
      WireWriter(to).put(static_cast<std::uint32_t>(ReplyStat::accepted));
    TransparentProtocol::pass_reply(session, std::move(message));
  }
  [[nodiscard]] Errc pass_control(TransparentSession& session, control::Request& request) noexcept override {
    if (auto* const refuse = std::get_if<control::Refuse>(&request)) {
      // For other reasons Sun RPC has no denial: the layer below says that the call has failed.
      if (refuse->reason != Errc::not_permitted) return TransparentProtocol::pass_control(session, request);
      ++counted.refused;
      const auto unspecified = static_cast<std::uint32_t>(AuthStat::failed);
      deny(session, RejectStat::auth_error, {refuse->detail != 0 ? refuse->detail : unspecified});
      return Errc::ok;
    }
    if (std::holds_alternative<control::ClaimedUser>(request)) return Errc::not_supported;  // no layer below knows it
    return less_header(TransparentProtocol::pass_control(session, request), request, CallHeader::kSize);
  }

 private:
  friend class SunCallSession;
  void deny(TransparentSession& session, RejectStat why, std::initializer_list<std::uint32_t> numbers) noexcept {
    Message message(host().pool());
    if (std::byte* const to = message.push(4 * (2 + numbers.size()))) {
      WireWriter writer(to);
      writer.put(static_cast<std::uint32_t>(ReplyStat::denied)).put(static_cast<std::uint32_t>(why));
      for (const std::uint32_t number : numbers) writer.put(number);
    }
    session.lower().reply(std::move(message));
  }

  Map<SunCallKey, SunCallSession*> sessions_;
  ChannelPools pools_;
  Protocol* server_ = nullptr;  ///< The protocol that has enabled this one.
};

void SunCallSession::unreferenced() noexcept {
  static_cast<SunCall&>(protocol()).sessions_.unbind(SunCallKey::of(high(), participants().remote));
  --pool_.users;  // the pools' sweep will find it
  delete this;
}

}  // namespace
}  // namespace sun

std::unique_ptr<Protocol> make_sun_call(Host& host, std::string name, Protocol& below,
                                        const ChannelPoolOptions& options) {
  return std::make_unique<sun::SunCall>(host, std::move(name), below, options);
}

ProtocolKind sun_call_kind() {
  return channel_pool_kind("SUN_CALL", "Sun RPC's numbers of program, version and procedure", {},
                           [](const InstanceParts& parts, const ChannelPoolOptions& options) {
                             return make_sun_call(parts.host, parts.name, *parts.below.front(), options);
                           });
}

}  // namespace lrpc::netrpc
