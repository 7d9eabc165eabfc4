#include "netrpc/devices/device/device.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>

#include "netrpc/devices/device/interface.h"
#include "netrpc/src/attempt.h"
#include "netrpc/src/dropped.h"

namespace lrpc::netrpc {

namespace {
/// A session that only this protocol refers to is dropped after one to two of these periods without a message.
constexpr Duration kIdle = std::chrono::seconds(30);
constexpr Duration kSearchPause = std::chrono::milliseconds(10);
/// A peer that has been sent messages for this long, and has sent none, may have moved.
constexpr Duration kSilence = std::chrono::milliseconds(200);
/// Messages without an answer before the clock is read.
constexpr std::uint32_t kUnheard = 4;
/// Messages that a session keeps until its peer's address is known: enough for a burst of FRAGMENT.
constexpr std::size_t kWaiting = 16;
}  // namespace

/// A protocol number that is in use here, and its socket.
struct Device::Port final : SocketReader {
  Port(Device& of_device, Protocol& of_high, ProtocolNumber of_number) noexcept
      : device(of_device), high(of_high), number(of_number) {}
  ~Port() { device.engine_.remove(socket); }
  void arrived(Message message, std::span<const std::byte> from) noexcept override {
    device.arrived(*this, std::move(message), from);
  }
  void send_failed(int error) noexcept override {
    ++device.counted.failed;
    device.refused(error);
  }

