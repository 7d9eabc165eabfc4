// AUTH over a layer whose peers are hosts and ports: which packets change the place of a host and which do not, and
// that no unauthenticated sender gets answers.
#include "netrpc/protocols/auth/test/elsewhere_fixture.h"

namespace lrpc::netrpc::auth {
namespace {

class AuthPlaces : public AuthElsewhere {
 protected:
  /// Returns the HELLO by which host 1 looks for host 0, which has been silent.
  std::string hello_after_silence() {
    for (int i = 0; i < 4; ++i) {
      lose(1);
      if (i > 0) net.world.run_for(2s);
      push(1, "lost");
    }
    std::string hello = parties[1].wire->sent.front().bytes;
    EXPECT_EQ(type_of(hello), Type::hello);
    lose(1);
    return hello;
  }
};

TEST_F(AuthPlaces, a_reply_from_elsewhere_does_not_move_the_host_that_was_asked) {
  start();
  push(0, "from inside");
  carry_from_inside();
  carry_from_outside();
  carry_from_inside();
  parties[0].wire->arrive(kAttacker, take(1));
  ASSERT_EQ(parties[0].wire->sent.size(), 1U);
  EXPECT_EQ(parties[0].wire->sent.front().to, Place{net.address(1)});
}

TEST_F(AuthPlaces, a_handshake_that_seems_to_come_from_a_host_s_own_address_does_not_keep_it_there) {
  start();
  push(1, "nobody is there");
  lose(1);
  push(0, "from inside");
  carry_from_inside();
  carry_from_outside();
  parties[1].wire->arrive({net.address(0)}, take(0));
  carry();
  for (int i = 0; i < 10 && received(1).empty(); ++i) {
    net.world.run_for(100ms);  // the HELLO is retransmitted
    carry();
  }
  ASSERT_EQ(received(1), Strings{"from inside"});
  send(1, "answer");
  ASSERT_FALSE(received(0).empty());
  EXPECT_EQ(received(0).back(), "answer");
}

TEST_F(AuthPlaces, a_host_moves_while_a_handshake_with_it_has_not_been_confirmed) {
  start();
  send(0, "one");
  const std::string hello = hello_after_silence();
  parties[0].wire->arrive({net.address(1)}, hello);
  carry_from_inside();
  carry_from_outside();
  ASSERT_EQ(type_of(parties[0].wire->sent.front().bytes), Type::hello_reply);
  carry_from_inside();
  lose(1);  // loses the confirmation
  expect_that_answers_follow_to_another_port();
}

TEST_F(AuthPlaces, a_place_just_learnt_is_not_forgotten_with_the_handshake_that_went_to_the_last_one) {
  start();
  send(0, "one");
  seen_at = {kTranslated.host, 41'000};
  std::size_t hellos = 0;
  for (int i = 0; i < 3000 && hellos < 10; ++i) {
    if (i % 100 == 0) push(1, "where are you");
    net.world.run_for(10ms);
    carry();
    for (const CarriedWire::Packet& packet : astray) hellos += type_of(packet.bytes) == Type::hello;
    astray.clear();
  }
  ASSERT_EQ(hellos, 10U) << "the last one";
  send(0, "two");
  for (int i = 0; i < 10; ++i) {
    net.world.run_for(1s);
    carry();
  }
  send(1, "answer");
  ASSERT_FALSE(received(0).empty());
  EXPECT_EQ(received(0).back(), "answer");
  EXPECT_TRUE(astray.empty());
}

TEST_F(AuthPlaces, a_host_whose_key_was_changed_is_sought_at_its_own_address) {
  start();
  send(0, "one");
  files[1]->write("10.0.0.1 " + generate_key());
  reread(1);
  push(1, "with another key");
  ASSERT_EQ(parties[1].wire->sent.size(), 1U);
  EXPECT_EQ(parties[1].wire->sent.front().to, Place{net.address(0)});
}

TEST_F(AuthPlaces, a_handshake_begins_anew_at_a_host_s_own_address_when_another_line_gets_its_key) {
  start();
  send(0, "one");
  const std::string hello = hello_after_silence();
  const std::string line = keys_of(1);
  files[1]->write(line + "10.0.0.7" + line.substr(line.find(' ')));
  reread(1);
  ASSERT_EQ(parties[1].wire->sent.size(), 1U);
  EXPECT_EQ(parties[1].wire->sent.front().to, Place{net.address(0)});
  EXPECT_NE(parties[1].wire->sent.front().bytes, hello);
}

TEST_F(AuthPlaces, a_host_hears_which_association_is_unknown_while_it_is_sought_at_its_own_address) {
  start();
  send(0, "one");
  forget(1);
  push(1, "to its own address");
  ASSERT_EQ(type_of(take(1)), Type::hello);
  push(0, "two");
  carry_from_inside();
  ASSERT_EQ(parties[1].wire->sent.size(), 1U);
  EXPECT_EQ(parties[1].wire->sent.front().to, seen_at);
  EXPECT_EQ(type_of(parties[1].wire->sent.front().bytes), Type::challenge);
}

TEST_F(AuthPlaces, a_network_s_key_signs_nothing_for_another_address) {
  start(true, "10.0.0.0/8");
  seen_at = {net.address(0), 40'000};
  send(0, "first");
  ASSERT_EQ(received(1), Strings{"first"});
  forget(1);
  push(0, "second");
  const std::string packet = take(0);
  parties[1].wire->arrive(kAttacker, packet);
  EXPECT_TRUE(parties[1].wire->sent.empty());
  parties[1].wire->arrive(seen_at, packet);
  EXPECT_EQ(parties[1].wire->sent.size(), 1U);
}

TEST_F(AuthPlaces, repetitions_of_the_accepted_hello_get_few_answers_where_the_host_is_not) {
  start();
  send(0, "one");
  std::string accepted;
  for (const std::string& packet : from_inside)
    if (type_of(packet) == Type::hello) accepted = packet;
  const auto answers = [&](const Place& from) {
    lose(1);
    for (int i = 0; i < 1000; ++i) parties[1].wire->arrive(from, accepted);
    return parties[1].wire->sent.size();
  };
  EXPECT_EQ(answers(kAttacker), 32U) << "as many as AUTH says at once that it does not know something";
  EXPECT_EQ(answers(seen_at), 1000U);
}

}  // namespace
}  // namespace lrpc::netrpc::auth
