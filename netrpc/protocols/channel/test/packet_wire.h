// Two or more hosts whose packets the test holds: each packet is kept until the test delivers, repeats or drops it. The
// test also advances the clock.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lrpc/netrpc/protocol.h"
#include "netrpc/protocols/channel/header.h"
#include "netrpc/sim/test_hosts.h"

namespace lrpc::netrpc {

class PacketWire;

/// A datagram service that hands its messages to the test.
class WireEnd final : public Protocol {
 public:
  WireEnd(Host& host, PacketWire& wire, std::size_t index) : Protocol(host, "wire"), wire_(wire), index_(index) {}
  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    if (!participants.remote.host.known()) return Error{Errc::invalid_argument, "no host"};
    if (unreachable) return Error{Errc::host_unreachable, "unreachable"};
    return session_to(high, participants.remote.host);
  }
  Status open_enable(Protocol& high, const ParticipantSet& /*participants*/) override {
    enabled_ = &high;
    return {};
  }
  void open_disable(Protocol& /*high*/, const ParticipantSet& /*participants*/) noexcept override {
    enabled_ = nullptr;
  }
  [[nodiscard]] Errc control(control::Request& request) noexcept override {
    if (auto* const size = std::get_if<control::MaximumMessage>(&request)) return size->size = maximum, Errc::ok;
    if (auto* const size = std::get_if<control::OptimumMessage>(&request)) return size->size = optimum, Errc::ok;
    if (auto* const one = std::get_if<control::Connection>(&request); one != nullptr && connection)
      return one->number = *connection, Errc::ok;
    if (std::holds_alternative<control::DropIdle>(request)) {
      sessions_.unbind_if([](const Key&, const SessionRef& session) { return session->references() == 1; });
      return Errc::ok;
    }
    return Errc::not_supported;
  }
  void arrive(HostAddress from, std::string_view bytes) {
    SessionRef* const known = sessions_.resolve({from});
    if (known == nullptr && enabled_ == nullptr) return;
    const SessionRef session = known != nullptr ? *known : session_to(*enabled_, from);
    session->high().demux(*session, Message::copy_of(host().pool(), std::as_bytes(std::span(bytes))));
  }
  [[nodiscard]] std::size_t sessions() const { return sessions_.size(); }

  std::size_t maximum = 20000;
  std::size_t optimum = 1500;
  bool unreachable = false;
  Errc refuses = Errc::ok;                  ///< The outcome of each push.
  std::optional<std::uint64_t> connection;  ///< Its number, the same for all sessions; none: it carries datagrams.

 private:
  struct Key {
    HostAddress host;
    [[nodiscard]] std::uint64_t hash() const noexcept { return mix(0, host.value); }
    friend bool operator==(Key, Key) = default;
  };
  class End final : public Session {
   public:
    End(WireEnd& wire, Protocol& high, const ParticipantSet& participants)
        : Session(wire, high, participants), end_(wire) {}
    [[nodiscard]] Errc push(Message message) noexcept override;

   private:
    WireEnd& end_;
  };
  SessionRef session_to(Protocol& high, HostAddress host) {
    if (SessionRef* const known = sessions_.resolve({host})) return *known;
    ParticipantSet participants;
    participants.remote.host = host;
    return sessions_.bind({host}, SessionRef(new End(*this, high, participants)));
  }

  PacketWire& wire_;
  const std::size_t index_;
  Protocol* enabled_ = nullptr;
  Map<Key, SessionRef> sessions_;
};

class PacketWire final : public Engine {
 public:
  struct Packet {
    std::size_t from = 0;
    HostAddress to;
    std::string bytes;
    [[nodiscard]] ChannelHeader header() const {
      return ChannelHeader::decode(reinterpret_cast<const std::byte*>(bytes.data()));
    }
    [[nodiscard]] std::uint16_t flags() const { return header().flags; }
    [[nodiscard]] std::string data() const { return bytes.substr(ChannelHeader::kSize); }
  };
  struct ManualClock final : Clock {
    [[nodiscard]] Time now() const noexcept override { return time; }
    Time time = std::chrono::seconds(1);
  };
  /// One life of a machine.
  struct Machine {
    Machine(PacketWire& wire, std::size_t index)
        : host({.name = "h" + std::to_string(index), .address = address(index), .boot_id = 0, .seed = ++wire.seed_},
               wire.clock, wire),
          end(host, wire, index) {}
    Host host;
    WireEnd end;
  };

