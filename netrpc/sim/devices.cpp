#include "netrpc/sim/devices.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lrpc/netrpc/session_cache.h"
#include "lrpc/netrpc/wire.h"
#include "netrpc/src/dropped.h"

namespace lrpc::netrpc {

namespace {
constexpr Duration kIdleTime = std::chrono::seconds(10);
/// The most sessions at a time. Beyond that, unused ones are dropped; if that does not help, new ones are refused. A
/// quarter is reserved for sessions that this host opens, as on a real wire.
constexpr std::size_t kMaxSessions = 65536;
constexpr std::size_t kMaxOfPeers = kMaxSessions - kMaxSessions / 4;
}  // namespace

// ---- what they have in common ----

SimDevice::SimDevice(SimHost& machine, std::string name, Medium medium)
    : Protocol(machine.host(), std::move(name)), machine_(machine), medium_(medium), idle_([this] { sweep(); }) {
  before_ = std::exchange(machine.life_->devices[static_cast<std::size_t>(medium)], this);
}

SimDevice::~SimDevice() {
  SimDevice** at = machine_.life_ == nullptr ? nullptr : &machine_.life_->devices[static_cast<std::size_t>(medium_)];
  while (at != nullptr && *at != nullptr && *at != this) at = &(*at)->before_;
  if (at != nullptr && *at == this) *at = before_;
  sessions_.clear();
}

Result<SessionRef> SimDevice::open(Protocol& high, const ParticipantSet& participants) {
  ParticipantSet complete_set = participants;
  Key key{0, participants.protocol};
  if (const Errc errc = complete(complete_set, key.remote); errc != Errc::ok) return errc;
  if (const SessionRef* const known = sessions_.resolve(key)) {
    if (&(*known)->high() != &high) return Error{Errc::name_taken, name() + ": another protocol has this number"};
    return *known;
  }
  if (sessions_.size() >= kMaxSessions) sweep();
  if (sessions_.size() >= kMaxSessions) return Errc::limit_reached;
  SessionRef session(new SimDeviceSession(*this, high, complete_set));
  sessions_.bind(key, session);
  if (!idle_.waiting()) host().events().schedule(idle_, kIdleTime);
  return session;
}

Status SimDevice::open_enable(Protocol& high, const ParticipantSet& participants) {
  if (participants.protocol == 0 || participants.protocol > 255)
    return Error{Errc::invalid_argument, name() + ": protocol numbers are from 1 to 255"};
  Protocol** const known = enabled_.resolve(participants.protocol);
  if (known != nullptr && *known != &high) return Error{Errc::name_taken, name() + ": the number is enabled already"};
  enabled_.bind(participants.protocol, &high);
  return {};
}

void SimDevice::open_disable(Protocol& high, const ParticipantSet& participants) noexcept {
  enabled_.unbind(participants.protocol, &high);
}

Errc SimDevice::control(control::Request& request) noexcept {
  if (control::answered(request, control::MaximumMessage{maximum()})) return Errc::ok;
  if (control::answered(request, control::OptimumMessage{optimum()})) return Errc::ok;
  if (control::answered(request, control::LocalHost{host().address()})) return Errc::ok;
  if (std::holds_alternative<control::DropIdle>(request)) return sweep(), Errc::ok;
  if (told_statistics(request, sessions_.size())) return Errc::ok;
  return Protocol::control(request);
}

void SimDevice::sweep() noexcept {
  sessions_.unbind_if([](const Key&, const SessionRef& session) { return session->references() == 1; });
  if (!sessions_.empty()) host().events().schedule(idle_, kIdleTime);
}

void SimDevice::arrived(const Key& key, const ParticipantSet& participants, const std::byte* data,
                        std::size_t size) noexcept {
  SessionRef session;
  if (const SessionRef* const known = sessions_.resolve(key)) {
    session = *known;
  } else {
    Protocol** const high = enabled_.resolve(key.protocol);
    if (high == nullptr) return dropped(counted.no_session);
    if (sessions_.size() >= kMaxOfPeers) sweep();
    if (sessions_.size() >= kMaxOfPeers) return dropped(counted.refused);
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): without memory a simulation ends
    session = SessionRef(new SimDeviceSession(*this, **high, participants));
    if ((*high)->open_done(*session, session->participants()) != Errc::ok) return dropped(counted.refused);
    sessions_.bind(key, session);
    if (!idle_.waiting()) host().events().schedule(idle_, kIdleTime);
  }
  Message message = Message::copy_of_long(host().pool(), {data, size});
  if (!message.allocated()) return dropped(counted.refused);
  ++counted.received;
  session->high().demux(*session, std::move(message));
}

Packet& SimDevice::packet_of(const Message& message, std::size_t header, std::size_t least) {
  const std::size_t size = std::max(header + message.size(), least);
  Packet& packet = world().queue_.make(size);
  message.copy_to({packet.bytes() + header, message.size()});
  std::memset(packet.bytes() + header + message.size(), 0, size - header - message.size());
  return packet;
}