  Device& device;
  Protocol& high;
  const ProtocolNumber number;
  SocketId socket;
  bool enabled = false;  ///< A peer's message may make a session.
};

Result<UringEngine*> device_engine(Host& host, std::string_view kind) {
  auto* const engine = dynamic_cast<UringEngine*>(&host.engine());
  if (engine == nullptr)
    return Error{Errc::not_supported, std::string(kind) + " is a real device, and this host is simulated"};
  return engine;
}

Result<HostAddress> own_address(Host& host, const std::string& text) {
  HostAddress bound;
  if (!text.empty()) {
    const auto parsed = parse_host(text);
    if (!parsed) return Error{Errc::invalid_argument, why_no_host(text)};
    bound = *parsed;
  }
  if (!host.address().known()) {
    if (bound.known()) {
      host.set_address(bound);
    } else if (auto interface = find_interface({})) {
      host.set_address(interface.value().host);
    }
  }
  return bound;
}

Device::Device(Host& host, std::string name, UringEngine& engine, std::size_t peers)
    : Protocol(host, std::move(name)), engine_(engine), peers_(peers), seed_(host.hash_seed()), sweep_([this] {
        sweep();
      }) {}

Device::~Device() = default;

Result<Device::Port*> Device::port(Protocol& high, ProtocolNumber number) {
  if (const auto found = ports_.find(number); found != ports_.end()) {
    if (&found->second->high != &high)
      return Error{Errc::name_taken,
                   "protocol number " + std::to_string(number) + " is " + found->second->high.name() + "'s"};
    return found->second.get();
  }
  auto socket = make_socket(number);
  if (!socket) return socket.error();
  auto made = std::make_unique<Port>(*this, high, number);
  made->socket = engine_.add(host(), socket.value(), *made);
  return ports_.emplace(number, std::move(made)).first->second.get();
}

Status Device::open_enable(Protocol& high, const ParticipantSet& participants) {
  auto found = port(high, participants.protocol);
  if (!found) return found.error();
  found.value()->enabled = true;
  return {};
}

void Device::open_disable(Protocol& high, const ParticipantSet& participants) noexcept {
  const auto found = ports_.find(participants.protocol);
  if (found != ports_.end() && &found->second->high == &high) found->second->enabled = false;
}

Result<SessionRef> Device::open(Protocol& high, const ParticipantSet& participants) {
  auto found = port(high, participants.protocol);
  if (!found) return found.error();
  Participant remote = participants.remote;
  auto peer = peer_of(participants.protocol, remote);
  if (!peer) return peer.error();
  if (DeviceSession* const known = find(participants.protocol, peer.value().number); known != nullptr) {
    // A machine may have several addresses on a link. The session follows the address that its users have opened, even
    // if the other addresses move.
    Participant& there = known->mutable_participants().remote;
    const bool in_use = there.host.known() && known->references() > 1;
    if (remote.host.known() && !in_use) there.host = remote.host;
    known->opened_ = true;
    known->peer_.address = peer.value().address;  // without an address of this host
    return SessionRef(known);
  }
  DeviceSession* const session = make_session(*found.value(), high, peer.value(), remote, false);
  if (session == nullptr) return no_room(*this, "sessions");
  session->opened_ = true;
  return SessionRef(session);
}

DeviceSession* Device::make_session(Port& port, Protocol& high, const DevicePeer& peer, Participant remote,
                                    bool of_peer) {
  if (host().short_of_memory()) return nullptr;
  const std::size_t limit = of_peer ? peers_ - peers_ / 4 : peers_;
  if (sessions_.size() >= limit) {
    // Searches only now and then: packets from forged addresses must not cost a search each.
    if (host().now() < may_search_) return nullptr;
    may_search_ = host().now() + kSearchPause;
    drop_unused(true);
    // A protocol above may refer to sessions of another one above: after two rounds both have dropped theirs.
    for (int round = 0; round < 2 && of_peer && sessions_.size() >= limit; ++round) {
      for (const auto& [number, above] : ports_) {
        control::Request room = control::MakeRoom{};
        (void)above->high.control(room);
      }
      drop_unused(true);
    }
    if (sessions_.size() >= limit) return nullptr;
  }
  if (sessions_.empty()) host().events().schedule(sweep_, kIdle);
  auto* const session = new DeviceSession(*this, high, {port.number, local(), remote}, port.socket, peer);
  sessions_.bind({seed_, port.number, peer.number}, SessionRef(session));
  return session;
}

void Device::arrived(Port& port, Message message, std::span<const std::byte> from) noexcept {
  DevicePeer peer;
  if (!accept(port.number, message, from, peer)) return dropped(counted.malformed);
  SessionRef session(find(port.number, peer.number));
  if (!session) {
    const Participant remote = participant_of(peer);
    // An opened session may be looking for this host.
    if (remote.host.known()) found(remote.host);
    session = SessionRef(find(port.number, peer.number));
    if (!session && !port.enabled) return dropped(counted.no_session);
    if (session) return heard(session, peer, std::move(message));
    DeviceSession* const made = make_session(port, port.high, peer, remote, true);
    if (made == nullptr) return dropped(counted.refused);
    session = SessionRef(made);
    if (port.high.open_done(*session, session->participants()) != Errc::ok) {
      sessions_.unbind({seed_, port.number, peer.number});
      return dropped(counted.refused);
    }
  }
  heard(session, peer, std::move(message));
}

void Device::heard(const SessionRef& session, const DevicePeer& peer, Message message) noexcept {
  auto& from = static_cast<DeviceSession&>(*session);
  // UDP's says which address of this host the message was sent to: the answer leaves from there.
  if (!from.opened_) from.peer_.address = peer.address;
  from.used_ = true;
  ++from.heard_;
  from.unheard_ = 0;
  ++counted.received;
  from.high().demux(from, std::move(message));
}

void Device::each_socket(const std::function<void(ProtocolNumber number, int fd)>& visit) noexcept {
  for (const auto& [number, port] : ports_)
    if (const int fd = engine_.descriptor(port->socket); fd >= 0) visit(number, fd);
}

/// Looks up the peer's address again, and binds the session to the new one. If a message from the new address has made
/// a session there already, both stay: that one receives, and the protocols above hear both.
void Device::address_again(DeviceSession& session) noexcept {
  const std::uint64_t before = session.peer_.number;
  const std::uint64_t asked = addressing();
  if (readdress(session.participants().protocol, session.mutable_participants().remote, session.peer_))
    session.addressed_ = asked;
  if (session.peer_.number == before) return;
  const SessionRef keep(&session);
  const Key found{seed_, session.participants().protocol, session.peer_.number};
  if (!sessions_.unbind({seed_, session.participants().protocol, before}, keep)) return;
  if (sessions_.resolve(found) != nullptr) return;
  attempt([&] { sessions_.bind(found, keep); });  // without memory: the peer's next message makes another one
}

DeviceSession* Device::find(ProtocolNumber number, std::uint64_t peer) noexcept {
  const SessionRef* const known = sessions_.resolve({seed_, number, peer});
  return known == nullptr ? nullptr : static_cast<DeviceSession*>(known->get());
}

void Device::found(HostAddress host) noexcept {
  const std::uint64_t before = DevicePeer::to_be_found(host).number;
  for (const auto& [number, port] : ports_) {
    DeviceSession* const session = find(number, before);
    if (session == nullptr) continue;
    const SessionRef keep(session);
    address_again(*session);
    if (!session->peer_.found()) continue;
    std::vector<Message> waiting;
    waiting.swap(session->waiting_);
    for (Message& message : waiting) static_cast<void>(session->push(std::move(message)));
  }
}

/// Keeps the first messages, as the kernel does while it waits for ARP's answer; drops the others.
Errc Device::keep_until_found(DeviceSession& session, Message message) noexcept {
  if (!may_be_found(session.peer())) {
    session.waiting_.clear();
    return Errc::host_unreachable;
  }
  if (session.waiting_.size() < kWaiting) attempt([&] { session.waiting_.push_back(std::move(message)); });
  return Errc::ok;
}

/// Checks whether the peer is silent. Answers may come under another protocol number than the messages (small ones
/// bypass FRAGMENT, for example), so this counts the messages of all sessions with the peer.
void Device::doubt(DeviceSession& session) noexcept {
  const Time now = host().now();
  if (session.unheard_ != kUnheard && now - session.silent_since_ < kSilence) return;
  std::uint32_t heard = 0;
  for (const auto& [number, port] : ports_)
    if (const DeviceSession* const known = find(number, session.peer_.number); known != nullptr) heard += known->heard_;
  if (session.unheard_ == kUnheard || heard != session.heard_before_) {
    session.silent_since_ = now;
    session.heard_before_ = heard;
    return;
  }
  unheard(session.participants().remote, session.peer_);
}

std::size_t Device::drop_unused(bool at_once) {
  return sessions_.unbind_if([at_once](const Key&, SessionRef& session) {
    const bool idle = !std::exchange(static_cast<DeviceSession&>(*session).used_, false);
    return session->references() == 1 && (idle || at_once);
  });
}

void Device::sweep() {
  drop_unused(false);
  if (!sessions_.empty()) host().events().schedule(sweep_, kIdle);
}

Errc Device::control(control::Request& request) noexcept {
  if (control::answered(request, control::MaximumMessage{maximum()})) return Errc::ok;
  if (control::answered(request, control::OptimumMessage{optimum({})})) return Errc::ok;
  if (control::answered(request, control::LocalHost{local().host})) return Errc::ok;
  if (told_statistics(request, sessions_.size(), ports_.size())) return Errc::ok;
  if (std::holds_alternative<control::DropIdle>(request)) return drop_unused(true), Errc::ok;
  return Errc::not_supported;
}

Errc DeviceSession::push(Message message) noexcept {
  if (addressed_ != device_.addressing()) [[unlikely]]
    device_.address_again(*this);
  if (++unheard_ >= kUnheard && peer_.found()) [[unlikely]]
    device_.doubt(*this);
  if (message.size() > device_.maximum()) return Errc::message_too_long;
  if (message.empty() && device_.pads_empty()) {
    std::byte* const padding = message.push(1);
    if (padding == nullptr) return Errc::limit_reached;
    *padding = std::byte{0};
  }
  used_ = true;
  if (!peer_.found()) [[unlikely]]
    return device_.keep_until_found(*this, std::move(message));
  ++device_.counted.sent;
  device_.engine_.send(socket_, std::move(message), {peer_.address.data(), peer_.address_size});
  return Errc::ok;
}

std::size_t DeviceSession::received_there() const noexcept {
  const std::size_t mtu = device_.host().peers().mtu(peer());
  return mtu == 0 ? std::numeric_limits<std::size_t>::max() : mtu - device_.kernel_headers();
}

Errc DeviceSession::control(control::Request& request) noexcept {
  if (auto* const best = std::get_if<control::OptimumMessage>(&request)) {
    best->size = std::min(device_.optimum(peer()), received_there());
    return Errc::ok;
  }
  if (auto* const longest = std::get_if<control::MaximumMessage>(&request); longest != nullptr && !device_.cuts()) {
    longest->size = std::min(device_.maximum(), received_there());
    return Errc::ok;
  }
  return Session::control(request);
}

}  // namespace lrpc::netrpc
