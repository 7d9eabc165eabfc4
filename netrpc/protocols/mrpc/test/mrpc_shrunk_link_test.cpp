// A link whose MTU shrinks: messages are cut to fit, and one that cannot be cut is lost alone.
#include "netrpc/protocols/mrpc/test/mrpc_fixture.h"

namespace lrpc::netrpc::mrpc {
namespace {

class MrpcShrunkLinkTest : public MrpcTest {
 protected:
  static constexpr std::size_t kMtu = 600;
  static constexpr std::size_t kLongest = (kMtu - Header::kSize) * kMaxFragments;

  explicit MrpcShrunkLinkTest(Settings settings = {}) : MrpcTest(settings) {}
  void SetUp() override { warm_up(); }
  void shrink(std::size_t i) { static_cast<SimEthernet&>(net[i].ethernet()).set_mtu(kMtu); }
  /// Expects the call to end as lost long before the peer would count as dead.
  void expect_lost(TestCall& call) {
    EXPECT_TRUE(net.world.run_until([&] { return call.done(); }, 1s));
    EXPECT_EQ(call.completions, 1);
    EXPECT_EQ(call.outcome, Errc::call_lost);
  }
  void expect_ok(std::string_view request) {
    std::string reply;
    EXPECT_EQ(call(request, reply), Errc::ok);
    EXPECT_EQ(reply, request);
  }
};

TEST_F(MrpcShrunkLinkTest, carries_messages_of_up_to_16_of_its_packets) {
  shrink(0);
  shrink(1);
  for (const std::size_t size : {kMtu, std::size_t{1400}, std::size_t{5000}, kLongest}) expect_ok(pattern(size));
  std::string reply;
  EXPECT_EQ(call(pattern(kLongest + 1), reply), Errc::message_too_long);
  EXPECT_EQ(test::asked<control::MaximumMessage>(*session).size, kLongest);
}

TEST_F(MrpcShrunkLinkTest, loses_a_call_whose_reply_is_too_long_for_it_and_no_other) {
  server->slow = true;
  TestCall other;
  start(other, "other");
  net.world.run_for(1ms);
  server->slow = false;
  server->answer_size = kLongest + 1;
  shrink(1);
  TestCall lost;
  start(lost, "x");
  expect_lost(lost);
  server->answer_size = ~std::size_t{0};
  expect_ok("next");
  EXPECT_FALSE(other.done());
  {
    const Shepherd inside(net[1].monitor());
    server->answer_pending();
  }
  net.world.run_for(1ms);
  EXPECT_EQ(other.reply, "late");
  EXPECT_EQ(tap[0]->count(Type::query), 0U) << "the server's life is known";
}

TEST_F(MrpcShrunkLinkTest, loses_a_call_whose_reply_was_sent_in_part_before) {
  lose(1, 1, is_reply);
  server->answer_size = 5000;
  TestCall lost;
  start(lost, "x");
  ASSERT_TRUE(net.world.run_until([&] { return tap[1]->count(Type::reply) == 4; }, 1s));
  shrink(1);
  expect_lost(lost);
  EXPECT_EQ(server->executed, 1);
  server->answer_size = ~std::size_t{0};
  expect_ok("next");
}

TEST_F(MrpcShrunkLinkTest, carries_in_several_packets_what_was_lost_in_one) {
  lose(1, 1, is_reply);
  server->answer_size = 1000;
  TestCall one;
  start(one, "x");
  ASSERT_TRUE(net.world.run_until([&] { return tap[1]->count(Type::reply) == 1; }, 1s));
  shrink(1);
  ASSERT_TRUE(net.world.run_until([&] { return one.done(); }, 1s));
  EXPECT_EQ(one.reply, pattern(1000));
  EXPECT_EQ(server->executed, 1);
}

TEST_F(MrpcShrunkLinkTest, loses_a_call_whose_request_would_have_to_be_sent_again_and_no_other) {
  server->slow = true;
  TestCall other;
  start(other, "other");
  net.world.run_for(1ms);
  server->slow = false;
  for (const std::size_t size : {1000U, 5000U}) {
    lose(0, 1, is_request);
    TestCall lost;
    start(lost, pattern(size));
    shrink(0);
    expect_lost(lost);
    EXPECT_EQ(server->executions[pattern(size)], 0);
    expect_ok("next");
    static_cast<SimEthernet&>(net[0].ethernet()).set_mtu(1500);
    const Shepherd inside(net[0].monitor());
    net[0].host().peers().path_changed();
  }
  EXPECT_FALSE(other.done());
  EXPECT_EQ(tap[0]->count(Type::query), 0U) << "the server's life is known";
}

TEST_F(MrpcShrunkLinkTest, ends_no_call_by_a_word_that_is_not_for_it) {
  server->slow = true;
  TestCall call;
  start(call, "x");
  net.world.run_for(1ms);
  Header word = tap[0]->sent.front();
  word.type = Type::reply;
  word.bits = kError;
  word.size = 0;
  word.command = static_cast<std::uint16_t>(Errc::call_lost);
  std::swap(word.boot_id, word.peer_boot_id);
  const auto forge = [&](auto change) {
    Header forged = word;
    change(forged);
    inject(1, forged);
    net.world.run_for(1ms);
  };
  forge([](Header& header) { ++header.sequence; });
  forge([](Header& header) { ++header.channel; });
  forge([](Header& header) { ++header.boot_id; });
  forge([](Header& header) { ++header.peer_boot_id; });
  EXPECT_FALSE(call.done());
  forge([](Header&) {});
  EXPECT_EQ(call.outcome, Errc::call_lost);
}

class MrpcShrunkLinkOfOneChannelTest : public MrpcShrunkLinkTest {
 protected:
  MrpcShrunkLinkOfOneChannelTest() : MrpcShrunkLinkTest({.channels = 1}) {}
};

TEST_F(MrpcShrunkLinkOfOneChannelTest, refuses_what_has_become_too_long_while_it_waited) {
  server->slow = true;
  TestCall first, second, third;
  start(first, "x");
  start(second, pattern(kLongest + 1));
  start(third, "y");
  net.world.run_for(1ms);
  shrink(0);
  {
    const Shepherd inside(net[0].monitor());
    net[0].host().peers().path_changed();
  }
  for (int i = 0; i < 2; ++i) {
    {
      const Shepherd inside(net[1].monitor());
      server->answer_pending();
    }
    net.world.run_for(1ms);
  }
  EXPECT_EQ(second.outcome, Errc::message_too_long);
  EXPECT_EQ(third.reply, "late");
}

}  // namespace
}  // namespace lrpc::netrpc::mrpc
