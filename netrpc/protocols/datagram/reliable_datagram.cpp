#include "netrpc/protocols/datagram/reliable_datagram.h"

#include <array>

#include "lrpc/netrpc/session_cache.h"
#include "lrpc/netrpc/wire.h"
#include "netrpc/protocols/select/channel_pools.h"
#include "netrpc/src/attempt.h"
#include "netrpc/src/dropped.h"
#include "netrpc/src/header_room.h"
#include "netrpc/src/spares.h"

namespace lrpc::netrpc {

namespace {

constexpr std::size_t kHeader = 4;  // the number of the protocol above

class DatagramSession final : public Session {
 public:
  using Session::Session;
  [[nodiscard]] Errc push(Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;
  void pop(Message message) noexcept { high().demux(*this, std::move(message)); }

  ChannelPool* pool = nullptr;  ///< Null until the first push, if the session was made passively.

 protected:
  ~DatagramSession() override {
    if (pool != nullptr) --pool->users;
  }
};

class ReliableDatagram final : public Protocol {
 public:
  ReliableDatagram(Host& host, std::string name, Protocol& below, ReliableDatagramOptions options)
      : Protocol(host, std::move(name)),
        options_(std::move(options)),
        below_(below),
        sweep_([this] { sweep(); }),
        pools_(*this, below, protocol_numbers::kReliableDatagram, {options_.channels, options_.queue, options_.idle},
               unwrap, counted.sent) {}
  ~ReliableDatagram() override {
    if (!enabled_.empty()) below_.open_disable(*this, enabled_below());
    sessions_.clear();  // before the pools that they refer to
  }

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  void call_demux(Session& lower, Message request) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  friend class DatagramSession;
  struct Key {
    HostAddress host;
    ProtocolNumber protocol = 0;
    std::uint64_t seed = 0;  ///< This host's hash seed: peers choose the rest.
    [[nodiscard]] std::uint64_t hash() const noexcept { return mix(seed, std::uint64_t{host.value} << 32 | protocol); }
    friend bool operator==(const Key&, const Key&) = default;
  };
  /// A message under way. The object is used again.
  class Delivery final : public Transaction {
   public:
    explicit Delivery(ReliableDatagram& protocol) : protocol_(protocol) {}
    void completed(Errc outcome, Message /*reply*/) noexcept override {
      protocol_.deliveries_.give_back(*this);
      if (outcome == Errc::ok) return;
      ++protocol_.counted.failed;
      if (protocol_.options_.failed) protocol_.options_.failed(to.host, to.protocol, outcome);
    }
    Key to;

   private:
    ReliableDatagram& protocol_;
  };

  [[nodiscard]] ParticipantSet between(ProtocolNumber number, HostAddress remote) const noexcept {
    return {number, {.host = host().address()}, {.host = remote}};
  }
  [[nodiscard]] ParticipantSet enabled_below() const noexcept {
    return between(protocol_numbers::kReliableDatagram, {});
  }
  [[nodiscard]] Key key(HostAddress to, ProtocolNumber protocol) const noexcept {
    return {to, protocol, host().hash_seed()};
  }
  /// Empty: the message was taken. Otherwise it was dropped, by a host that has no room if there are two bytes.
  [[nodiscard]] static Errc unwrap(Message& reply) noexcept {
    return reply.empty() ? Errc::ok : reply.size() == 2 ? Errc::limit_reached : Errc::bad_procedure;
  }
  /// Errors: bad_procedure (nobody takes the message), limit_reached; then it is unchanged.
  [[nodiscard]] Errc deliver(Session& lower, Message& message) noexcept;
  void keep_sweeping() {
    if (!sweep_.waiting()) host().events().schedule(sweep_, options_.idle);
  }
  void sweep() noexcept;
  void drop_unused_sessions() noexcept {
    sessions_.unbind_if([](const Key&, const SessionRef& session) { return session->references() == 1; });
  }

