#include "fuzz_device.h"

#include <algorithm>

namespace lrpc::netrpc::fuzz {

namespace {
constexpr std::size_t kMtu = 1500;
}  // namespace

class FuzzDevice::Port final : public Session {
 public:
  Port(FuzzDevice& device, Protocol& high, const ParticipantSet& participants)
      : Session(device, high, participants), device_(device) {}

  Errc push(Message message) noexcept override {
    if (message.size() > kMtu) return Errc::message_too_long;
    device_.last_.resize(message.size());
    message.copy_to(device_.last_);
    if (device_.on_push) device_.on_push(participants(), device_.last_);
    return Errc::ok;
  }

 private:
  FuzzDevice& device_;
};

FuzzDevice::~FuzzDevice() = default;

FuzzDevice::Port* FuzzDevice::port(Protocol& high, ProtocolNumber protocol, HostAddress peer) {
  for (const SessionRef& session : ports_) {
    if (&session->high() == &high && session->participants().protocol == protocol && session->peer() == peer)
      return static_cast<Port*>(session.get());
  }
  ParticipantSet participants{.protocol = protocol, .local = {}, .remote = {}};
  participants.local.host = host().address();
  participants.remote.host = peer;
  participants.remote.ethernet = peer.known() ? ethernet_of(peer) : kEthernetBroadcast;
  ports_.emplace_back(new Port(*this, high, participants));
  return static_cast<Port*>(ports_.back().get());
}

Result<SessionRef> FuzzDevice::open(Protocol& high, const ParticipantSet& participants) {
  return SessionRef(port(high, participants.protocol, participants.remote.host));
}

Status FuzzDevice::open_enable(Protocol& high, const ParticipantSet& participants) {
  enabled_.push_back({&high, participants.protocol});
  return {};
}

void FuzzDevice::open_disable(Protocol& high, const ParticipantSet& participants) noexcept {
  std::erase_if(enabled_, [&](const Enabled& e) { return e.high == &high && e.protocol == participants.protocol; });
}

Errc FuzzDevice::control(control::Request& request) noexcept {
  if (control::answered(request, control::MaximumMessage{kMtu})) return Errc::ok;
  if (control::answered(request, control::OptimumMessage{kMtu})) return Errc::ok;
  if (control::answered(request, control::LocalHost{host().address()})) return Errc::ok;
  if (auto* const resolve = std::get_if<control::Resolve>(&request)) {
    resolve->ethernet = ethernet_of(resolve->host);
    return Errc::ok;
  }
  return Protocol::control(request);
}

void FuzzDevice::arrive(std::uint8_t peer, std::uint8_t which, std::span<const std::byte> bytes,
                        std::span<const std::size_t> pieces) {
  if (enabled_.empty()) return;
  const Enabled to = enabled_[which % enabled_.size()];
  Message message(host().pool());
  const auto append = [&](std::size_t size) {
    Message piece = Message::copy_of(host().pool(), bytes.first(size));
    bytes = bytes.subspan(size);
    return piece.allocated() && message.append(std::move(piece));
  };
  for (const std::size_t size : pieces)
    if (!append(std::min(size, bytes.size()))) return;
  if (!append(bytes.size())) return;
  const std::size_t before = ports_.size();
  const SessionRef session(port(*to.high, to.protocol, peer_host(peer)));
  if (ports_.size() != before && to.high->open_done(*session, session->participants()) != Errc::ok) return;
  to.high->demux(*session, std::move(message));
}

void FuzzDevice::reflect(std::uint8_t peer, std::uint8_t which, std::uint8_t at, std::uint8_t change) {
  if (last_.empty()) return;
  std::vector<std::byte> bytes = last_;
  bytes[at % bytes.size()] ^= std::byte{change};
  arrive(peer, which, bytes);
}

ProtocolKind fuzz_device_kind(std::vector<FuzzDevice*>& made) {
  ProtocolKind kind;
  kind.name = "FUZZ";
  kind.summary = "the fuzzer's wire";
  kind.make = [&made](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    auto device = std::make_unique<FuzzDevice>(parts.host, parts.name);
    made.push_back(device.get());
    return std::unique_ptr<Protocol>(std::move(device));
  };
  return kind;
}

}  // namespace lrpc::netrpc::fuzz
