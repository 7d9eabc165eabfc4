// SIM_ETH, SIM_IP and SIM_UDP: the devices of simulated hosts, with the interface and the behaviour of ETH, IP and UDP.
#pragma once

#include <cstdint>

#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/map.h"
#include "netrpc/devices/udp/ports.h"
#include "netrpc/sim/world.h"

namespace lrpc::netrpc {

class SimDeviceSession;

/// What the devices have in common: sessions by peer and protocol number, and the enabled protocols.
class SimDevice : public Protocol {
 public:
  SimDevice(SimHost& machine, std::string name, Medium medium);
  ~SimDevice() override;

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

  /// A packet has arrived: inside the monitor.
  virtual void receive(const std::byte* bytes, std::size_t size) noexcept = 0;
  /// A session pushes.
  [[nodiscard]] virtual Errc send(SimDeviceSession& session, Message message) noexcept = 0;
  [[nodiscard]] virtual std::size_t maximum() const noexcept = 0;
  [[nodiscard]] virtual std::size_t optimum() const noexcept = 0;

 protected:
  /// Which session a packet is for.
  struct Key {
    std::uint64_t remote = 0;  ///< An Ethernet or an IP address, or that and a port.
    ProtocolNumber protocol = 0;
    [[nodiscard]] std::uint64_t hash() const noexcept { return mix(mix(0, remote), protocol); }
    friend bool operator==(const Key&, const Key&) = default;
  };
  /// Completes `participants`, and sets the `remote` of the key. Errors: host_unreachable, invalid_argument.
  [[nodiscard]] virtual Errc complete(ParticipantSet& participants, std::uint64_t& remote) noexcept = 0;
  /// Copies `size` bytes into a message of this host, and hands it up through the peer's session, made if need be.
  void arrived(const Key& key, const ParticipantSet& participants, const std::byte* data, std::size_t size) noexcept;
  /// Copies a message into a packet, behind `header` free bytes and filled up with zeros to `least` bytes.
  [[nodiscard]] Packet& packet_of(const Message& message, std::size_t header, std::size_t least);
  void transmit(Packet& packet, SimHost& to, std::size_t fragments) {
    world().send(packet, machine_, to, medium_, fragments);
  }
  [[nodiscard]] SimHost& machine() const noexcept { return machine_; }
  [[nodiscard]] SimWorld& world() const noexcept { return machine_.world(); }
  /// The device of the same medium that was made on this machine before; null: there is none.
  [[nodiscard]] SimDevice* before() const noexcept { return before_; }

 private:
  void sweep() noexcept;

  SimHost& machine_;
  const Medium medium_;
  SimDevice* before_;
  Map<Key, SessionRef> sessions_;
  Map<ProtocolNumber, Protocol*> enabled_;
  Event idle_;
};

class SimDeviceSession final : public Session {
 public:
  SimDeviceSession(SimDevice& device, Protocol& high, ParticipantSet participants)
      : Session(device, high, std::move(participants)), device_(device) {}
  [[nodiscard]] Errc push(Message message) noexcept override { return device_.send(*this, std::move(message)); }

 private:
  SimDevice& device_;
};

/// SIM_ETH: reaches the hosts of its segment (by host address, by Ethernet address, or all by kEthernetBroadcast).
/// Frames have 60 to 1514 bytes: a shorter one is padded, and arrives longer than it was sent. A protocol number (up to
/// 255) is sent as the ethertype `types` + number.
class SimEthernet final : public SimDevice {
 public:
  static constexpr std::size_t kHeader = 14;
  static constexpr std::size_t kMaximum = 1500;
  static constexpr std::size_t kLeast = 60;  ///< The shortest frame, without its check sequence.

