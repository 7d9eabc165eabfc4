// AUTH between honest hosts: delivery, handshakes, reboots, changes of keys, and the state that it keeps.
#include <gtest/gtest.h>

#include <algorithm>

#include "netrpc/protocols/auth/test/auth_fixture.h"

namespace lrpc::netrpc::auth {
namespace {

TEST_P(AuthBy, messages_arrive_in_both_directions_unpadded) {
  start();
  send(0, "a");
  run();
  EXPECT_EQ(received(1), Texts{"a"});
  send(1, "");
  run();
  EXPECT_EQ(received(0), Texts{""});
  EXPECT_EQ(stacks[1].sink->from.front(), net->address(0));
  const std::string large(1000, 'x');
  send(0, large);
  run();
  EXPECT_EQ(received(1).back(), large);
}

TEST_P(AuthBy, messages_that_wait_for_the_handshake_arrive_in_order) {
  start();
  const SessionRef session = open(0, 1);
  Texts expected;
  for (int i = 0; i < 10; ++i) {
    expected.push_back(std::to_string(i));
    EXPECT_EQ(push(0, session, expected.back()), Errc::ok);
  }
  run();
  EXPECT_EQ(received(1), expected);
}

TEST_P(AuthBy, no_more_messages_wait_than_the_option_says) {
  Options options;
  options.set("pending", "3");
  start({}, options);
  const SessionRef session = open(0, 1);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(push(0, session, std::to_string(i)), Errc::ok);
  run();
  EXPECT_EQ(received(1), (Texts{"0", "1", "2"}));
  EXPECT_EQ(statistics(0).refused, 7U);
}

TEST_P(AuthBy, opening_to_a_host_without_a_key_is_not_permitted_and_says_so) {
  start("10.0.0.77 " + generate_key(), "* " + generate_key());
  const Shepherd inside((*net)[0].monitor());
  const auto session = stacks[0].auth->open(*stacks[0].sink, net->to(1));
  EXPECT_EQ(session.code(), Errc::not_permitted);
  EXPECT_EQ(session.error().message(), "auth: there is no key for host 10.0.0.2; add one to " + files[0]->path());
}

TEST_P(AuthBy, opening_fails_for_the_reason_that_the_layer_below_has) {
  start();
  for (const Errc reason : {Errc::limit_reached, Errc::host_unreachable}) {
    const Shepherd inside((*net)[0].monitor());
    stacks[0].tap->refuses = reason;
    EXPECT_EQ(stacks[0].auth->open(*stacks[0].sink, net->to(1)).code(), reason);
  }
  stacks[0].tap->refuses = Errc::ok;
  send(0, "later");
  run();
  EXPECT_EQ(received(1), Texts{"later"});
}

TEST_P(AuthBy, the_receiver_recovers_when_it_has_rebooted) {
  start();
  const SessionRef session = open(0, 1);
  ASSERT_EQ(push(0, session, "before"), Errc::ok);
  run();
  BootId told = 0;
  {
    const Shepherd inside((*net)[0].monitor());
    (*net)[0].host().peers().watch([&told](HostAddress, BootId, BootId now) { told = now; });
  }
  (*net)[1].crash();
  (*net)[1].boot();
  ASSERT_EQ(push(0, session, "lost"), Errc::ok);  // the answer says that the association is unknown
  run();
  ASSERT_EQ(push(0, session, "after"), Errc::ok);
  run();
  EXPECT_EQ(received(1), Texts{"after"});
  EXPECT_EQ(told, (*net)[1].host().boot_id());
}

TEST_P(AuthBy, the_sender_recovers_when_it_has_rebooted) {
  start();
  send(0, "before");
  run();
  (*net)[0].crash();
  (*net)[0].boot();
  send(0, "after");
  run();
  EXPECT_EQ(received(1), (Texts{"before", "after"}));
  send(1, "back");
  run();
  EXPECT_EQ(received(0), Texts{"back"}) << "and the other way with the new association";
}

TEST_P(AuthBy, both_sides_may_begin_at_once) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimOptions sim;
    sim.seed = seed;
    sim.link.jitter = 20us;
    start(sim);
    SessionRef a = open(0, 1);
    SessionRef b = open(1, 0);
    ASSERT_EQ(push(0, a, "from a"), Errc::ok);
    ASSERT_EQ(push(1, b, "from b"), Errc::ok);
    run();
    EXPECT_EQ(received(1), Texts{"from a"}) << "seed " << seed;
    EXPECT_EQ(received(0), Texts{"from b"}) << "seed " << seed;
    // Both hosts use the same one of the two associations, also after the other one was wiped.
    run(200s);
    const auto hellos = arrived(0, Type::hello).size() + arrived(1, Type::hello).size();
    ASSERT_EQ(push(0, a, "again a"), Errc::ok);
    ASSERT_EQ(push(1, b, "again b"), Errc::ok);
    run();
    EXPECT_EQ(received(1).back(), "again a");
    EXPECT_EQ(received(0).back(), "again b");
    EXPECT_EQ(arrived(0, Type::hello).size() + arrived(1, Type::hello).size(), hellos) << "seed " << seed;
    a = b = {};  // before the graph that they belong to
    net.reset();
  }
}

