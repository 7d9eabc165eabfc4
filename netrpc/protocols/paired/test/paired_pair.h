// A client and a server of PAIRED on a wire whose packets the test holds, and a record of all packets on it.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "netrpc/protocols/channel/test/packet_wire.h"
#include "netrpc/protocols/paired/header.h"
#include "netrpc/protocols/paired/paired.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc::paired {

/// Text such as "PLEASE_ACK LAST_SEG 1": the control bits and the segment number.
inline std::string describe(const Header& header) {
  std::string text;
  if (header.has(bits::kPleaseAck)) text += "PLEASE_ACK ";
  if (header.has(bits::kAck)) text += "ACK ";
  if (header.has(bits::kLastSegment)) text += "LAST_SEG ";
  if (header.has(bits::kLost)) return text + "LOST";
  if (header.has(bits::kProbe)) return text + "PROBE";
  return text + std::to_string(header.segment);
}

struct PairedPair {
  static constexpr ProtocolNumber kNumber = protocol_numbers::kFirstOfTests;

  explicit PairedPair(const PairedOptions& with = {}, std::size_t hosts = 2) : wire(hosts), options(with) {
    for (std::size_t i = 0; i < hosts; ++i) clients.emplace_back();
    start_server();
    session = open();
  }
  ~PairedPair() {
    session = {};
    if (server) server->pending.clear();
  }
  void start_server() {
    served = make_paired(wire[1].host, "paired", wire[1].end, options);
    server.emplace(wire[1].host);
    const Shepherd inside(wire[1].host.monitor());
    EXPECT_TRUE(served->open_enable(*server, {kNumber, {}, {}}));
  }
  void reboot_server() {
    server->pending.clear();
    served.reset();
    server.reset();
    wire.reboot(1);
    start_server();
  }
  struct Client {
    std::unique_ptr<Protocol> paired;
    std::unique_ptr<SinkProtocol> high;
  };
  [[nodiscard]] SessionRef open(std::size_t host = 0) {
    Client& client = clients[host];
    if (!client.paired) client.paired = make_paired(wire[host].host, "paired", wire[host].end, options);
    if (!client.high) client.high = std::make_unique<SinkProtocol>(wire[host].host);
    const Shepherd inside(wire[host].host.monitor());
    ParticipantSet participants{kNumber, {}, {}};
    participants.remote.host = PacketWire::address(1);
    Result<SessionRef> opened = client.paired->open(*client.high, participants);
    EXPECT_TRUE(opened) << opened.error().message();
    return opened ? *opened : SessionRef();
  }
  void call(TestCall& call, std::string_view text, Duration timeout = kNoLimit) {
    this->call(*session, call, text, timeout);
  }
  void call(Session& through, TestCall& call, std::string_view text, Duration timeout = kNoLimit) {
    Host& host = through.protocol().host();
    const Shepherd inside(host.monitor());
    through.call(Message::copy_of(host.pool(), std::as_bytes(std::span(text))), call, timeout);
  }
  /// Makes one call, and delivers all its packets at once.
  void expect_ok(std::string_view text) {
    TestCall one;
    call(one, text);
    wire.deliver_all();
    EXPECT_EQ(one.outcome, Errc::ok);
    EXPECT_EQ(one.reply, text);
  }
  [[nodiscard]] static Header header_of(const PacketWire::Packet& packet) {
    const auto header =
        Header::decode(reinterpret_cast<const std::byte*>(packet.bytes.data()), packet.bytes.size() - Header::kSize);
    EXPECT_TRUE(header);
    return header.value_or(Header{});
  }
  /// Advances the clock until a packet is on the wire, and takes that packet off.
  PacketWire::Packet next() {
    for (int i = 0; wire.packets.empty() && i < 1'000'000; ++i) {
      wire.pass(std::chrono::milliseconds(1), std::chrono::milliseconds(1));
    }
    EXPECT_FALSE(wire.packets.empty());
    PacketWire::Packet packet = wire.packets.empty() ? PacketWire::Packet{} : wire.take();
    record.push_back((packet.from == 1 ? "server: " : "client: ") + describe(header_of(packet)));
    return packet;
  }
  void arrives() { wire.deliver(next()); }
  /// Drops the packets of `who` until the other end sends one.
  void loses_all_of(std::string_view who) {
    PacketWire::Packet packet = next();
    while (record.back().starts_with(who)) packet = next();
    wire.deliver(packet);
  }
  /// Makes the server reply to the oldest waiting request.
  void answer(std::string_view text) {
    const Shepherd inside(wire[1].host.monitor());
    ASSERT_FALSE(server->pending.empty());
    const SessionRef to = std::move(server->pending.front().first);
    server->pending.pop_front();
    to->reply(Message::copy_of(wire[1].host.pool(), std::as_bytes(std::span(text))));
  }
  void is_lost() {
    (void)next();
    record.back() += " (lost)";
  }
  /// Sends a forged segment from host `from` to host `to`, the server by default.
  void forge(Header header, std::string_view data = {}, std::size_t from = 0, std::size_t to = 1) {
    header.protocol = kNumber;
    if (header.length == 0) header.length = static_cast<std::uint16_t>(data.size());
    std::string bytes(Header::kSize, '\0');
    header.encode(reinterpret_cast<std::byte*>(bytes.data()));
    wire.deliver({from, PacketWire::address(to), bytes + std::string(data)});
  }
  /// The conversation number that the server gives to a host that asks for it in the regular way.
  [[nodiscard]] std::uint64_t meet(std::size_t from = 0, std::uint16_t channel = 99) {
    forge({.control = bits::kProbe, .call_number = 1, .channel = channel}, {}, from);
    return header_of(wire.take(wire.packets.size() - 1)).conversation;
  }
  [[nodiscard]] control::Statistics statistics() { return statistics(*served); }
  [[nodiscard]] static control::Statistics statistics(Protocol& protocol) {
    return test::asked<control::Statistics>(protocol);
  }
  [[nodiscard]] std::size_t executions(std::string_view text) const {
    return static_cast<std::size_t>(std::count(server->executed.begin(), server->executed.end(), text));
  }

  PacketWire wire;
  PairedOptions options;
  std::vector<Client> clients;
  std::unique_ptr<Protocol> served;
  std::optional<SlowServer> server;
  SessionRef session;
  std::vector<std::string> record;
};

}  // namespace lrpc::netrpc::paired
