#include <gtest/gtest.h>

#include <array>

#include "lrpc/netrpc/blocking_call.h"
#include "lrpc/netrpc/wire.h"
#include "netrpc/sim/test_hosts.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

SessionRef open(SimHosts& net, std::size_t from, Protocol& device, Protocol& high, std::size_t to) {
  const Shepherd inside(net[from].monitor());
  Result<SessionRef> session = device.open(high, net.to(to));
  EXPECT_TRUE(session) << session.error().message();
  return session ? *session : SessionRef();
}
SinkProtocol& sink_on(SimHosts& net, std::size_t index, Protocol& device) {
  SinkProtocol& sink = net[index].add<SinkProtocol>();
  const Shepherd inside(net[index].monitor());
  EXPECT_TRUE(device.open_enable(sink, SimHosts::anyone()));
  return sink;
}
Errc push(SimHosts& net, std::size_t from, Session& session, std::string_view text) {
  const Shepherd inside(net[from].monitor());
  return session.push(net.message(from, text));
}

TEST(SimEthernetTest, a_frame_reaches_the_enabled_protocol_of_the_peer_padded_as_ethernet_pads) {
  SimHosts net(2);
  SinkProtocol& to = sink_on(net, 1, net[1].ethernet());
  SinkProtocol& from = net[0].add<SinkProtocol>();
  (void)net[0].ethernet();
  const SessionRef session = open(net, 0, net[0].ethernet(), from, 1);
  EXPECT_EQ(push(net, 0, *session, "hello"), Errc::ok);
  net.world.run_for(9999ns);
  EXPECT_TRUE(to.received.empty());
  net.world.run_for(1ns);
  ASSERT_EQ(to.received.size(), 1U);
  EXPECT_EQ(to.received[0].size(), 46U);
  EXPECT_EQ(to.received[0].substr(0, 5), "hello");
  EXPECT_EQ(to.from[0], net.address(0));
  ASSERT_EQ(to.opened.size(), 1U);
  EXPECT_EQ(to.opened[0].protocol, protocol_numbers::kFirstOfTests);
  EXPECT_EQ(to.opened[0].remote.ethernet, net[0].ethernet_address());
}

TEST(SimEthernetTest, a_host_on_another_segment_is_unreachable_by_ethernet_and_reachable_by_ip) {
  SimHosts net(2, 2);
  SinkProtocol& from = net[0].add<SinkProtocol>();
  EXPECT_EQ(net[0].ethernet().open(from, net.to(1)).code(), Errc::host_unreachable);
  SinkProtocol& to = sink_on(net, 1, net[1].ip());
  const SessionRef session = open(net, 0, net[0].ip(), from, 1);
  EXPECT_EQ(push(net, 0, *session, "hello"), Errc::ok);
  net.world.run_for(31us);  // the latency of two segments, the routers and IP
  ASSERT_EQ(to.received.size(), 1U);
  EXPECT_EQ(to.received[0], "hello");
}

TEST(SimEthernetTest, a_broadcast_reaches_everybody_else_on_the_segment) {
  SimHosts net(5, 2);
  std::vector<SinkProtocol*> sinks;
  for (std::size_t i = 0; i < 5; ++i) sinks.push_back(&sink_on(net, i, net[i].ethernet()));
  ParticipantSet everybody = SimHosts::anyone();
  everybody.remote.ethernet = kEthernetBroadcast;
  Result<SessionRef> session = net[0].ethernet().open(*sinks[0], everybody);
  ASSERT_TRUE(session);
  EXPECT_EQ(push(net, 0, **session, "who is there"), Errc::ok);
  net.world.run_for(1ms);
  EXPECT_EQ(sinks[0]->received.size(), 0U);
  EXPECT_EQ(sinks[1]->received.size(), 0U);
  EXPECT_EQ(sinks[2]->received.size(), 1U);
  EXPECT_EQ(sinks[4]->received.size(), 1U);
}

TEST(SimEthernetTest, what_is_longer_than_a_frame_is_refused) {
  SimHosts net(2);
  SinkProtocol& from = net[0].add<SinkProtocol>();
  const SessionRef session = open(net, 0, net[0].ethernet(), from, 1);
  EXPECT_EQ(push(net, 0, *session, std::string(1500, 'x')), Errc::ok);
  EXPECT_EQ(push(net, 0, *session, std::string(1501, 'x')), Errc::message_too_long);
}

