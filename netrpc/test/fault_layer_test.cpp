// FAULT: over a simulated Ethernet, and over calls.
#include "netrpc/protocols/fault/fault.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "fake_calls.h"
#include "layer_pair.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;
using test::FakeCalls;
using test::make_layer;
using test::Pair;

Options options_of(std::initializer_list<std::pair<const char*, const char*>> given) {
  Options options;
  for (const auto& [name, value] : given) options.set(name, value);
  return options;
}
std::size_t pushed_and_received(const Options& options, std::size_t count, std::vector<std::string>& received) {
  Pair pair(fault_kind(), options);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(pair.push("message " + std::to_string(i)), Errc::ok);
  pair.net.world.run_until_idle(10s);
  received = pair.sink[1]->received;
  return received.size();
}

TEST(FaultLayer, without_options_nothing_happens) {
  std::vector<std::string> received;
  EXPECT_EQ(pushed_and_received({}, 100, received), 100U);
  EXPECT_EQ(received[99], "message 99");
}

TEST(FaultLayer, rates_are_kept_and_one_seed_gives_one_run) {
  const Options lossy = options_of({{"loss", "0.3"}, {"duplicate", "0.2"}, {"on", "push"}, {"seed", "5"}});
  std::vector<std::string> first;
  std::vector<std::string> second;
  const std::size_t count = pushed_and_received(lossy, 2000, first);
  EXPECT_GT(count, 1500U);
  EXPECT_LT(count, 1860U);  // 2000 * 0.7 * 1.2 = 1680
  pushed_and_received(lossy, 2000, second);
  EXPECT_EQ(first, second);
  pushed_and_received(options_of({{"loss", "0.3"}, {"duplicate", "0.2"}, {"on", "push"}, {"seed", "6"}}), 2000, second);
  EXPECT_NE(first, second);
}

TEST(FaultLayer, everything_can_be_lost_on_either_way) {
  std::vector<std::string> received;
  EXPECT_EQ(pushed_and_received(options_of({{"loss", "1"}, {"on", "push"}}), 50, received), 0U);
  EXPECT_EQ(pushed_and_received(options_of({{"loss", "1"}, {"on", "demux"}}), 50, received), 0U);
}

TEST(FaultLayer, reordered_messages_arrive_later_but_arrive) {
  std::vector<std::string> received;
  EXPECT_EQ(pushed_and_received(options_of({{"reorder", "0.2"}, {"on", "push"}, {"hold", "50us"}}), 200, received),
            200U);
  EXPECT_FALSE(std::is_sorted(received.begin(), received.end(), [](const auto& a, const auto& b) {
    return std::stoi(a.substr(8)) < std::stoi(b.substr(8));
  }));
}

TEST(FaultLayer, a_damaged_message_differs_in_one_bit_and_the_senders_copy_does_not) {
  Pair pair(fault_kind(), options_of({{"corrupt", "1"}, {"on", "push"}}));
  const std::string original(300, 'x');
  Message message = pair.net.message(0, original);
  const Message copy = message.share();
  {
    const Shepherd inside(pair.net[0].monitor());
    EXPECT_EQ(pair.session->push(std::move(message)), Errc::ok);
  }
  pair.net.world.run_until_idle(1s);
  ASSERT_EQ(pair.sink[1]->received.size(), 1U);
  const std::string& received = pair.sink[1]->received[0];
  ASSERT_EQ(received.size(), original.size());
  int bits = 0;
  for (std::size_t i = 0; i < received.size(); ++i)
    bits += std::popcount(static_cast<unsigned>(static_cast<unsigned char>(received[i] ^ original[i])));
  EXPECT_EQ(bits, 1);
  EXPECT_EQ(text_of(copy), original);
}

TEST(FaultLayer, delayed_messages_wait_in_order_and_no_more_than_so_many) {
  Pair pair(fault_kind(), options_of({{"delay", "5ms"}, {"on", "push"}, {"most", "3"}}));
  for (const char* text : {"a", "b", "c", "d"}) EXPECT_EQ(pair.push(text), Errc::ok);
  EXPECT_EQ(pair.statistics(0).state, 3U);
  EXPECT_EQ(pair.statistics(0).refused, 1U);
  pair.net.world.run_for(4ms);
  EXPECT_TRUE(pair.sink[1]->received.empty());
  pair.net.world.run_for(2ms);
  EXPECT_EQ(pair.sink[1]->received, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(pair.statistics(0).state, 0U);
  // A message that is still held when the graph is destroyed is dropped.
  EXPECT_EQ(pair.push("e"), Errc::ok);
}

TEST(FaultLayer, calls_fail_or_wait_and_are_cancelled_while_they_wait) {
  SimHosts net(1);
  FakeCalls& calls = net[0].add<FakeCalls>();
  SinkProtocol high(net[0].host());
  const auto lossy = make_layer(fault_kind(), net[0].host(), calls, options_of({{"loss", "1"}}));
  const auto slow = make_layer(fault_kind(), net[0].host(), calls, options_of({{"delay", "2ms"}}));
  TestCall lost;
  TestCall late;
  TestCall aborted;
  TestCall cancelled;
  {
    const Shepherd inside(net[0].monitor());
    (*lossy->open(high, net.to(0)))->call(net.message(0, "x"), lost, kNoLimit);
    EXPECT_EQ(lost.outcome, Errc::call_failed);
    EXPECT_TRUE(calls.timeouts.empty());
    (*slow->open(high, net.to(0)))->call(net.message(0, "x"), late, 5ms);
    (*slow->open(high, net.to(0)))->call(net.message(0, "x"), aborted, 1ms);
    const SessionRef session = *slow->open(high, net.to(0));
    session->call(net.message(0, "x"), cancelled, kNoLimit);
    session->cancel(cancelled);
  }
  net.world.run_for(1ms);
  EXPECT_EQ(aborted.outcome, Errc::call_aborted);
  EXPECT_FALSE(late.done());
  net.world.run_until_idle(1s);
  EXPECT_EQ(late.reply, "x");
  EXPECT_EQ(calls.timeouts, std::vector<Duration>{3ms});
  EXPECT_FALSE(cancelled.done());
}

TEST(FaultLayer, a_wrong_direction_is_an_error) {
  SimHosts net(1);
  const Result<std::unique_ptr<Protocol>> made =
      fault_kind().make({net[0].host(), "fault", {&net[0].ip()}, options_of({{"on", "both ways"}})});
  EXPECT_EQ(made.error().text, "'both ways' is no value for the option 'on', write push, demux or both");
}

}  // namespace
}  // namespace lrpc::netrpc
