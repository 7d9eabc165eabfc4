// The protocol: which peers have a session, and which are accepted.
#include "netrpc/devices/tcp/tcp.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <new>
#include <utility>

#include "lrpc/detail/shim/system/lack.h"
#include "netrpc/devices/device/device.h"
#include "netrpc/devices/device/internet_address.h"
#include "netrpc/devices/tcp/protocol.h"
#include "netrpc/src/attempt.h"
#include "netrpc/src/dropped.h"

namespace lrpc::netrpc {
namespace tcp {
namespace {

/// The longest pause between two searches for idle connections.
constexpr Duration kSweep = std::chrono::seconds(30);
/// The most connections that one search ends, of the kLooks that it looks at; then others have their turn.
constexpr std::size_t kEndedAtOnce = 32;
constexpr Duration kSweepAgain = std::chrono::milliseconds(1);
/// A connection ends if for so long nothing of what waits was sent, or nothing of what was sent was acknowledged: the
/// peer does not read, or the network loses it. The kernel by itself would try for a quarter of an hour.
constexpr Duration kStuck = std::chrono::seconds(30);
constexpr Duration kStuckInKernel = std::chrono::seconds(1);  ///< At least: an acknowledgement may be slow.
/// The pause before accepting again, after a connection for which there was no descriptor or no memory.
constexpr Duration kAcceptAgain = std::chrono::milliseconds(100);
/// Connections accepted in one turn: kAccepted. If the last turn left some waiting, it goes on for as long as they have
/// waited, at most kLongestAccepting. So accepting takes about half of the time, but none for a time in which no
/// connection waited.
constexpr int kAccepted = 16;
constexpr Duration kLongestAccepting = std::chrono::milliseconds(50);
/// Sessions that are looked at in one go, for idle connections, or for unused sessions when room is needed: as many as
/// `peers` is by default.
constexpr std::size_t kLooks = 256;

}  // namespace

TcpProtocol::TcpProtocol(Host& host, std::string name, const TcpOptions& options, HostAddress bound)
    : Protocol(host, std::move(name)),
      options_(options),
      bound_(bound),
      seed_(host.hash_seed()),
      sweep_([this] { sweep(); }),
      accept_again_([this] { listen_again(); }) {}

Status TcpProtocol::begin(UringEngine& engine) {
  auto made = Readiness::make(
      host(), engine, [this](std::uint64_t id, std::uint32_t events) { ready(id, events); },
      [this](std::uint64_t id) { return whose(id); });
  if (!made) return made.error();
  readiness_ = std::move(made).value();
  return {};
}

Status TcpProtocol::used_by(Protocol& high, ProtocolNumber number) {
  if (high_ != nullptr && (high_ != &high || number_ != number))
    return Error{Errc::name_taken, name() + ": it is " + high_->name() + "'s, and serves one protocol"};
  high_ = &high;
  number_ = number;
  return {};
}

Result<SessionRef> TcpProtocol::open(Protocol& high, const ParticipantSet& participants) {
  if (auto used = used_by(high, participants.protocol); !used) return used.error();
  const Participant& remote = participants.remote;
  if (!remote.host.known() || remote.port == 0)
    return Error{Errc::invalid_argument, name() + ": the remote host or its port is missing"};
  if (SessionRef* const known = sessions_.resolve(peer(remote))) {
    auto& session = static_cast<TcpSession&>(**known);
    if (session.passive_) opened_.push_back(&session);
    session.passive_ = false;
    session.place_ = {};
    return *known;
  }
  if (!may_open()) return no_room(*this, "sessions");
  ParticipantSet complete = participants;
  complete.local.host = host().address();
  auto* const opened = new TcpSession(*this, high, complete, {});
  SessionRef session(opened);
  std::list<TcpSession*> place{opened};  // before the bind(), since it may throw
  sessions_.bind(peer(remote), session);
  opened_.splice(opened_.end(), place);
  return session;
}

Status TcpProtocol::open_enable(Protocol& high, const ParticipantSet& participants) {
  if (auto used = used_by(high, participants.protocol); !used) return used.error();
  if (!options_.port)
    return Error{Errc::invalid_argument, name() + ": option `port` says where connections are accepted"};
  if (!listening_)
    if (auto listens = listen(); !listens) return listens;
  enabled_ = true;
  return {};
}

void TcpProtocol::open_disable(Protocol& high, const ParticipantSet& participants) noexcept {
  if (&high == high_ && participants.protocol == number_) enabled_ = false;
}

Status TcpProtocol::listen() {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return system_error("socket(SOCK_STREAM)", errno);
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in address = socket_address(bound_, *options_.port);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    if (errno == EADDRINUSE)
      return Error{Errc::name_taken, name() + ": port " + std::to_string(*options_.port) + " is in use"};
    return cannot_bind(name(), bound_, *options_.port, errno);
  }
  if (!readiness_->watch(socket.get(), kListening, EPOLLIN)) return shim::epoll_ctl_error(errno);
  listening_ = std::move(socket);
  return {};
}

void TcpProtocol::ready(std::uint64_t id, std::uint32_t events) noexcept {
  if (id == kListening) return accept();
  TcpSession** const found = connections_.resolve(id);
  if (found == nullptr) return;  // it has ended meanwhile
  const SessionRef keep(*found);
  static_cast<TcpSession&>(*keep).ready(events);
}

/// The peer's host. Accepting has its own turns.
std::uint64_t TcpProtocol::whose(std::uint64_t id) noexcept {
  TcpSession* const* const found = connections_.resolve(id);
  return found == nullptr ? HostAddress{}.value : (*found)->peer().value;
}

void TcpProtocol::accept() noexcept {
  const Time begun = host().now();
  const Time until = begun + std::min(begun - left_waiting_.value_or(begun), kLongestAccepting);
  left_waiting_.reset();
  for (int i = 0; i < kAccepted || host().now() < until; ++i) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    UniqueFd socket(
        ::accept4(listening_.get(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return listen_again();
      return host().events().schedule(accept_again_, kAcceptAgain);
    }
    const Participant remote{.host = {ntohl(from.sin_addr.s_addr)}, .ethernet = {}, .port = ntohs(from.sin_port)};
    if (!attempt([&] { admit(std::move(socket), remote); })) ++counted.refused;
  }
  pollfd more{listening_.get(), POLLIN, 0};
  if (::poll(&more, 1, 0) == 1) left_waiting_ = host().now();
  listen_again();
}

void TcpProtocol::admit(UniqueFd socket, const Participant& remote) {
  // A peer that connects again from the same port has lost its last connection, though that has not been noticed here.
  if (const SessionRef* const known = sessions_.resolve(peer(remote))) {
    const SessionRef last = *known;
    if (static_cast<TcpSession&>(*last).passive_) static_cast<TcpSession&>(*last).end();
  }
  // If this host has opened a session to that very port, the peer has another connection already.
  if (!enabled_ || host().short_of_memory() || sessions_.resolve(peer(remote)) != nullptr)
    return dropped(counted.refused);
  HostShares::Part place = place_for(remote.host);
  if (!place) return dropped(counted.refused);
  const ParticipantSet participants{number_, {.host = host().address(), .ethernet = {}}, remote};
  const SessionRef session(new TcpSession(*this, *high_, participants, std::move(socket)));
  sessions_.bind(peer(remote), session);
  auto& accepted = static_cast<TcpSession&>(*session);
  accepted.place_ = std::move(place);
  if (!watch_new(accepted)) return;
  if (high_->open_done(*session, session->participants()) == Errc::ok) return;
  ++counted.refused;
  accepted.end();
}

bool TcpProtocol::watch_new(TcpSession& session) noexcept {
  session.id_ = ++last_id_;
  session.moved_ = host().now();
  const int yes = 1;
  ::setsockopt(session.socket_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const auto unacknowledged = static_cast<unsigned>(
      std::chrono::ceil<std::chrono::milliseconds>(std::clamp(options_.idle, kStuckInKernel, kStuck)).count());
  ::setsockopt(session.socket_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged, sizeof unacknowledged);
  try {
    if (!sweep_.waiting()) host().events().schedule(sweep_, std::min(kSweep, options_.idle));
    connections_.bind(session.id_, &session);
    connected_.splice(connected_.end(), session.entry_);
    if (readiness_->watch(session.socket_.get(), session.id_,
                          EPOLLIN | (session.connecting_ ? std::uint32_t{EPOLLOUT} : 0U)))
      return true;
  } catch (const std::bad_alloc&) {
  }
  session.end();
  return false;
}

bool TcpProtocol::may_open() noexcept {
  if (sessions_.size() >= options_.peers) {
    const std::size_t looks = look_on();
    drop_unused(false, looks);
    if (sessions_.size() >= options_.peers) drop_unused(true, looks);
  }
  return sessions_.size() < options_.peers && !host().short_of_memory();
}

/// Peers share three quarters of all sessions, or what the sessions opened by this host leave, if that is less.
HostShares::Part TcpProtocol::place_for(HostAddress peer) {
  const std::size_t quarter = options_.peers / 4;
  if (opened_.size() > quarter) drop_unused(false, look_on());
  const std::size_t all = options_.peers - std::max(opened_.size(), quarter);
  return places_.take_within(std::max<std::size_t>(quarter, 1), {seed_, peer}, 1, all);
}

/// Moves the next kLooks of opened_ (all, if there are fewer) to its end, and returns how many they are.
std::size_t TcpProtocol::look_on() noexcept {
  const std::size_t looks = std::min(kLooks, opened_.size());
  opened_.splice(opened_.end(), opened_, opened_.begin(),
                 std::next(opened_.begin(), static_cast<std::ptrdiff_t>(looks)));
  return looks;
}

/// Drops, of the last `looks` in opened_, the sessions that nobody refers to and that have no connection; `connected`:
/// also those that have one, if nothing waits to be sent. A peer's session ends with its connection, and needs no look.
void TcpProtocol::drop_unused(bool connected, std::size_t looks) noexcept {
  for (auto next = std::prev(opened_.end(), static_cast<std::ptrdiff_t>(looks)); next != opened_.end();) {
    const auto place = next++;
    const TcpSession& session = **place;
    if (session.references() != 1 || (session.socket_ && !(connected && session.waiting_.empty()))) continue;
    opened_.erase(place);
    sessions_.unbind(peer(session.participants().remote));
  }
}

void TcpProtocol::forget(TcpSession& session) noexcept {
  session.place_ = {};
  const SessionRef* const known = sessions_.resolve(peer(session.participants().remote));
  if (known != nullptr && known->get() == &session) sessions_.unbind(peer(session.participants().remote));
}

/// Ends connections without traffic: the peer may have vanished. Looks at some, and soon goes on with the next ones,
/// until the round is over.
void TcpProtocol::sweep() noexcept {
  const Time now = host().now();
  std::array<SessionRef, kEndedAtOnce> idle;
  std::size_t count = 0;
  if (unswept_ == 0 || unswept_ > connected_.size()) unswept_ = connected_.size();
  for (std::size_t looks = std::min(kLooks, unswept_); looks != 0 && count < idle.size(); --looks, --unswept_) {
    TcpSession* const session = connected_.front();
    connected_.splice(connected_.end(), connected_, connected_.begin());
    const Duration most = session->waiting_.empty() ? options_.idle : std::min(options_.idle, kStuck);
    if (now - session->moved_ > most || session->done(1)) idle[count++] = SessionRef(session);
  }
  for (std::size_t i = 0; i < count; ++i) static_cast<TcpSession&>(*idle[i]).end();
  if (connected_.empty()) return;
  host().events().schedule(sweep_, unswept_ != 0 ? kSweepAgain : std::min(kSweep, options_.idle));
}

Errc TcpProtocol::control(control::Request& request) noexcept {
  if (control::answered(request, control::MaximumMessage{options_.longest})) return Errc::ok;
  if (control::answered(request, control::OptimumMessage{options_.longest})) return Errc::ok;
  if (control::answered(request, control::LocalHost{host().address()})) return Errc::ok;
  if (told_statistics(request, sessions_.size(), connections_.size())) return Errc::ok;
  if (std::holds_alternative<control::DropIdle>(request)) return drop_unused(true, opened_.size()), Errc::ok;
  return Errc::not_supported;
}

}  // namespace tcp

Result<std::unique_ptr<Protocol>> make_tcp(Host& host, std::string name, const TcpOptions& options) {
  if (options.peers == 0 || options.peers > TcpOptions::kMostPeers)
    return Error{Errc::invalid_argument, name + ": peers is not from 1 to 65536"};
  if (options.longest == 0 || options.longest > TcpOptions::kLongest)
    return Error{Errc::invalid_argument, name + ": longest is not from 1 to 1048576"};
  if (options.idle < std::chrono::milliseconds(1) || options.idle > std::chrono::hours(24))
    return Error{Errc::invalid_argument, name + ": idle is not from 1ms to 24h"};
  auto engine = device_engine(host, "TCP");
  if (!engine) return engine.error();
  auto bound = own_address(host, options.address);
  if (!bound) return Error{bound.error().code, name + ": " + bound.error().text};
  auto made = std::make_unique<tcp::TcpProtocol>(host, std::move(name), options, bound.value());
  if (auto begun = made->begin(*engine.value()); !begun) return begun.error();
  return made;
}

ProtocolKind tcp_kind() {
  ProtocolKind kind;
  kind.name = "TCP";
  kind.summary = "messages as records in TCP's streams, for one protocol; a peer is a host and a port";
  kind.options = {
      {"port", OptionType::number, "where this host accepts connections; default: it only makes some", false, "1",
       "65535"},
      {"address", OptionType::text, "this host's own; default: any"},
      {"peers", OptionType::number, "sessions at one time; default 256", false, "1", "65536"},
      {"longest", OptionType::number, "bytes of the longest message; default 131072", false, "1", "1048576"},
      {"idle", OptionType::duration, "after which a connection that nothing moves on ends; default 300s", false, "1ms",
       "86400s"},
  };
  kind.many_ports = [](const Options&) { return true; };
  kind.needs_port = true;
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    TcpOptions options;
    if (parts.options.has("port")) options.port = static_cast<std::uint16_t>(parts.options.number("port", 0));
    options.address = parts.options.text("address");
    options.peers = parts.options.number("peers", options.peers);
    options.longest = parts.options.number("longest", options.longest);
    options.idle = parts.options.duration("idle", options.idle);
    return make_tcp(parts.host, parts.name, options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
