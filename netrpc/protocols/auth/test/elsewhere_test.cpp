// AUTH over a layer whose peers are hosts and ports: a host behind an address translator is identified by its key, and
// answers go where it was heard last.
#include "netrpc/protocols/auth/test/elsewhere_fixture.h"

namespace lrpc::netrpc::auth {
namespace {

TEST_F(AuthElsewhere, a_host_with_a_key_of_its_own_is_heard_from_another_address_and_answered_there) {
  start();
  send(0, "from inside");
  EXPECT_EQ(received(1), Strings{"from inside"});
  EXPECT_EQ(parties[1].sink->from, std::vector<HostAddress>{net.address(0)}) << "as who it is, not where";
  send(1, "from outside");
  EXPECT_EQ(received(0), Strings{"from outside"});
  EXPECT_TRUE(astray.empty());
}

TEST_F(AuthElsewhere, a_network_s_key_does_not_let_a_host_speak_from_another_address) {
  start(true, "10.0.0.0/8");
  send(0, "from inside");
  EXPECT_TRUE(received(1).empty());
  EXPECT_TRUE(parties[1].wire->sent.empty());
  ASSERT_EQ(net[1].notices().size(), 1U);
  EXPECT_NE(net[1].notices()[0].find("from 10.9.9.9, which takes a line and a key of its own: '10.0.0.0/8'"),
            std::string::npos)
      << net[1].notices()[0];
  seen_at = {net.address(0), 40'000};
  net.world.run_for(1s);
  carry();
  EXPECT_EQ(received(1), Strings{"from inside"}) << "its own address it may have with any port";
}

TEST_F(AuthElsewhere, a_key_that_several_hosts_have_does_not_let_one_speak_from_another_address) {
  start(true, "10.0.0.1", "10.0.0.7");
  send(0, "from inside");
  EXPECT_TRUE(received(1).empty());
  EXPECT_EQ(net[1].notices().size(), 1U);
}

TEST_F(AuthElsewhere, a_network_s_key_does_not_let_an_association_move_to_another_address) {
  start(true, "10.0.0.0/8");
  seen_at = {net.address(0), 40'000};
  send(0, "first");
  ASSERT_EQ(received(1), Strings{"first"});
  push(0, "second");
  parties[1].wire->arrive(kAttacker, take_from_inside());
  EXPECT_EQ(received(1), Strings{"first"});
}

TEST_F(AuthElsewhere, a_key_that_another_line_gets_too_ends_what_comes_from_another_address) {
  start();
  send(0, "first");
  ASSERT_EQ(received(1), Strings{"first"});
  const std::string line = keys_of(1);
  files[1]->write(line + "10.0.0.7" + line.substr(line.find(' ')));
  reread(1);
  push(1, "to its own address");
  EXPECT_EQ(parties[1].wire->sent.front().to, Place{net.address(0)});
  lose(1);
  send(0, "second");
  EXPECT_EQ(received(1), Strings{"first"});
}

TEST_F(AuthElsewhere, no_host_speaks_from_another_address_where_peers_have_one_port) {
  start(false);
  send(0, "from inside");
  EXPECT_TRUE(received(1).empty());
  EXPECT_TRUE(parties[1].wire->sent.empty());
}

TEST_F(AuthElsewhere, answers_follow_a_host_whose_address_is_translated_to_another_port) {
  start();
  send(0, "one");
  expect_that_answers_follow_to_another_port();
}

TEST_F(AuthElsewhere, answers_do_not_follow_repeated_and_late_packets) {
  start();
  send(0, "one");
  push(0, "late");
  const std::string late = take_from_inside();
  send(0, "two");
  for (const std::string& packet : Strings(from_inside)) parties[1].wire->arrive(kAttacker, packet);
  parties[1].wire->arrive(kAttacker, late);
  EXPECT_EQ(received(1), (Strings{"one", "two", "late"}));
  carry();
  for (const CarriedWire::Packet& packet : astray) EXPECT_NE(type_of(packet.bytes), Type::data);
  astray.clear();
  send(1, "answer");
  EXPECT_EQ(received(0), Strings{"answer"});
  EXPECT_TRUE(astray.empty());
}

TEST_F(AuthElsewhere, a_host_that_has_answered_at_its_own_address_is_not_taken_away_by_a_packet_from_elsewhere) {
  start();
  seen_at = {net.address(0)};
  send(1, "from outside");
  send(0, "from inside");
  push(0, "held up");
  parties[1].wire->arrive(kAttacker, take_from_inside());
  EXPECT_EQ(received(1), (Strings{"from inside", "held up"}));
  send(1, "answer");
  EXPECT_EQ(received(0), (Strings{"from outside", "answer"}));
  EXPECT_TRUE(astray.empty());
}

TEST_F(AuthElsewhere, a_new_handshake_moves_a_host_that_was_sought_at_its_own_address) {
  start();
  push(1, "nobody is there");
  carry();
  EXPECT_EQ(astray.size(), 1U);
  send(0, "from inside");
  EXPECT_EQ(received(0), Strings{"nobody is there"});
  send(1, "answer");
  EXPECT_EQ(received(0), (Strings{"nobody is there", "answer"}));
}

TEST_F(AuthElsewhere, a_new_handshake_moves_a_host_that_has_answered_at_its_own_address) {
  start();
  seen_at = {net.address(0)};
  send(1, "from outside");
  send(0, "at home");
  forget(0);
  seen_at = kTranslated;
  send(0, "moved");
  EXPECT_EQ(received(1), (Strings{"at home", "moved"}));
  send(1, "answer");
  EXPECT_EQ(received(0), (Strings{"from outside", "answer"}));
}

/// So an attacker who once forwarded a packet from another place does not cut the host off for good.
TEST_F(AuthElsewhere, a_host_that_does_not_answer_where_it_was_heard_last_is_sought_at_its_own_address) {
  start();
  send(0, "one");
  seen_at = {net.address(0)};
  for (int i = 0; i < 60 && received(0).empty(); ++i) {
    send(1, "where are you");
    net.world.run_for(1s);
    carry();
  }
  ASSERT_FALSE(received(0).empty());
  astray.clear();
  send(1, "answer");
  EXPECT_EQ(received(0).back(), "answer");
  EXPECT_TRUE(astray.empty());
}

}  // namespace
}  // namespace lrpc::netrpc::auth
