// What happens to channels, requests and users of SUN_SELECT when calls are cancelled, dropped, kept or completed.
#include "netrpc/protocols/sun_select/test/sun_pair.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc::sun_test {
namespace {

using namespace std::chrono_literals;

TEST(SunRpcTest, users_of_commands_call_the_procedures_of_the_program_in_the_options) {
  SunPair pair;
  ParticipantSet by_command;
  by_command.local.command = 12;
  by_command.remote.command = 12;
  by_command.remote.host = PacketWire::address(1);
  SunServer twelve(pair.wire[1].host);
  {
    const Shepherd inside(pair.wire[1].host.monitor());
    ASSERT_TRUE(pair.layers[1].back()->open_enable(twelve, by_command));
    EXPECT_EQ(pair.layers[1].back()->open_enable(*pair.server, by_command).code(), Errc::name_taken);
  }
  TestCall one;
  {
    const Shepherd inside(pair.wire[0].host.monitor());
    ParticipantSet neither = by_command;
    neither.remote.command = 0;
    EXPECT_EQ(pair.layers[0].back()->open(*pair.high, neither).code(), Errc::invalid_argument);
    Result<SessionRef> opened = pair.layers[0].back()->open(*pair.high, by_command);
    ASSERT_TRUE(opened);
    pair.session = *opened;
    pair.session->call(Message(pair.wire[0].host.pool()), one, kNoLimit);
  }
  pair.wire.deliver_all();
  EXPECT_EQ(one.outcome, Errc::ok);
  ASSERT_EQ(twelve.called.size(), 1U);
  EXPECT_EQ(twelve.called[0].command, 12U);
  EXPECT_EQ(twelve.called[0].program, kProgram);
  const Shepherd inside(pair.wire[1].host.monitor());
  pair.layers[1].back()->open_disable(twelve, by_command);
}

TEST(SunRpcTest, a_call_that_its_user_gives_up_leaves_its_channel_free) {
  SunPair pair;
  std::deque<TestCall> calls(20);  // more than there are channels
  for (TestCall& one : calls) pair.call(one, "x");
  EXPECT_EQ(pair.wire.packets.size(), 8U);
  pair.wire.packets.clear();  // these are never answered
  {
    const Shepherd inside(pair.wire[0].host.monitor());
    for (std::size_t i = 0; i + 1 < calls.size(); ++i) pair.session->cancel(calls[i]);
  }
  pair.wire.pass(1ms, 1ms);
  EXPECT_EQ(pair.wire.packets.size(), 1U);
  pair.wire.deliver_all();
  EXPECT_TRUE(calls.back().done());
  for (std::size_t i = 0; i + 1 < calls.size(); ++i) EXPECT_FALSE(calls[i].done());
}

TEST(SunRpcTest, a_call_whose_time_is_over_leaves_its_channel_free) {
  SunPair pair({.channels = 2});
  TestCall late[2], next;
  for (TestCall& one : late) pair.call(one, "late", 7, 10ms);
  pair.call(next, "next");
  EXPECT_EQ(pair.wire.packets.size(), 2U);
  pair.wire.packets.clear();
  pair.wire.pass(11ms, 1ms);
  for (const TestCall& one : late) EXPECT_EQ(one.outcome, Errc::call_aborted);
  ASSERT_EQ(pair.wire.packets.size(), 1U);
  pair.wire.deliver_all();
  EXPECT_EQ(next.reply, "next");
}

TEST(SunRpcTest, a_call_without_any_time_left_is_not_sent_and_no_layer_counts_it) {
  SunPair pair;
  TestCall one;
  pair.call(one, "x", 7, 0ms);
  EXPECT_EQ(one.outcome, Errc::call_aborted);
  EXPECT_TRUE(pair.wire.packets.empty());
  for (const auto& layer : pair.layers[0]) {
    EXPECT_EQ(test::asked<control::Statistics>(*layer).sent, 0U) << layer->name();
  }
}

TEST(SunRpcTest, calls_that_only_wait_for_a_channel_are_not_counted_as_sent) {
  SunPair pair({.channels = 2});
  std::deque<TestCall> calls(5);
  for (TestCall& one : calls) pair.call(one, "x", 7, 10ms);
  pair.wire.pass(11ms, 1ms);
  for (const TestCall& one : calls) EXPECT_EQ(one.outcome, Errc::call_aborted);
  EXPECT_EQ(test::asked<control::Statistics>(*pair.layers[0][1]).sent, 2U);
}

TEST(SunRpcTest, a_server_that_keeps_an_answered_request_is_told_the_next_ones_numbers) {
  SunPair pair({.over_channel = true, .channels = 1});
  pair.server->keeps_answered = true;
  for (const std::uint32_t procedure : {7U, 8U}) {
    TestCall one;
    pair.call(one, "x", procedure);
    pair.wire.deliver_all();
    EXPECT_EQ(one.reply, "x");
    EXPECT_EQ(pair.server->called.back().procedure, procedure);
  }
}

TEST(SunRpcTest, results_too_long_for_the_layers_below_are_a_system_error) {
  SunPair pair;
  const std::string request = words({1, 0, 2, kProgram, kVersion, 7, 0, 0, 0, 0}) + std::string(3000, 'x');
  EXPECT_EQ(pair.answer(request), words({1, 1, 0, 0, 0, 0}) + std::string(3000, 'x'));
  pair.wire[1].end.maximum = 3000;
  EXPECT_EQ(pair.answer(request), words({1, 1, 0, 0, 0, 5}));
}

/// A user that cancels another call when its own has ended.
struct GivesUp final : Transaction {
  void completed(Errc outcome, Message /*reply*/) noexcept override {
    told = outcome;
    session->cancel(*other);
  }
  Session* session = nullptr;
  Transaction* other = nullptr;
  std::optional<Errc> told;
};

TEST(SunRpcTest, a_call_may_be_given_up_again_by_who_is_told_of_the_next_ones_end) {
  SunPair pair({.channels = 1});
  TestCall given_up, one, two;
  GivesUp next;
  pair.call(given_up, "given up");
  pair.call(next, "next");
  next.session = pair.session.get();
  next.other = &given_up;
  pair.wire[0].end.refuses = Errc::host_unreachable;  // the next call ends as soon as it is sent
  {
    const Shepherd inside(pair.wire[0].host.monitor());
    pair.session->cancel(given_up);
  }
  EXPECT_FALSE(next.told) << "inside another call's cancel()";
  pair.wire.pass(1ms, 1ms);
  EXPECT_EQ(next.told, Errc::host_unreachable);
  EXPECT_FALSE(given_up.done());
  pair.wire[0].end.refuses = Errc::ok;
  pair.wire.packets.clear();
  pair.call(one, "one");
  pair.call(two, "two");
  pair.wire.deliver_all();
  EXPECT_EQ(one.reply, "one");
  EXPECT_EQ(two.reply, "two");
}

TEST(SunRpcTest, a_server_that_drops_a_request_has_failed_it_and_the_channels_stay) {
  for (const bool over_channel : {false, true}) {
    SunPair pair({.over_channel = over_channel});
    pair.server->drops = true;
    std::deque<TestCall> calls(20);
    for (TestCall& one : calls) pair.call(one, "x");
    pair.wire.deliver_all();
    for (const TestCall& one : calls) EXPECT_EQ(one.outcome, Errc::call_failed) << over_channel;
    pair.server->drops = false;
    TestCall last;
    pair.call(last, "last");
    pair.wire.deliver_all();
    EXPECT_EQ(last.reply, "last") << over_channel;
  }
}

TEST(SunRpcTest, over_channel_what_no_layer_can_read_is_answered_too) {
  SunPair pair({.sys = AuthSysOptions{.machine = "x"}, .over_channel = true});
  SessionRef channel;
  ParticipantSet participants{protocol_numbers::kSunCall, {}, {}};
  participants.remote.host = PacketWire::address(1);
  for (const std::string& request : {std::string("short"), words({2, kProgram, kVersion, 7, 6, 0, 0, 0})}) {
    TestCall one;
    {
      const Shepherd inside(pair.wire[0].host.monitor());
      Result<SessionRef> opened = pair.layers[0].front()->open(*pair.high, participants);
      ASSERT_TRUE(opened);
      channel = *opened;
      channel->call(Message::copy_of(pair.wire[0].host.pool(), std::as_bytes(std::span(request))), one, kNoLimit);
    }
    pair.wire.deliver_all();
    EXPECT_TRUE(one.done());
  }
  EXPECT_TRUE(pair.server->called.empty());
}

TEST(SunRpcTest, the_claimed_user_stays_that_of_its_own_request) {
  SunPair pair({.sys = AuthSysOptions{.machine = "x"}});
  pair.server->keeps = true;
  const auto request = [](std::uint32_t uid) {
    return words({uid, 0, 2, kProgram, kVersion, 7, 1, 20, 0, 0, uid, 2, 0, 0, 0});
  };
  for (const std::uint32_t uid : {11U, 12U}) EXPECT_EQ(pair.answer(request(uid)), "");
  ASSERT_EQ(pair.server->kept.size(), 2U);
  for (const std::uint32_t which : {0U, 1U})
    EXPECT_EQ(test::asked<control::ClaimedUser>(*pair.server->kept[which]).uid, 11 + which);
}

TEST(SunRpcTest, procedure_0_is_answered_without_a_credential) {
  SunPair pair({.sys = AuthSysOptions{.machine = "x"}});
  EXPECT_EQ(pair.answer(words({1, 0, 2, kProgram, kVersion, 0, 0, 0, 0, 0})), words({1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(pair.answer(words({1, 0, 2, kProgram, kVersion, 1, 0, 0, 0, 0})), words({1, 1, 1, 1, 5}));
}

TEST(SunRpcTest, procedures_beyond_the_commands_are_not_there) {
  SunPair pair;  // its server has enabled all commands of the program in the options
  EXPECT_EQ(pair.answer(words({1, 0, 2, kProgram, kVersion, 65536 + 7, 0, 0, 0, 0})), words({1, 1, 0, 0, 0, 3}));
  pair.enable(kVersion, 7, kProgram + 1);
  EXPECT_EQ(pair.answer(words({1, 0, 2, kProgram + 1, kVersion, 65536 + 7, 0, 0, 0, 0})), words({1, 1, 0, 0, 0, 3}));
  pair.enable(kVersion, 65536 + 7, kProgram + 1);
  EXPECT_EQ(pair.answer(words({1, 0, 2, kProgram + 1, kVersion, 65536 + 7, 0, 0, 0, 0})), words({1, 1, 0, 0, 0, 0}));
}

TEST(SunRpcTest, no_layer_says_how_long_its_messages_may_be_and_asking_ends) {
  SunPair pair;
  for (const auto& layer : pair.layers[1]) {
    control::AdvertisedMaximum advertised;
    EXPECT_EQ(control::ask(*layer, advertised), Errc::not_supported) << layer->name();
  }
}

}  // namespace
}  // namespace lrpc::netrpc::sun_test
