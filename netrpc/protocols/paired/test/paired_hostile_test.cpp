// What a peer may do, and which effects it must not have: forged segments, lives, bounds.
#include <algorithm>
#include <utility>

#include "paired_pair.h"

namespace lrpc::netrpc::paired {
namespace {

using namespace std::chrono_literals;

TEST(PairedHostileTest, segments_that_nobody_may_send_are_counted_and_bring_about_nothing) {
  PairedPair pair;
  const std::string kilobyte(kSegment, 'x');
  const std::vector<std::pair<Header, std::string>> wrong{
      {{.control = 0, .segment = 1}, "x"},                               // no control bit
      {{.control = 0x20, .segment = 1}, "x"},                            // an undefined bit
      {{.control = bits::kLastSegment | bits::kAck, .segment = 1}, ""},  // both
      {{.control = bits::kProbe | bits::kPleaseAck}, ""},                //
      {{.control = bits::kLastSegment, .segment = 0}, "x"},              // numbers start at 1
      {{.control = bits::kAck, .segment = 0}, ""},                       //
      {{.control = bits::kAck, .segment = 1}, "x"},                      // an acknowledgement with data
      {{.control = bits::kProbe}, "x"},                                  //
      {{.control = bits::kPleaseAck, .segment = 1}, std::string(kLeastSegment - 1, 'x')},  // too short
      {{.control = bits::kLastSegment, .segment = 1}, kilobyte + "x"},                     // too long
      {{.control = bits::kLastSegment, .segment = 1, .length = 9}, "x"},                   // shorter than `length`
  };
  for (const auto& [header, data] : wrong) pair.forge(header, data);
  pair.wire.deliver({0, PacketWire::address(1), std::string(Header::kSize - 1, '\0')});
  EXPECT_EQ(pair.statistics().malformed, wrong.size() + 1);
  EXPECT_TRUE(pair.wire.packets.empty());
  EXPECT_EQ(pair.statistics().sessions, 0U);
  EXPECT_TRUE(pair.server->executed.empty());
}

TEST(PairedHostileTest, whoever_has_not_been_answered_makes_no_state_and_executes_nothing) {
  PairedPair pair;
  for (std::uint16_t channel = 1; channel <= 1000; ++channel) {
    pair.forge({.control = bits::kProbe, .call_number = 1, .channel = channel});
    pair.forge({.control = bits::kLastSegment, .segment = 1, .call_number = 1, .channel = channel}, "guess");
    const std::uint64_t life = std::uint64_t{pair.wire[1].host.boot_id()} << 32;
    pair.forge({.control = bits::kLastSegment,
                .segment = 1,
                .call_number = 1,
                .conversation = life | 1'000'000,
                .channel = channel},
               "a meeting that has not been");
  }
  EXPECT_EQ(pair.statistics().sessions, 0U);
  EXPECT_TRUE(pair.server->executed.empty());
  EXPECT_EQ(pair.wire.packets.size(), 3000U);  // one answer per question, none of them longer
}

TEST(PairedHostileTest, a_lower_or_equal_call_number_is_a_duplicate) {
  PairedPair pair;
  const std::uint64_t conversation = pair.meet();
  const auto request = [&](std::uint32_t call) {
    pair.forge(
        {.control = bits::kLastSegment, .segment = 1, .call_number = call, .conversation = conversation, .channel = 99},
        std::to_string(call));
  };
  for (const std::uint32_t call : {7U, 7U, 6U, 8U, 7U, 8U, 1U, 100U, 99U}) request(call);
  EXPECT_EQ(pair.server->executed, (std::vector<std::string>{"7", "8", "100"}));
  EXPECT_EQ(pair.statistics().duplicates, 6U);
}

TEST(PairedHostileTest, call_numbers_are_compared_over_the_wrap_around) {
  PairedPair pair({.first_call = ~std::uint32_t{0} - 1});
  for (const std::string text : {"a", "b", "c", "d"}) pair.expect_ok(text);
  EXPECT_EQ(pair.server->executed.size(), 4U);
}

TEST(PairedHostileTest, a_request_of_the_former_life_of_a_client_is_not_executed_again) {
  PairedPair pair;
  const std::uint64_t former = pair.meet();
  const std::uint64_t present = pair.meet();
  const auto request = [&](std::uint64_t conversation, std::uint32_t call, std::string_view text) {
    pair.forge(
        {.control = bits::kLastSegment, .segment = 1, .call_number = call, .conversation = conversation, .channel = 99},
        text);
  };
  request(former, 1000, "former");
  request(present, 5, "present");
  request(former, 1000, "former");
  request(former, 1001, "late");
  EXPECT_EQ(pair.server->executed, (std::vector<std::string>{"former", "present"}));
}

TEST(PairedHostileTest, a_server_in_another_life_executes_nothing_that_was_meant_for_the_one_before) {
  PairedPair pair;
  pair.expect_ok("before");
  pair.reboot_server();
  TestCall lost;
  pair.call(lost, "meant for the former life");
  pair.wire.deliver_all();
  EXPECT_EQ(lost.outcome, Errc::call_failed);
  EXPECT_EQ(lost.completions, 1);
  EXPECT_TRUE(pair.server->executed.empty());
  pair.expect_ok("after");
}

TEST(PairedHostileTest, replies_of_another_call_or_conversation_are_dropped) {
  PairedPair pair;
  pair.expect_ok("before");
  pair.server->at_once = false;
  TestCall call;
  pair.call(call, "x");
  const PacketWire::Packet request = pair.next();
  const Header of = PairedPair::header_of(request);
  const auto reply = [&](std::uint32_t number, std::uint64_t conversation) {
    pair.forge({.control = bits::kLastSegment | bits::kFromServer,
                .segment = 1,
                .call_number = number,
                .conversation = conversation,
                .channel = of.channel},
               "forged", 1, 0);
  };
  reply(of.call_number - 1, of.conversation);
  reply(of.call_number + 1, of.conversation);
  reply(of.call_number, of.conversation + 1);
  reply(of.call_number, of.conversation ^ std::uint64_t{1} << 40);
  EXPECT_FALSE(call.done());
  pair.wire.deliver(request);
  pair.answer("right");
  pair.wire.deliver_all();
  EXPECT_EQ(call.reply, "right");
}

/// Both ends ignore those for an earlier call, or for one that was not made yet.
TEST(PairedHostileTest, probes_and_acknowledgements_of_another_call_are_dropped) {
  PairedPair pair;
  pair.expect_ok("before");
  pair.server->at_once = false;
  TestCall call;
  pair.call(call, std::string(2 * kSegment, 'x'));
  const PacketWire::Packet request = pair.next();
  const Header of = PairedPair::header_of(request);
  /// Forges an acknowledgement of the other end's first segment, and a probe, whose call number differs by `later` from
  /// the call's. Returns how many packets that other end then sends.
  const auto forge_both = [&](std::uint32_t later, bool to_client) {
    const auto from = static_cast<std::uint16_t>(to_client ? bits::kFromServer : 0);
    for (Header header : {Header{.control = bits::kAck, .segment = 1}, Header{.control = bits::kProbe}}) {
      header.control |= from;
      header.call_number = of.call_number + later;
      header.conversation = of.conversation;
      header.channel = of.channel;
      pair.forge(header, {}, to_client ? 1 : 0, to_client ? 0 : 1);
    }
    return std::exchange(pair.wire.packets, {}).size();
  };
  constexpr std::uint32_t kEarlier = ~std::uint32_t{0};
  Protocol& client = *pair.clients[0].paired;
  const std::uint64_t duplicates = PairedPair::statistics(client).duplicates;
  for (const std::uint32_t later : {kEarlier, 1U}) EXPECT_EQ(forge_both(later, true), 0U) << "to the client";
  EXPECT_EQ(PairedPair::statistics(client).duplicates, duplicates + 4);

  pair.wire.deliver(request);
  while (pair.server->pending.empty()) pair.arrives();
  pair.wire.packets.clear();
  pair.answer(std::string(2 * kSegment, 'y'));
  const PacketWire::Packet reply = pair.next();
  for (const std::uint32_t later : {kEarlier, 1U}) EXPECT_EQ(forge_both(later, false), 0U) << "to the server";
  EXPECT_EQ(pair.server->executed.size(), 2U);
  EXPECT_EQ(forge_both(0, false), 2U) << "of this call: the next segment, and an answer to the probe";
  pair.wire.deliver(reply);
  while (!call.done()) pair.arrives();
  EXPECT_EQ(call.reply, std::string(2 * kSegment, 'y'));
}

/// Each end gives the other up, but remembers the channel for the no-activity time.
TEST(PairedHostileTest, a_late_copy_of_a_request_whose_communication_was_lost_is_not_executed_again) {
  PairedPair pair({.max_retry = 3, .no_activity = 60s});
  pair.expect_ok("before");
  TestCall lost;
  pair.call(lost, "lost");
  const PacketWire::Packet request = pair.next();
  pair.wire.deliver(request);
  EXPECT_EQ(pair.executions("lost"), 1U);
  for (int i = 0; i < 20; ++i) {  // from now on every packet is lost
    pair.wire.packets.clear();
    pair.wire.pass(1s, 1ms);
  }
  EXPECT_EQ(lost.outcome, Errc::call_failed);
  EXPECT_TRUE(pair.wire.packets.empty()) << "both have given up";
  EXPECT_EQ(pair.statistics().sessions, 1U);
  pair.wire.deliver(request);
  EXPECT_EQ(pair.executions("lost"), 1U);
  pair.expect_ok("after");
  pair.wire.deliver(request);
  EXPECT_EQ(pair.executions("lost"), 1U);
  pair.session = {};
  pair.wire.pass(180s, 100ms);
  EXPECT_EQ(pair.statistics().sessions, 0U);
  EXPECT_EQ(PairedPair::statistics(*pair.clients[0].paired).sessions, 0U);
}

TEST(PairedHostileTest, a_call_without_a_sign_of_life_fails_and_one_that_was_never_sent_is_unreachable) {
  PairedPair pair({.max_retry = 5});
  TestCall never;
  pair.call(never, "never");
  for (int i = 0; i < 1 + 5; ++i) pair.is_lost();
  EXPECT_FALSE(never.done());
  pair.wire.pass(10s, 1ms);
  EXPECT_TRUE(pair.wire.packets.empty());
  EXPECT_EQ(never.outcome, Errc::host_unreachable);
  pair.expect_ok("between");
  TestCall unheard;
  pair.call(unheard, "unheard");
  for (int i = 0; i < 1 + 5; ++i) pair.is_lost();
  EXPECT_FALSE(unheard.done());
  pair.wire.pass(10s, 1ms);
  for (const auto& packet : pair.wire.packets) EXPECT_EQ(packet.from, 1U);  // the earlier reply again
  EXPECT_EQ(unheard.outcome, Errc::call_failed);
}

TEST(PairedHostileTest, a_call_whose_time_is_over_keeps_the_channel_until_the_server_has_answered) {
  PairedPair pair;
  pair.expect_ok("before");
  pair.server->at_once = false;
  TestCall late;
  pair.call(late, "late", 300ms);
  pair.arrives();
  while (!late.done()) {
    pair.wire.pass(1ms);
    pair.wire.deliver_all();
  }
  EXPECT_EQ(late.outcome, Errc::call_aborted);
  TestCall busy;
  pair.call(busy, "busy");
  EXPECT_EQ(busy.outcome, Errc::limit_reached);
  pair.answer("nobody waits");
  pair.wire.deliver_all();
  pair.server->at_once = true;
  pair.expect_ok("next");
  EXPECT_EQ(late.completions, 1);
}

/// The receive buffer is full while messages of other hosts take all the memory.
TEST(PairedHostileTest, a_sender_is_held_up_while_there_is_no_room_and_goes_on_when_there_is) {
  PairedPair pair({.memory = 8'000}, 4);
  pair.server->at_once = false;
  const std::string large(10'000, 'x');
  const std::vector<SessionRef> sessions{pair.session, pair.open(2), pair.open(3)};
  std::vector<std::unique_ptr<TestCall>> calls;
  for (const SessionRef& session : sessions)
    pair.call(*session, *calls.emplace_back(std::make_unique<TestCall>()), large);
  // Packets are delivered in turn, so that all three messages are in transit at the same time.
  bool held_up = false;
  std::vector<std::uint16_t> last(4);
  for (int i = 0; i < 100'000 && !std::ranges::all_of(calls, [](auto& call) { return call->done(); }); ++i) {
    const PacketWire::Packet packet = pair.next();
    const Header header = PairedPair::header_of(packet);
    if (packet.from != 1 && header.data())
      last[packet.from] = header.segment;
    else if (packet.from == 1 && header.has(bits::kAck) && !header.has(bits::kProbe))
      held_up = held_up || header.segment < last[packet.to.value - PacketWire::address(0).value];
    pair.wire.deliver(packet);
    if (!pair.server->pending.empty()) pair.answer("done");
    pair.record.clear();
  }
  EXPECT_TRUE(held_up);
  for (const auto& call : calls) EXPECT_EQ(call->reply, "done");
  EXPECT_EQ(pair.server->executed, (std::vector<std::string>{large, large, large}));
}

TEST(PairedHostileTest, a_request_that_does_not_grow_is_let_go_of_though_its_client_answers_probes) {
  PairedPair pair;
  const std::uint64_t conversation = pair.meet();
  pair.forge({.control = bits::kPleaseAck, .segment = 1, .call_number = 1, .conversation = conversation, .channel = 99},
             std::string(kSegment, 'x'));
  EXPECT_GT(pair.wire[1].host.pool().in_use(), 0U);
  for (int i = 0; i < 20'000 && pair.statistics().sessions > 0; ++i) {
    pair.wire.pass(100ms, 100ms);
    while (!pair.wire.packets.empty())
      if (PairedPair::header_of(pair.wire.take()).has(bits::kProbe))
        pair.forge(
            {.control = bits::kProbe | bits::kAck, .call_number = 1, .conversation = conversation, .channel = 99});
  }
  EXPECT_EQ(pair.statistics().sessions, 0U);
  EXPECT_EQ(pair.wire[1].host.pool().in_use(), 0U);
}

TEST(PairedHostileTest, a_reply_is_let_go_of_when_its_client_acknowledges_and_never_takes_it) {
  PairedPair pair;
  pair.server->at_once = false;
  const std::uint64_t conversation = pair.meet();
  pair.forge(
      {.control = bits::kLastSegment, .segment = 1, .call_number = 1, .conversation = conversation, .channel = 99},
      "x");
  pair.answer(std::string(3000, 'y'));
  BufferPool& pool = pair.wire[1].host.pool();
  int rounds = 0;
  for (; rounds < 20'000 && pool.in_use() > 0; ++rounds) {
    // Always acknowledge the first segment, as if the receive buffer were full for ever.
    pair.forge({.control = bits::kAck, .segment = 1, .call_number = 1, .conversation = conversation, .channel = 99});
    pair.wire.pass(100ms, 100ms);
    pair.wire.packets.clear();
  }
  EXPECT_GT(rounds, 1000);  // each acknowledgement has reset the retry counter
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(PairedHostileTest, a_message_longer_than_may_be_is_let_go_of_and_its_sender_is_told_so) {
  PairedPair pair({.max_message = 3 * kSegment});
  const std::uint64_t conversation = pair.meet();
  for (std::uint16_t segment = 1; segment <= 10; ++segment)
    pair.forge({.control = bits::kPleaseAck,
                .segment = segment,
                .call_number = 1,
                .conversation = conversation,
                .channel = 99},
               std::string(kSegment, 'x'));
  EXPECT_TRUE(pair.server->executed.empty());
  ASSERT_EQ(pair.wire.packets.size(), 4U + 7U);  // the acknowledgements of accepted segments
  for (std::size_t i = 4; i < 4 + 7; ++i) EXPECT_TRUE(PairedPair::header_of(pair.wire.packets[i]).has(bits::kLost));
  pair.wire.packets.clear();
  EXPECT_EQ(pair.wire[1].host.pool().in_use(), 0U);
  TestCall call;
  pair.call(call, std::string(3 * kSegment + 1, 'x'));
  EXPECT_EQ(call.outcome, Errc::message_too_long);
}

TEST(PairedHostileTest, sessions_are_bounded_for_a_host_and_in_all_and_others_are_served) {
  PairedPair pair({.sessions = 10, .sessions_per_host = 4}, 4);
  for (const std::size_t from : {2U, 3U})
    for (std::uint16_t channel = 1; channel <= 10; ++channel) {
      const std::uint64_t conversation = pair.meet(from, channel);
      pair.forge({.control = bits::kLastSegment,
                  .segment = 1,
                  .call_number = 1,
                  .conversation = conversation,
                  .channel = channel},
                 "x", from);
    }
  EXPECT_EQ(pair.statistics().sessions, 6U);
  EXPECT_EQ(pair.statistics().refused, 14U);
  EXPECT_EQ(pair.server->executed.size(), 6U);
}

TEST(PairedHostileTest, requests_that_a_client_gives_up_by_a_new_life_count_for_its_host_while_they_are_executed) {
  PairedPair pair({.sessions_per_host = 4}, 3);
  pair.server->at_once = false;
  for (int life = 0; life < 10; ++life)
    pair.forge(
        {.control = bits::kLastSegment, .segment = 1, .call_number = 1, .conversation = pair.meet(2), .channel = 99},
        "x", 2);
  EXPECT_EQ(pair.server->pending.size(), 4U);
}

TEST(PairedHostileTest, state_is_kept_for_the_no_activity_time_and_no_longer_than_twice_that) {
  PairedPair pair({.no_activity = 60s});
  pair.expect_ok("x");
  pair.session = {};
  pair.wire.pass(59s, 100ms);
  pair.wire.deliver_all();
  EXPECT_EQ(pair.statistics().sessions, 1U);
  EXPECT_EQ(PairedPair::statistics(*pair.clients[0].paired).sessions, 1U);
  pair.wire.pass(120s, 100ms);
  EXPECT_EQ(pair.statistics().sessions, 0U);
  EXPECT_EQ(PairedPair::statistics(*pair.clients[0].paired).sessions, 0U);
}

TEST(PairedHostileTest, a_channel_that_its_user_has_let_go_of_is_used_again) {
  PairedPair pair;
  for (int i = 0; i < 10; ++i) {
    pair.expect_ok(std::to_string(i));
    pair.session = {};
    pair.session = pair.open();
  }
  EXPECT_EQ(pair.statistics().sessions, 1U);
}

TEST(PairedHostileTest, a_call_of_a_session_that_its_user_lets_go_of_is_never_completed) {
  PairedPair pair;
  pair.expect_ok("before");
  TestCall call;
  pair.call(call, "x");
  pair.session = {};
  pair.wire.deliver_all();
  pair.wire.pass(10s, 10ms);
  EXPECT_EQ(call.completions, 0);
  EXPECT_EQ(pair.executions("x"), 1U);
}

}  // namespace
}  // namespace lrpc::netrpc::paired