  /// `reverse`: whether ResolveReverse finds the host of an Ethernet address. On a real wire it does not before ARP has
  /// heard of that host.
  explicit SimEthernet(SimHost& machine, std::string name = "eth", std::uint16_t types = 0xa700, bool reverse = true)
      : SimDevice(machine, std::move(name), Medium::ethernet), types_(types), reverse_(reverse) {}
  /// Sets `reverse` from now on.
  void set_reverse(bool reverse) noexcept { reverse_ = reverse; }
  /// The longest message from now on; kMaximum to begin with.
  void set_mtu(std::size_t mtu) noexcept { mtu_ = mtu; }
  void receive(const std::byte* bytes, std::size_t size) noexcept override;
  [[nodiscard]] Errc send(SimDeviceSession& session, Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;
  [[nodiscard]] std::size_t maximum() const noexcept override { return mtu_; }
  [[nodiscard]] std::size_t optimum() const noexcept override { return mtu_; }

 private:
  [[nodiscard]] Errc complete(ParticipantSet& participants, std::uint64_t& remote) noexcept override;
  /// False also for null.
  [[nodiscard]] bool on_segment(const SimHost* other) const noexcept {
    return other != nullptr && other->segment() == machine().segment();
  }

  const std::uint16_t types_;
  bool reverse_;
  std::size_t mtu_ = kMaximum;
};

/// SIM_IP: reaches every host of the world. IP fragments and reassembles messages of more than 1480 bytes: one is lost
/// if any of its fragments is.
class SimIp final : public SimDevice {
 public:
  static constexpr std::size_t kHeader = 20;
  static constexpr std::size_t kMaximum = 65515;
  static constexpr std::size_t kPart = 1480;

  explicit SimIp(SimHost& machine, std::string name = "ip") : SimDevice(machine, std::move(name), Medium::ip) {}
  void receive(const std::byte* bytes, std::size_t size) noexcept override;
  [[nodiscard]] Errc send(SimDeviceSession& session, Message message) noexcept override;
  [[nodiscard]] std::size_t maximum() const noexcept override { return kMaximum; }
  [[nodiscard]] std::size_t optimum() const noexcept override { return kPart; }

 private:
  [[nodiscard]] Errc complete(ParticipantSet& participants, std::uint64_t& remote) noexcept override;
};

/// SIM_UDP: reaches every host of the world, at a port. Messages are fragmented as SIM_IP's are. A datagram whose bits
/// the wire has flipped is dropped, as by UDP's checksum. A machine may have several of these devices, each with ports
/// of its own: they stand for programs.
class SimUdp final : public SimDevice {
 public:
  static constexpr std::size_t kHeader = 28;
  static constexpr std::size_t kMaximum = 65507;

  SimUdp(SimHost& machine, std::string name, const UdpPorts& ports);
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void receive(const std::byte* bytes, std::size_t size) noexcept override;
  [[nodiscard]] Errc send(SimDeviceSession& session, Message message) noexcept override;
  [[nodiscard]] std::size_t maximum() const noexcept override { return kMaximum; }
  [[nodiscard]] std::size_t optimum() const noexcept override { return SimIp::kPart - (kHeader - SimIp::kHeader); }

 private:
  [[nodiscard]] Errc complete(ParticipantSet& participants, std::uint64_t& remote) noexcept override;
  /// Whether protocol `number` may use the port: a single port (UdpPorts::only) is for the first protocol that asks.
  [[nodiscard]] bool takes_port(ProtocolNumber number) noexcept;

  UdpPorts ports_;
  ProtocolNumber user_ = 0;
};

/// The kinds for graphs of simulated hosts: SIM_ETH(types = 0xa700, reverse = 1), SIM_IP and SIM_UDP(ports,
/// local_ports, local_port, peer_ports), under the names given, so that a text that says ETH, IP and UDP can be
/// composed on simulated wires. On any other host, composing fails with invalid_argument.
[[nodiscard]] ProtocolKind sim_ethernet_kind(std::string name = "SIM_ETH");
[[nodiscard]] ProtocolKind sim_ip_kind(std::string name = "SIM_IP");
[[nodiscard]] ProtocolKind sim_udp_kind(std::string name = "SIM_UDP");

}  // namespace lrpc::netrpc