  explicit PacketWire(std::size_t count = 2) {
    for (std::size_t i = 0; i < count; ++i) machines_.push_back(std::make_unique<Machine>(*this, i));
  }
  [[nodiscard]] static HostAddress address(std::size_t index) {
    return {0x0a000001U + static_cast<std::uint32_t>(index)};
  }
  Machine& operator[](std::size_t index) { return *machines_[index]; }
  /// Starts a new life. The protocols of the old life must be gone.
  void reboot(std::size_t index) {
    machines_[index].reset();
    machines_[index] = std::make_unique<Machine>(*this, index);
  }
  /// Takes the packet at `index` off the wire.
  Packet take(std::size_t index = 0) {
    Packet packet = std::move(packets.at(index));
    packets.erase(packets.begin() + static_cast<std::ptrdiff_t>(index));
    return packet;
  }
  /// Delivers the packet (perhaps once more).
  void deliver(const Packet& packet) {
    const std::size_t to = packet.to.value - address(0).value;
    if (to >= machines_.size() || machines_[to] == nullptr) return;
    Machine& machine = *machines_[to];
    const Shepherd inside(machine.host.monitor());
    machine.end.arrive(address(packet.from), packet.bytes);
  }
  void deliver_next() { deliver(take()); }
  void deliver_all() {
    while (!packets.empty()) deliver_next();
  }
  /// Advances the clock in steps and runs due timers. What they send stays on the wire.
  void pass(Duration time, Duration step = std::chrono::microseconds(100)) {
    const Time until = clock.time + time;
    while (clock.time < until) {
      clock.time = std::min(until, clock.time + step);
      for (const auto& machine : machines_) {
        if (machine == nullptr) continue;
        const Shepherd inside(machine->host.monitor());
        machine->host.events().run_due();
      }
    }
  }
  /// Drops every packet for this time.
  void cut_off(Duration time) {
    for (Duration done{}; done < time; done += std::chrono::seconds(1)) {
      packets.clear();
      pass(std::chrono::seconds(1), std::chrono::milliseconds(10));
    }
    packets.clear();
  }
  /// Advances the clock at once: no timer runs in between.
  void stand_still(Duration time) { pass(time, time); }
  bool wait(Host& /*host*/, const std::function<bool()>& done, Time /*deadline*/) override { return done(); }
  void wake(Host& /*host*/) noexcept override {}

  ManualClock clock;
  std::deque<Packet> packets;

 private:
  std::uint64_t seed_ = 0;
  std::vector<std::unique_ptr<Machine>> machines_;
};

inline Errc WireEnd::End::push(Message message) noexcept {
  if (message.size() > end_.maximum) return Errc::message_too_long;
  if (end_.refuses != Errc::ok) return end_.refuses;
  end_.wire_.packets.push_back({end_.index_, peer(), text_of(message)});
  return Errc::ok;
}

/// A server that the test paces: it keeps requests until the test answers them.
class SlowServer final : public Protocol {
 public:
  explicit SlowServer(Host& host) : Protocol(host, "server") {}
  void call_demux(Session& lower, Message request) noexcept override {
    executed.push_back(text_of(request));
    if (at_once) return lower.reply(std::move(request));
    pending.emplace_back(SessionRef(&lower), std::move(request));
  }
  [[nodiscard]] Errc open_done(Session& /*lower*/, const ParticipantSet& participants) noexcept override {
    opened.push_back(participants);
    return accept;
  }
  void answer_next() {
    const Shepherd inside(host().monitor());
    auto [session, request] = std::move(pending.front());
    pending.pop_front();
    session->reply(std::move(request));
  }
  [[nodiscard]] Errc refuse_next() {
    const Shepherd inside(host().monitor());
    const SessionRef session = std::move(pending.front().first);
    pending.pop_front();
    control::Request refuse = control::Refuse{Errc::limit_reached};
    return session->control(refuse);
  }
  bool at_once = true;
  Errc accept = Errc::ok;
  std::vector<std::string> executed;
  std::vector<ParticipantSet> opened;
  std::deque<std::pair<SessionRef, Message>> pending;
};

}  // namespace lrpc::netrpc
