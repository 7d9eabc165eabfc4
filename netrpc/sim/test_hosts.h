// For tests of protocols: some hosts on simulated wires in a few lines.
//
//     SimHosts net(2);                                     // two hosts on one segment
//     auto& a = net[0].add<Fragment>("fragment", net[0].ethernet());
//     auto& b = net[1].add<Fragment>("fragment", net[1].ethernet());
//     SinkProtocol& sink = net[1].add<SinkProtocol>();
//     ... { const Shepherd inside(net[0].monitor()); session->push(net.message(0, "hello")); }
//     net.world.run_for(1ms);
//     EXPECT_EQ(sink.received.size(), 1U);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "netrpc/sim/devices.h"
#include "netrpc/sim/world.h"

namespace lrpc::netrpc {

/// Hosts 10.0.0.1, 10.0.0.2, ... With `segments` > 1 they are distributed over as many Ethernets, joined by routers:
/// host i is on segment i % segments.
struct SimHosts {
  explicit SimHosts(std::size_t count, std::uint32_t segments = 1, SimOptions options = {},
                    std::size_t buffer_limit = SimHostOptions().buffer_limit)
      : world(options) {
    for (std::size_t i = 0; i < count; ++i)
      world.add_host({.name = {},
                      .address = {},
                      .segment = static_cast<std::uint32_t>(i % segments),
                      .buffer_limit = buffer_limit});
  }
  SimHost& operator[](std::size_t index) { return world.host(index); }
  [[nodiscard]] HostAddress address(std::size_t index) { return world.host(index).address(); }
  /// A message with a copy of `text`, from the pool of host `index`.
  [[nodiscard]] Message message(std::size_t index, std::string_view text) {
    return Message::copy_of(world.host(index).pool(), std::as_bytes(std::span(text)));
  }
  /// What to open, or what to enable: protocol number and peer.
  [[nodiscard]] ParticipantSet to(std::size_t index, ProtocolNumber protocol = protocol_numbers::kFirstOfTests) {
    ParticipantSet participants{protocol, {}, {}};
    participants.remote.host = address(index);
    return participants;
  }
  [[nodiscard]] static ParticipantSet anyone(ProtocolNumber protocol = protocol_numbers::kFirstOfTests) {
    return {protocol, {}, {}};
  }

  SimWorld world;
};

/// All bytes of a message.
[[nodiscard]] inline std::string text_of(const Message& message) {
  std::string text(message.size(), '\0');
  message.copy_to(std::as_writable_bytes(std::span(text)));
  return text;
}

/// Stands on top of a protocol under test: keeps what comes up and the sessions that it came through.
class SinkProtocol final : public Protocol {
 public:
  explicit SinkProtocol(Host& host, std::string name = "sink") : Protocol(host, std::move(name)) {}
  [[nodiscard]] Errc open_done(Session& lower, const ParticipantSet& participants) noexcept override {
    opened.push_back(participants);
    sessions.emplace_back(&lower);
    return accept;
  }
  void demux(Session& lower, Message message) noexcept override {
    from.push_back(lower.peer());
    received.push_back(text_of(message));
    if (echo) (void)lower.push(std::move(message));
  }
  void call_demux(Session& lower, Message request) noexcept override {
    from.push_back(lower.peer());
    received.push_back(text_of(request));
    lower.reply(std::move(request));
  }
  [[nodiscard]] Errc control(control::Request& request) noexcept override {
    if (control::answered(request, control::AdvertisedMaximum{advertised})) return Errc::ok;
    return Protocol::control(request);
  }

  std::vector<std::string> received;
  std::vector<HostAddress> from;
  std::vector<ParticipantSet> opened;  ///< What open_done() was told,
  std::vector<SessionRef> sessions;    ///< and the sessions that it was told of.
  Errc accept = Errc::ok;              ///< open_done()'s answer.
  bool echo = false;                   ///< Pushes what comes back to where it came from.
  std::size_t advertised = 1500;       ///< The answer to AdvertisedMaximum.
};

/// A call, its outcome and its reply.
class TestCall : public Transaction {
 public:
  void completed(Errc errc, Message answer) noexcept override {
    ++completions;
    outcome = errc;
    reply = text_of(answer);
  }
  [[nodiscard]] bool done() const noexcept { return completions > 0; }
  int completions = 0;
  Errc outcome = Errc::ok;
  std::string reply;
};

}  // namespace lrpc::netrpc