TEST_P(AuthBy, keys_change_under_way_without_loss) {
  Options options;
  options.set("rekey_messages", "10");
  SimOptions sim;
  sim.link.jitter = 30us;
  start(sim, options);
  const SessionRef session = open(0, 1);
  Texts expected;
  for (int i = 0; i < 500; ++i) {
    expected.push_back(std::to_string(i));
    ASSERT_EQ(push(0, session, expected.back()), Errc::ok);
    run(40us);
  }
  run();
  Texts got = received(1);
  std::sort(got.begin(), got.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(got, expected);
  EXPECT_GE(arrived(0, Type::hello_reply).size(), 10U);
}

TEST_P(AuthBy, keys_change_with_time) {
  start();
  const SessionRef session = open(0, 1);
  ASSERT_EQ(push(0, session, "a"), Errc::ok);
  run(2h);
  const auto before = arrived(0, Type::hello_reply).size();
  ASSERT_EQ(push(0, session, "b"), Errc::ok);
  run();
  ASSERT_EQ(push(0, session, "c"), Errc::ok);
  run();
  EXPECT_EQ(received(1), (Texts{"a", "b", "c"}));
  EXPECT_EQ(arrived(0, Type::hello_reply).size(), before + 1);
}

TEST_P(AuthBy, says_how_the_peer_is_known) {
  const std::string key = generate_key();
  start("10.0.0.0/24 " + key, "* " + key);
  const SessionRef session = open(0, 1);
  const Shepherd inside((*net)[0].monitor());
  const auto authenticated = test::asked<control::Authenticated>(*session);
  EXPECT_TRUE(authenticated.authenticated);
  EXPECT_STREQ(authenticated.key_name.data(), "10.0.0.0/24");
}

TEST_P(AuthBy, leaves_room_for_its_header) {
  start();
  const SessionRef session = open(0, 1);
  control::MaximumMessage maximum;
  {
    const Shepherd inside((*net)[0].monitor());
    maximum = test::asked<control::MaximumMessage>(*session);
    EXPECT_EQ(maximum.size, SimEthernet::kMaximum - kOverhead);
  }
  const std::string largest(maximum.size, 'm');
  ASSERT_EQ(push(0, session, largest), Errc::ok);
  run();
  EXPECT_EQ(received(1), Texts{largest});
  EXPECT_EQ(push(0, session, largest + "."), Errc::message_too_long);
}

TEST_P(AuthBy, a_key_that_is_taken_away_cuts_the_peer_off) {
  const std::string key = generate_key();
  start("* " + key, "* " + key);
  const SessionRef session = open(0, 1);
  ASSERT_EQ(push(0, session, "before"), Errc::ok);
  run();
  files[1]->write("10.0.0.77 " + key);
  {
    const Shepherd inside((*net)[1].monitor());
    EXPECT_EQ(test::asked<control::RereadKeys>(*stacks[1].auth).keys, 1U);
  }
  ASSERT_EQ(push(0, session, "refused"), Errc::ok);
  run();
  EXPECT_EQ(received(1), Texts{"before"});
  files[1]->write("* " + key);
  {
    const Shepherd inside((*net)[1].monitor());
    (void)test::asked<control::RereadKeys>(*stacks[1].auth);
  }
  ASSERT_EQ(push(0, session, "lost"), Errc::ok);
  run();
  ASSERT_EQ(push(0, session, "again"), Errc::ok);
  run();
  EXPECT_EQ(received(1), (Texts{"before", "again"}));
}

TEST_P(AuthBy, keys_that_are_wrong_change_nothing_and_who_has_them_read_is_told_why) {
  const std::string key = generate_key();
  start("* " + key, "* " + key);
  files[1]->write("* rubbish");
  {
    const Shepherd inside((*net)[1].monitor());
    std::string why;
    control::RereadKeys again{.why = &why};
    EXPECT_EQ(control::ask(*stacks[1].auth, again), Errc::invalid_argument);
    EXPECT_NE(why.find(":1: the key is not 32 bytes in base64"), std::string::npos) << why;
  }
  const SessionRef session = open(0, 1);
  ASSERT_EQ(push(0, session, "still"), Errc::ok);
  run();
  EXPECT_EQ(received(1), Texts{"still"});
}

TEST_P(AuthBy, keeps_nothing_that_nobody_needs) {
  start();
  send(0, "message");
  run();
  for (const std::size_t at : {0U, 1U}) {
    const Shepherd inside((*net)[at].monitor());
    stacks[at].sink->sessions.clear();
    control::Request drop{control::DropIdle{}};
    ASSERT_EQ(stacks[at].auth->control(drop), Errc::ok);
  }
  for (const std::size_t at : {0U, 1U}) {
    EXPECT_EQ(statistics(at).state, 0U);
    EXPECT_EQ(statistics(at).sessions, 0U);
  }
  send(0, "again");
  run();
  EXPECT_EQ(received(1), (Texts{"message", "again"}));
}

TEST_P(AuthBy, allocates_nothing_for_a_message_once_it_is_warm) {
  start();
  stacks[1].tap->on_arrival = [](std::string&) { return true; };
  const SessionRef session = open(0, 1);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(push(0, session, "warm"), Errc::ok);
  run();
  const std::uint64_t before = (*net)[0].pool().allocations() + (*net)[1].pool().allocations();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(push(0, session, "hot"), Errc::ok);
    run(100us);
  }
  EXPECT_EQ((*net)[0].pool().allocations() + (*net)[1].pool().allocations(), before);
  EXPECT_EQ(received(1).size(), 1010U);
}

// The tests of AuthBy in hostile_test.cpp run with these, too.
INSTANTIATE_TEST_SUITE_P(both_ciphers, AuthBy, testing::Values("chacha20-poly1305", "aes256-gcm"),
                         [](const auto& tested) {
                           return tested.param == std::string_view("aes256-gcm") ? "aes256_gcm" : "chacha20_poly1305";
                         });

}  // namespace
}  // namespace lrpc::netrpc::auth
