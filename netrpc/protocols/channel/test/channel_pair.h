// A client and a server of CHANNEL on a wire whose packets the test holds.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "netrpc/protocols/channel/channel.h"
#include "netrpc/protocols/channel/test/packet_wire.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc {

struct ChannelPair {
  static constexpr ProtocolNumber kNumber = protocol_numbers::kFirstOfTests;

  /// `hosts`: those beyond the first two have no CHANNEL yet.
  explicit ChannelPair(const ChannelOptions& with = {}, std::size_t hosts = 2) : wire(hosts), options(with) {
    start_client();
    start_server();
  }
  ~ChannelPair() {
    session = {};
    if (server) server->pending.clear();
  }
  void start_client() {
    client_channel = make_channel(wire[0].host, "channel", wire[0].end, options);
    client_high.emplace(wire[0].host);
    session = open();
  }
  void start_server() {
    server_channel = make_channel(wire[1].host, "channel", wire[1].end, options);
    server.emplace(wire[1].host);
    const Shepherd inside(wire[1].host.monitor());
    EXPECT_TRUE(server_channel->open_enable(*server, {kNumber, {}, {}}));
  }
  void reboot_server() {
    server->pending.clear();
    server_channel.reset();
    server.reset();
    wire.reboot(1);
    start_server();
  }
  void reboot_client() {
    session = {};
    client_channel.reset();
    client_high.reset();
    wire.reboot(0);
    start_client();
  }
  [[nodiscard]] SessionRef open(std::uint16_t channel = 0) {
    const Shepherd inside(wire[0].host.monitor());
    ParticipantSet participants{kNumber, {}, {}};
    participants.remote.host = PacketWire::address(1);
    participants.remote.channel = channel;
    Result<SessionRef> opened = client_channel->open(*client_high, participants);
    EXPECT_TRUE(opened) << opened.error().message();
    return opened ? *opened : SessionRef();
  }
  void call(TestCall& call, std::string_view text, Duration timeout = kNoLimit) {
    this->call(*session, call, text, timeout);
  }
  void call(Session& through, TestCall& call, std::string_view text, Duration timeout = kNoLimit) {
    Host& host = wire[0].host;
    const Shepherd inside(host.monitor());
    through.call(Message::copy_of(host.pool(), std::as_bytes(std::span(text))), call, timeout);
  }
  void cancel(TestCall& call) {
    const Shepherd inside(wire[0].host.monitor());
    session->cancel(call);
  }
  /// Makes one call, and delivers all its packets at once.
  void expect_ok(std::string_view text) {
    TestCall one;
    call(one, text);
    wire.deliver_all();
    EXPECT_EQ(one.completions, 1);
    EXPECT_EQ(one.outcome, Errc::ok);
    EXPECT_EQ(one.reply, text);
  }
  [[nodiscard]] static control::Statistics statistics(Protocol& protocol) {
    return test::asked<control::Statistics>(protocol);
  }
  [[nodiscard]] std::size_t executions(std::string_view text) const {
    return static_cast<std::size_t>(std::count(server->executed.begin(), server->executed.end(), text));
  }

  PacketWire wire;
  ChannelOptions options;
  std::unique_ptr<Protocol> client_channel;
  std::unique_ptr<Protocol> server_channel;
  std::optional<SinkProtocol> client_high;
  std::optional<SlowServer> server;
  SessionRef session;
};

}  // namespace lrpc::netrpc