  const ReliableDatagramOptions options_;
  Protocol& below_;
  Map<ProtocolNumber, Protocol*> enabled_;
  Map<Key, SessionRef> sessions_;
  Spares<Delivery> deliveries_;
  Event sweep_;
  ChannelPools pools_;
};

Errc DatagramSession::push(Message message) noexcept {
  auto& datagrams = static_cast<ReliableDatagram&>(protocol());
  if (pool == nullptr) {
    Result<ChannelPool*> found = datagrams.pools_.to(peer());
    if (!found) return found.code();
    pool = *found;
    ++pool->users;
  }
  if (pool->waiting() >= datagrams.options_.queue) return Errc::limit_reached;
  control::MaximumMessage largest;
  if (control::ask(*pool, largest) == Errc::ok && message.size() + kHeader > largest.size)
    return Errc::message_too_long;
  if (message.pool() == nullptr) message = Message(datagrams.host().pool());
  std::byte* const to = message.push(kHeader);
  if (to == nullptr) return Errc::limit_reached;
  WireWriter(to).put(participants().protocol);

  ReliableDatagram::Delivery* const delivery = datagrams.deliveries_.take(datagrams);
  if (delivery == nullptr) return Errc::limit_reached;
  delivery->to = datagrams.key(peer(), participants().protocol);
  pool->call(std::move(message), *delivery, kNoLimit);
  return Errc::ok;
}

Errc DatagramSession::control(control::Request& request) noexcept {
  if (pool == nullptr || std::holds_alternative<control::PeerHost>(request)) return Session::control(request);
  return less_header(pool->control(request), request, kHeader);
}

Result<SessionRef> ReliableDatagram::open(Protocol& high, const ParticipantSet& participants) {
  if (Status port = refuse_port(*this, participants); !port) return port.error();
  if (!participants.remote.host.known()) return Error{Errc::invalid_argument, name() + ": the remote host is missing"};
  const Key whole = key(participants.remote.host, participants.protocol);
  if (SessionRef* const known = sessions_.resolve(whole)) {
    if (&(*known)->high() == &high) return *known;
    return Error{Errc::name_taken,
                 name() + ": protocol " + std::to_string(participants.protocol) + " is another's with this host"};
  }
  keep_sweeping();
  Result<ChannelPool*> pool = pools_.to(whole.host);
  if (!pool) return pool.error();
  auto* const session = new DatagramSession(*this, high, participants);
  session->pool = *pool;
  ++session->pool->users;
  return sessions_.bind(whole, SessionRef(session));
}

Status ReliableDatagram::open_enable(Protocol& high, const ParticipantSet& participants) {
  if (Protocol** const known = enabled_.resolve(participants.protocol); known != nullptr && *known != &high)
    return Error{Errc::name_taken,
                 name() + ": protocol " + std::to_string(participants.protocol) + " is enabled already"};
  if (enabled_.empty())
    if (Status status = below_.open_enable(*this, enabled_below()); !status) return status;
  enabled_.bind(participants.protocol, &high);
  return {};
}

void ReliableDatagram::open_disable(Protocol& high, const ParticipantSet& participants) noexcept {
  if (enabled_.unbind(participants.protocol, &high) && enabled_.empty()) below_.open_disable(*this, enabled_below());
}

void ReliableDatagram::call_demux(Session& lower, Message request) noexcept {
  const SessionRef keep(&lower);
  const Errc outcome = deliver(lower, request);
  if (outcome == Errc::ok) return lower.reply(Message(host().pool()));
  // Its first bytes tell the sender: a new message might find no memory, and an empty reply means "taken".
  request.truncate(outcome == Errc::limit_reached ? 2 : 1);
  request.fit();
  lower.reply(std::move(request));
}

Errc ReliableDatagram::deliver(Session& lower, Message& message) noexcept {
  std::array<std::byte, kHeader> number;
  if (message.copy_to(number) != kHeader) return dropped(counted.malformed, Errc::bad_procedure);
  // All hosts whose address is unknown would share one session. It may be known by now, although it was not when the
  // channel began.
  const HostAddress from = peer_host(lower, lower.participants());
  if (!from.known()) return dropped(counted.refused, Errc::bad_procedure);
  const Key whole = key(from, WireReader(number.data()).get<ProtocolNumber>());
  SessionRef session;
  if (SessionRef* const known = sessions_.resolve(whole)) {
    session = *known;
  } else {
    Protocol** const high = enabled_.resolve(whole.protocol);
    if (high == nullptr) return dropped(counted.no_session, Errc::bad_procedure);
    if (sessions_.size() >= options_.sessions) return dropped(counted.refused, Errc::limit_reached);
    const ParticipantSet participants = between(whole.protocol, whole.host);
    const bool kept = attempt([&] {
      keep_sweeping();
      // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): attempt() handles it
      session = SessionRef(new DatagramSession(*this, **high, participants));
      sessions_.bind(whole, session);
    });
    if (!kept) return dropped(counted.refused, Errc::limit_reached);
    if (const Errc answer = (*high)->open_done(*session, participants); answer != Errc::ok) {
      sessions_.unbind(whole);
      return dropped(counted.refused, answer);
    }
  }
  ++counted.received;
  (void)message.pop(kHeader, number.data());
  static_cast<DatagramSession&>(*session).pop(std::move(message));
  return Errc::ok;
}

void ReliableDatagram::sweep() noexcept {
  drop_unused_sessions();
  if (!sessions_.empty()) keep_sweeping();
}

Errc ReliableDatagram::control(control::Request& request) noexcept {
  if (told_statistics(request, sessions_.size(), pools_.size() + deliveries_.in_use())) return Errc::ok;
  if (std::holds_alternative<control::DropIdle>(request)) {
    drop_unused_sessions();
    pools_.drop_unused(true);
  }
  return less_header(below_.control(request), request, kHeader);
}

}  // namespace

std::unique_ptr<Protocol> make_reliable_datagram(Host& host, std::string name, Protocol& below,
                                                 const ReliableDatagramOptions& options) {
  return std::make_unique<ReliableDatagram>(host, std::move(name), below, options);
}

ProtocolKind reliable_datagram_kind() {
  return {
      .name = "RELIABLE_DATAGRAM",
      .summary = "messages delivered once, or the sender is told",
      .below = {{"the protocol whose channels carry the messages", Service::transaction}},
      .options = {{"channels", OptionType::number, "messages under way to one host, 1 to 1024; default 8"},
                  {"queue", OptionType::number, "messages to one host that wait; default 64"},
                  {"idle", OptionType::duration, "after that time without use a session is let go of; default 30s"}},
      .make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
        ReliableDatagramOptions options;
        const auto pools = channel_pool_options(parts.options, {options.channels, options.queue, options.idle});
        if (!pools) return pools.error();
        options.channels = pools->channels;
        options.queue = pools->queue;
        options.idle = pools->idle;
        return make_reliable_datagram(parts.host, parts.name, *parts.below.front(), options);
      }};
}

}  // namespace lrpc::netrpc
