// What ETH, IP and UDP have in common: they stand on the kernel's sockets, one for each protocol number in use, and
// have one session for each protocol number and peer.
#pragma once

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "lrpc/netrpc/map.h"
#include "lrpc/netrpc/protocol.h"
#include "netrpc/devices/engine/uring_engine.h"

namespace lrpc::netrpc {

/// Bytes of an IP datagram that a link is assumed to carry while its MTU is unknown.
constexpr std::size_t kUsualMtu = 1500;

/// A peer as its device knows it: the key of its session (`number`: an Ethernet address, an IP address, or that and a
/// port), and its socket address.
struct DevicePeer {
  std::uint64_t number = 0;
  std::array<std::byte, 32> address{};
  std::size_t address_size = 0;  ///< 0: the address is not known yet.
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDelete): Device::found() has a reference to the session
  [[nodiscard]] bool found() const noexcept { return address_size != 0; }
  /// Stands for a host whose address its device is looking for. No Ethernet address has so large a number.
  [[nodiscard]] static DevicePeer to_be_found(HostAddress host) noexcept {
    return {.number = std::uint64_t{1} << 63 | host.value, .address = {}, .address_size = 0};
  }
  template <class Address>
  void set_address(const Address& from) noexcept {
    static_assert(sizeof from <= sizeof address);
    std::memcpy(address.data(), &from, sizeof from);
    address_size = sizeof from;
  }
};

class DeviceSession;

class Device : public Protocol {
 public:
  ~Device() override;
  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 protected:
  /// `peers`: the most sessions at one time. At the limit, sessions that nobody refers to are dropped; if there are
  /// none, new ones are refused. A quarter is reserved for sessions that are opened on this host. When a peer's message
  /// needs room, the protocols above are also asked to drop sessions that only they refer to (control::MakeRoom).
  Device(Host& host, std::string name, UringEngine& engine, std::size_t peers);

  // ---- what differs between the kinds of devices ----

  /// A blocking datagram socket for a protocol number. Errors: invalid_argument (no such number here), not_permitted
  /// (the text names the missing privilege and an alternative), system_error.
  virtual Result<int> make_socket(ProtocolNumber number) = 0;
  /// The peer that a participant names; DevicePeer::to_be_found() if it must be looked for first. Adds to the
  /// participant what the device knows.
  virtual Result<DevicePeer> peer_of(ProtocolNumber number, Participant& remote) = 0;
  /// Removes the kernel's header from a message of a protocol number, and sets `peer` to its sender. False: the message
  /// is not for this host, is malformed, or has a source address that no host has.
  [[nodiscard]] virtual bool accept(ProtocolNumber number, Message& message, std::span<const std::byte> from,
                                    DevicePeer& peer) noexcept = 0;
  /// The participant for a peer: for sessions made by a peer's message.
  virtual Participant participant_of(const DevicePeer& peer) noexcept = 0;
  /// The longest message; and the longest that goes to `peer` (not known: to any peer) unfragmented.
  [[nodiscard]] virtual std::size_t maximum() const noexcept = 0;
  [[nodiscard]] virtual std::size_t optimum(HostAddress peer) const noexcept = 0;
  /// Bytes of the kernel's headers in an IP datagram that arrives at a peer; and whether the kernel fragments longer
  /// messages.
  [[nodiscard]] virtual std::size_t kernel_headers() const noexcept { return 0; }
  [[nodiscard]] virtual bool cuts() const noexcept { return false; }
  [[nodiscard]] virtual Participant local() const noexcept = 0;
  /// Whether the kernel refuses messages without a byte, so that one has to be padded.
  [[nodiscard]] virtual bool pads_empty() const noexcept { return false; }
  /// The kernel has refused to send a message (`error`: an errno): what the device knows about the link may be
  /// outdated.
  virtual void refused(int /*error*/) noexcept {}
  /// Messages have been sent to a peer for kSilence, and none has come from it. Called for each further message to it.
  virtual void unheard(const Participant& /*remote*/, const DevicePeer& /*peer*/) noexcept {}
  /// Changes when addresses of peers may have become wrong. Then each session calls readdress() at its next message.
  [[nodiscard]] virtual std::uint64_t addressing() const noexcept { return 0; }
  /// Sets `peer` to where messages to `remote` under a protocol number must go now, and updates `remote`. False: this
  /// is not known now; `peer` is the best guess, if there is one, and the next message asks again.
  [[nodiscard]] virtual bool readdress(ProtocolNumber /*number*/, Participant& /*remote*/,
                                       DevicePeer& /*peer*/) noexcept {
    return true;
  }
  /// Whether a host that is being looked for may still be found.
  [[nodiscard]] virtual bool may_be_found(HostAddress /*host*/) noexcept { return false; }
  /// Call it when a host has been found: sends the messages that wait for that.
  void found(HostAddress host) noexcept;