// ---- Ethernet ----

Errc SimEthernet::complete(ParticipantSet& participants, std::uint64_t& remote) noexcept {
  if (participants.protocol == 0 || participants.protocol > 255) return Errc::invalid_argument;
  Participant& peer = participants.remote;
  if (!peer.ethernet.known()) {
    if (!peer.host.known()) return Errc::invalid_argument;
    control::Resolve wanted{peer.host, {}};
    if (const Errc errc = control::ask(*this, wanted); errc != Errc::ok) return errc;
    peer.ethernet = wanted.ethernet;
  } else if (!peer.host.known() && peer.ethernet != kEthernetBroadcast) {
    control::ResolveReverse wanted{peer.ethernet, {}};
    if (control::ask(*this, wanted) == Errc::ok) peer.host = wanted.host;
  }
  participants.local.host = host().address();
  participants.local.ethernet = machine().ethernet_address();
  remote = peer.ethernet.number();
  return Errc::ok;
}

Errc SimEthernet::control(control::Request& request) noexcept {
  if (auto* const resolve = std::get_if<control::Resolve>(&request)) {
    const SimHost* const found = world().find(resolve->host);
    if (!on_segment(found)) return Errc::host_unreachable;
    resolve->ethernet = found->ethernet_address();
    return Errc::ok;
  }
  if (auto* const reverse = std::get_if<control::ResolveReverse>(&request)) {
    const SimHost* const found = world().find(reverse->ethernet);
    if (!reverse_ || !on_segment(found)) return Errc::host_unreachable;
    reverse->host = found->address();
    return Errc::ok;
  }
  return SimDevice::control(request);
}

Errc SimEthernet::send(SimDeviceSession& session, Message message) noexcept {
  if (message.size() > mtu_) return Errc::message_too_long;
  const EthernetAddress& to = session.participants().remote.ethernet;
  const auto frame_to = [&](SimHost& receiver) {
    Packet& packet = packet_of(message, kHeader, kLeast);
    const auto type = static_cast<std::uint16_t>(types_ + session.participants().protocol);
    WireWriter(packet.bytes()).put(to.bytes, machine().ethernet_address().bytes, type);
    transmit(packet, receiver, 1);
  };
  ++counted.sent;
  if (to == kEthernetBroadcast) {
    for (std::size_t i = 0; i < world().hosts(); ++i) {
      SimHost& other = world().host(i);
      if (&other != &machine() && on_segment(&other)) frame_to(other);
    }
  } else if (SimHost* const receiver = world().find(to); on_segment(receiver)) {
    frame_to(*receiver);
  }  // else no host on the wire takes it
  return Errc::ok;
}

void SimEthernet::receive(const std::byte* bytes, std::size_t size) noexcept {
  WireReader reader(bytes);
  EthernetAddress to;
  EthernetAddress from;
  reader.get(to.bytes, from.bytes);
  const unsigned number = static_cast<unsigned>(reader.get<std::uint16_t>()) - types_;
  if ((to != machine().ethernet_address() && to != kEthernetBroadcast) || number == 0 || number > 255)
    return dropped(counted.malformed);  // the wire has corrupted it
  ParticipantSet participants{number, {}, {}};
  participants.remote.ethernet = from;
  Key key{0, number};
  if (complete(participants, key.remote) != Errc::ok) return;
  arrived(key, participants, bytes + kHeader, size - kHeader);
}

// ---- IP ----

Errc SimIp::complete(ParticipantSet& participants, std::uint64_t& remote) noexcept {
  if (participants.protocol == 0 || participants.protocol > 255) return Errc::invalid_argument;
  if (!participants.remote.host.known()) return Errc::invalid_argument;
  if (world().find(participants.remote.host) == nullptr) return Errc::host_unreachable;
  participants.local.host = host().address();
  remote = participants.remote.host.value;
  return Errc::ok;
}

Errc SimIp::send(SimDeviceSession& session, Message message) noexcept {
  if (message.size() > kMaximum) return Errc::message_too_long;
  SimHost* const receiver = world().find(session.participants().remote.host);
  if (receiver == nullptr) return Errc::host_unreachable;
  Packet& packet = packet_of(message, kHeader, kHeader);
  // As much of the header as matters here; the rest is zero.
  std::memset(packet.bytes(), 0, kHeader);
  packet.bytes()[9] = static_cast<std::byte>(session.participants().protocol);
  WireWriter(packet.bytes() + 12).put(host().address()).put(receiver->address());
  ++counted.sent;
  transmit(packet, *receiver, std::max<std::size_t>(1, (message.size() + kPart - 1) / kPart));
  return Errc::ok;
}