/// Delivers a frame from an Ethernet address that no host has.
void hear_stranger(SimHosts& net, SimEthernet& device, std::uint32_t number) {
  std::array<std::byte, SimEthernet::kLeast> frame{};
  WireWriter writer(frame.data());
  for (const std::uint8_t byte : net[1].ethernet_address().bytes) writer.put(byte);
  writer.put(std::uint16_t{0x0600}).put(number);
  writer.put(static_cast<std::uint16_t>(0xa700 + protocol_numbers::kFirstOfTests));
  const Shepherd inside(net[1].monitor());
  device.receive(frame.data(), frame.size());
}

TEST(SimEthernetTest, strangers_leave_a_quarter_of_the_sessions_to_those_that_this_host_opens) {
  SimHosts net(2);
  auto& device = static_cast<SimEthernet&>(net[1].ethernet());
  SinkProtocol& sink = sink_on(net, 1, device);
  constexpr std::uint32_t kOfPeers = 65536 - 65536 / 4;
  constexpr std::uint32_t kTooMany = 10;
  for (std::uint32_t i = 0; i < kOfPeers + kTooMany; ++i) hear_stranger(net, device, i);
  EXPECT_EQ(sink.received.size(), kOfPeers);
  EXPECT_EQ(test::asked<control::Statistics>(device).refused, kTooMany);
  EXPECT_TRUE(open(net, 1, device, sink, 0));
}

TEST(SimIpTest, a_message_of_the_largest_size_arrives_whole) {
  SimHosts net(2);
  SinkProtocol& to = sink_on(net, 1, net[1].ip());
  SinkProtocol& from = net[0].add<SinkProtocol>();
  const SessionRef session = open(net, 0, net[0].ip(), from, 1);
  std::string sent;
  Message message(net[0].pool());
  while (sent.size() < SimIp::kMaximum) {
    const std::string piece(std::min<std::size_t>(16000, SimIp::kMaximum - sent.size()),
                            static_cast<char>('a' + sent.size() % 26));
    sent += piece;
    ASSERT_TRUE(message.append(net.message(0, piece)));
  }
  EXPECT_EQ(session->push(std::move(message)), Errc::ok);
  net.world.run_for(1ms);
  ASSERT_EQ(to.received.size(), 1U);
  EXPECT_EQ(to.received[0], sent);
  EXPECT_EQ(net[0].pool().in_use(), 0U);
  EXPECT_EQ(net[1].pool().in_use(), 0U);
}

TEST(SimWorldTest, events_of_a_host_run_at_its_own_time_even_when_its_clock_drifts_or_it_pauses) {
  SimWorld world;
  SimHost& host = world.add_host({.name = {}, .address = {}, .segment = 0, .clock_offset = 5s, .drift = 1000});
  Time ran{};
  Event event([&] { ran = world.now(); });
  const auto schedule = [&] {
    const Shepherd inside(host.monitor());
    host.host().events().schedule(event, 1001ms);
  };
  EXPECT_EQ(host.host().now(), 5s);
  schedule();
  world.run_for(2s);
  EXPECT_EQ(ran, 1s);
  host.set_drift(0);
  const Time before = host.host().now();
  EXPECT_EQ(before, 5s + 2002ms);
  schedule();
  host.pause(3s);
  world.run_for(4s);
  EXPECT_EQ(ran, 5s);
}

TEST(SimWorldTest, a_thread_that_waits_runs_the_simulation_until_its_deadline_or_until_it_is_done) {
  SimWorld world;
  SimHost& host = world.add_host();
  bool flag = false;
  Event event([&] { flag = true; });
  const Shepherd inside(host.monitor());
  host.host().events().schedule(event, 10ms);
  EXPECT_FALSE(world.wait(
      host.host(), [&] { return flag; }, 9ms));
  EXPECT_EQ(world.now(), 9ms);
  EXPECT_TRUE(world.wait(
      host.host(), [&] { return flag; }, 20ms));
  EXPECT_EQ(world.now(), 10ms);
  EXPECT_FALSE(world.wait(
      host.host(), [] { return false; }, Time::max()));  // no event is left
}