  [[nodiscard]] UringEngine& engine() const noexcept { return engine_; }
  /// Calls visit(number, descriptor) for the socket of each protocol number.
  void each_socket(const std::function<void(ProtocolNumber number, int fd)>& visit) noexcept;

 private:
  friend class DeviceSession;
  struct Port;
  struct Key {
    std::uint64_t seed = 0;
    ProtocolNumber protocol = 0;
    std::uint64_t peer = 0;
    [[nodiscard]] std::uint64_t hash() const noexcept { return mix(mix(seed, protocol), peer); }
    friend bool operator==(const Key&, const Key&) = default;
  };

  Result<Port*> port(Protocol& high, ProtocolNumber number);
  /// `of_peer`: a peer's message makes the session, so no layer above is in a call of its own. Null: there is no room.
  [[nodiscard]] DeviceSession* make_session(Port& port, Protocol& high, const DevicePeer& peer, Participant remote,
                                            bool of_peer);
  void arrived(Port& port, Message message, std::span<const std::byte> from) noexcept;
  /// A message has arrived from `peer` through `session`.
  void heard(const SessionRef& session, const DevicePeer& peer, Message message) noexcept;
  void address_again(DeviceSession& session) noexcept;
  void doubt(DeviceSession& session) noexcept;
  [[nodiscard]] Errc keep_until_found(DeviceSession& session, Message message) noexcept;
  [[nodiscard]] DeviceSession* find(ProtocolNumber number, std::uint64_t peer) noexcept;
  std::size_t drop_unused(bool at_once);
  void sweep();

  UringEngine& engine_;
  const std::size_t peers_;
  const std::uint64_t seed_;
  std::map<ProtocolNumber, std::unique_ptr<Port>> ports_;
  Map<Key, SessionRef> sessions_;
  Event sweep_;
  Time may_search_{};
};

/// A session of a device: sends to one peer (or to all hosts on the link) under one protocol number.
class DeviceSession final : public Session {
 public:
  DeviceSession(Device& device, Protocol& high, ParticipantSet participants, SocketId socket, const DevicePeer& peer)
      : Session(device, high, std::move(participants)),
        device_(device),
        socket_(socket),
        peer_(peer),
        addressed_(device.addressing() - (peer.found() ? 0 : 1)) {}
  [[nodiscard]] Errc push(Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  friend class Device;
  /// The most that the peer receives in one packet, if it has advertised its MTU.
  [[nodiscard]] std::size_t received_there() const noexcept;
  Device& device_;
  const SocketId socket_;
  DevicePeer peer_;
  std::uint64_t addressed_;         ///< Device::addressing() when peer_ was right.
  std::vector<Message> waiting_;    ///< The first ones pushed while the peer is looked for.
  bool used_ = true;                ///< Since the last sweep.
  bool opened_ = false;             ///< By this host: the kernel chooses which of its addresses messages leave from.
  std::uint32_t heard_ = 0;         ///< Messages from the peer.
  std::uint32_t unheard_ = 0;       ///< Messages to the peer since the last one from it.
  std::uint32_t heard_before_ = 0;  ///< heard_ of all sessions with the peer, when silent_since_ was set.
  Time silent_since_{};
};

/// Parses the address that a device over IP is bound to: not known for an empty `text`. Sets the host's own address if
/// it is not known. Errors: invalid_argument.
Result<HostAddress> own_address(Host& host, const std::string& text);

/// The engine of a host, for devices. Errors: not_supported (the host has another engine: it is simulated).
Result<UringEngine*> device_engine(Host& host, std::string_view kind);

}  // namespace lrpc::netrpc