void SimIp::receive(const std::byte* bytes, std::size_t size) noexcept {
  const auto number = std::to_integer<ProtocolNumber>(bytes[9]);
  WireReader reader(bytes + 12);
  ParticipantSet participants{number, {}, {}};
  participants.remote.host = reader.get_host();
  Key key{0, number};
  if (reader.get_host() != host().address() || complete(participants, key.remote) != Errc::ok)
    return dropped(counted.malformed);  // the wire has corrupted it
  arrived(key, participants, bytes + kHeader, size - kHeader);
}

// ---- UDP ----

namespace {

/// The offset of the check, in the place of UDP's length and checksum. It covers all that is before and after it.
constexpr std::size_t kCheckAt = 24;

std::uint32_t check_of(const std::byte* bytes, std::size_t size) noexcept {
  std::uint32_t sum = 0x811c9dc5;
  for (std::size_t i = 0; i < size; ++i)
    if (i < kCheckAt || i >= SimUdp::kHeader) sum = (sum ^ std::to_integer<std::uint32_t>(bytes[i])) * 0x01000193;
  return sum;
}

/// A device without given ports gets kNumbers of them, from here on; each further one on the machine the next ones.
constexpr std::uint32_t kFreePorts = 32768;
constexpr std::uint32_t kNumbers = 256;

}  // namespace

SimUdp::SimUdp(SimHost& machine, std::string name, const UdpPorts& ports)
    : SimDevice(machine, std::move(name), Medium::udp), ports_(ports) {
  if (ports_.here != 0U) return;
  ports_.here = kFreePorts;
  for (const SimDevice* other = before(); other != nullptr; other = static_cast<const SimUdp*>(other)->before())
    *ports_.here += kNumbers;
}

Status SimUdp::open_enable(Protocol& high, const ParticipantSet& participants) {
  if (!takes_port(participants.protocol))
    return Error{Errc::name_taken, name() + ": another protocol has its one port"};
  return SimDevice::open_enable(high, participants);
}

bool SimUdp::takes_port(ProtocolNumber number) noexcept {
  if (ports_.only && user_ == 0) user_ = number;
  return !ports_.only || user_ == number;
}

Errc SimUdp::complete(ParticipantSet& participants, std::uint64_t& remote) noexcept {
  const ProtocolNumber number = participants.protocol;
  Participant& peer = participants.remote;
  if (number == 0 || number >= kNumbers || !peer.host.known() || !ports_.local(number) || !takes_port(number))
    return Errc::invalid_argument;
  if (world().find(peer.host) == nullptr) return Errc::host_unreachable;
  if (peer.port == 0) peer.port = ports_.remote(number).value_or(0);
  if (!ports_.allows(number, peer.port)) return Errc::invalid_argument;
  participants.local.host = host().address();
  remote = std::uint64_t{peer.host.value} << 16 | peer.port;
  return Errc::ok;
}

Errc SimUdp::send(SimDeviceSession& session, Message message) noexcept {
  if (message.size() > kMaximum) return Errc::message_too_long;
  const ParticipantSet& between = session.participants();
  SimHost* const receiver = world().find(between.remote.host);
  if (receiver == nullptr) return Errc::host_unreachable;
  Packet& packet = packet_of(message, kHeader, kHeader);
  std::memset(packet.bytes(), 0, kHeader);
  const std::uint16_t port = ports_.local(between.protocol).value_or(0);
  WireWriter(packet.bytes() + 12).put(host().address(), receiver->address(), port, between.remote.port);
  WireWriter(packet.bytes() + kCheckAt).put(check_of(packet.bytes(), packet.size));
  ++counted.sent;
  const std::size_t in_ip = message.size() + kHeader - SimIp::kHeader;
  transmit(packet, *receiver, (in_ip + SimIp::kPart - 1) / SimIp::kPart);
  return Errc::ok;
}

void SimUdp::receive(const std::byte* bytes, std::size_t size) noexcept {
  WireReader reader(bytes + 12);
  ParticipantSet participants;
  participants.remote.host = reader.get_host();
  const HostAddress to = reader.get_host();
  participants.remote.port = reader.get<std::uint16_t>();
  const auto port = reader.get<std::uint16_t>();
  const std::uint32_t first = ports_.here.value_or(ports_.peers);
  participants.protocol = port > first && port - first < kNumbers ? port - first : 0;
  if (ports_.only) participants.protocol = port == ports_.only ? user_ : 0;
  if (participants.protocol == 0 && before() != nullptr) return static_cast<SimUdp*>(before())->receive(bytes, size);
  Key key{0, participants.protocol};
  if (to != host().address() || reader.get<std::uint32_t>() != check_of(bytes, size) || participants.remote.port == 0 ||
      complete(participants, key.remote) != Errc::ok)
    return dropped(counted.malformed);
  arrived(key, participants, bytes + kHeader, size - kHeader);
}

}  // namespace lrpc::netrpc