TEST(SimWorldTest, a_crashed_host_hears_nothing_and_a_rebooted_one_has_another_boot_identifier) {
  SimHosts net(2);
  int composed = 0;
  SinkProtocol* sink = nullptr;
  net[1].on_boot([&](SimHost& host) {
    ++composed;
    sink = &host.add<SinkProtocol>();
    EXPECT_TRUE(host.ethernet().open_enable(*sink, SimHosts::anyone()));
  });
  const BootId before = net[1].host().boot_id();
  SinkProtocol& from = net[0].add<SinkProtocol>();
  const SessionRef session = open(net, 0, net[0].ethernet(), from, 1);
  EXPECT_EQ(push(net, 0, *session, "lost"), Errc::ok);
  net[1].crash();
  net.world.run_for(1ms);
  EXPECT_EQ(net.world.counters().host_down, 1U);
  net[1].boot();
  EXPECT_EQ(composed, 2);
  EXPECT_NE(net[1].host().boot_id(), before);
  EXPECT_EQ(push(net, 0, *session, "heard"), Errc::ok);
  net.world.run_for(1ms);
  ASSERT_EQ(sink->received.size(), 1U);
}

TEST(SimWorldTest, one_seed_gives_one_run) {
  const auto run = [](std::uint64_t seed) {
    SimOptions options;
    options.seed = seed;
    options.link.loss = 0.1;
    options.link.duplicate = 0.1;
    options.link.reorder = 0.2;
    options.link.corrupt = 0.05;
    options.link.jitter = 5us;
    SimHosts net(2, 1, options);
    std::string trace;
    net.world.trace([&](std::string_view line) { trace.append(line) += '\n'; });
    SinkProtocol& to = sink_on(net, 1, net[1].ethernet());
    to.echo = true;
    SinkProtocol& from = net[0].add<SinkProtocol>();
    const SessionRef session = open(net, 0, net[0].ethernet(), from, 1);
    for (int i = 0; i < 500; ++i) EXPECT_EQ(push(net, 0, *session, std::to_string(i)), Errc::ok);
    net.world.run_for(1s);
    return trace;
  };
  const std::string once = run(3);
  EXPECT_EQ(once, run(3));
  EXPECT_NE(once, run(4));
  for (const char* word : {"sends", "gets", "loses", "doubles"}) EXPECT_NE(once.find(word), std::string::npos) << word;
}

TEST(SimWorldTest, hosts_of_different_groups_do_not_hear_each_other_until_the_partition_heals) {
  SimHosts net(2);
  SinkProtocol& to = sink_on(net, 1, net[1].ip());
  SinkProtocol& from = net[0].add<SinkProtocol>();
  const SessionRef session = open(net, 0, net[0].ip(), from, 1);
  EXPECT_EQ(push(net, 0, *session, "under way"), Errc::ok);
  net.world.set_group(net[0], 1);
  EXPECT_EQ(push(net, 0, *session, "cut"), Errc::ok);
  net.world.run_for(1ms);
  EXPECT_EQ(net.world.counters().cut, 2U);
  net.world.heal();
  EXPECT_EQ(push(net, 0, *session, "heard"), Errc::ok);
  net.world.run_for(1ms);
  ASSERT_EQ(to.received.size(), 1U);
}

TEST(SimWorldTest, a_device_lets_go_of_sessions_that_nobody_uses) {
  SimHosts net(2);
  SinkProtocol& to = sink_on(net, 1, net[1].ip());
  SinkProtocol& from = net[0].add<SinkProtocol>();
  SessionRef session = open(net, 0, net[0].ip(), from, 1);
  EXPECT_EQ(push(net, 0, *session, "x"), Errc::ok);
  net.world.run_for(1ms);
  const auto sessions = [&](std::size_t index) { return test::asked<control::Statistics>(net[index].ip()).sessions; };
  EXPECT_EQ(sessions(0), 1U);
  EXPECT_EQ(sessions(1), 1U);
  session = {};
  to.sessions.clear();
  net.world.run_for(30s);
  EXPECT_EQ(sessions(0), 0U);
  EXPECT_EQ(sessions(1), 0U);
  net.world.run_until_idle();
  EXPECT_EQ(net[0].host().events().waiting(), 0U);
}

}  // namespace
}  // namespace lrpc::netrpc
