// AUTH over a layer whose peers are hosts and ports: a host behind an address translation is known by its key, and
// answered where it was heard last.
#include <gtest/gtest.h>

#include <deque>
#include <fstream>
#include <map>

#include "lrpc/netrpc/session_cache.h"
#include "netrpc/protocols/auth/keys.h"
#include "netrpc/protocols/auth/protocol.h"
#include "netrpc/protocols/auth/test/key_file.h"
#include "netrpc/sim/test_hosts.h"

namespace lrpc::netrpc::auth {
namespace {

using namespace std::chrono_literals;

struct Place {
  HostAddress host;
  std::uint16_t port = 1;  ///< The port that hosts have if nobody translates it.
  friend auto operator<=>(const Place& a, const Place& b) noexcept {
    return std::pair(a.host.value, a.port) <=> std::pair(b.host.value, b.port);
  }
  friend bool operator==(const Place&, const Place&) noexcept = default;
};

/// A datagram service whose packets the test carries.
class CarriedWire final : public Protocol {
 public:
  struct Packet {
    Place to;
    std::string bytes;
  };
  explicit CarriedWire(Host& host) : Protocol(host, "wire") {}
  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    return session(high, {participants.remote.host});
  }
  Status open_enable(Protocol& high, const ParticipantSet& /*participants*/) override {
    high_ = &high;
    return {};
  }
  void arrive(const Place& from, const std::string& bytes) {
    const Shepherd inside(host().monitor());
    high_->demux(*session(*high_, from), Message::copy_of(host().pool(), std::as_bytes(std::span(bytes))));
  }
  void drop_sessions() { sessions_.clear(); }

  std::deque<Packet> sent;

 private:
  class WireSession final : public Session {
   public:
    WireSession(CarriedWire& wire, Protocol& high, const Place& peer)
        : Session(wire, high, {protocol_numbers::kAuth, {}, participant(peer)}), wire_(wire), peer_(peer) {}
    Errc push(Message message) noexcept override {
      wire_.sent.push_back({peer_, text_of(message)});
      return Errc::ok;
    }

   private:
    static Participant participant(const Place& peer) {
      Participant participant;
      participant.host = peer.host;
      participant.port = peer.port;
      return participant;
    }
    CarriedWire& wire_;
    const Place peer_;
  };
  SessionRef session(Protocol& high, const Place& peer) {
    SessionRef& known = sessions_[peer];
    if (!known) known = SessionRef(new WireSession(*this, high, peer));
    return known;
  }

  Protocol* high_ = nullptr;
  std::map<Place, SessionRef> sessions_;
};

struct Party {
  CarriedWire* wire = nullptr;
  AuthProtocol* auth = nullptr;
  SinkProtocol* sink = nullptr;
};

/// Host 0 is inside, host 1 outside, where packets from 0 seem to come from `seen_at`.
class AuthElsewhere : public ::testing::Test {
 protected:
  void start(bool anywhere = true, const std::string& line = "10.0.0.1", const std::string& another_line = {}) {
    const std::string key = generate_key();
    files.push_back(std::make_unique<KeyFile>("10.0.0.2 " + key));
    std::string outside = line + " " + key + "\n";
    if (!another_line.empty()) outside += another_line + " " + key + "\n";
    files.push_back(std::make_unique<KeyFile>(outside));
    for (std::size_t i = 0; i < 2; ++i) {
      net[i].on_boot([this, i, anywhere](SimHost& machine) {
        Party& party = parties[i];
        party.wire = &machine.add<CarriedWire>();
        AuthOptions options;
        options.keys = files[i]->path();
        options.settings.anywhere = anywhere;
        auto ring = KeyRing::read(options.keys);
        ASSERT_TRUE(ring) << ring.error().message();
        auto auth =
            std::make_shared<AuthProtocol>(machine.host(), "auth", *party.wire, std::move(options), std::move(*ring));
        party.auth = auth.get();
        machine.own(auth);
        ASSERT_TRUE(auth->enable_below());
        party.sink = &machine.add<SinkProtocol>();
        ASSERT_TRUE(auth->open_enable(*party.sink, SimHosts::anyone()));
      });
    }
    seen_at = kTranslated;
  }
  void push(std::size_t from, std::string_view text) {
    const Shepherd inside(net[from].monitor());
    auto session = parties[from].auth->open(*parties[from].sink, net.to(1 - from));
    ASSERT_TRUE(session) << session.error().message();
    EXPECT_EQ((*session)->push(net.message(from, text)), Errc::ok);
  }
  /// Carries what the two have sent, and what they answer.
  void carry() {
    CarriedWire& inner = *parties[0].wire;
    CarriedWire& outer = *parties[1].wire;
    while (!inner.sent.empty() || !outer.sent.empty()) {
      for (; !inner.sent.empty(); inner.sent.pop_front()) {
        from_inside.push_back(inner.sent.front().bytes);
        outer.arrive(seen_at, inner.sent.front().bytes);
      }
      for (; !outer.sent.empty(); outer.sent.pop_front()) {
        const CarriedWire::Packet& packet = outer.sent.front();
        if (packet.to == seen_at)
          inner.arrive({net.address(1)}, packet.bytes);
        else
          astray.push_back(packet);
      }
    }
  }
  void send(std::size_t from, std::string_view text) {
    push(from, text);
    carry();
  }
  /// What host 0 has sent, and nobody has carried yet.
  std::string take_from_inside() {
    EXPECT_EQ(parties[0].wire->sent.size(), 1U);
    std::string bytes = parties[0].wire->sent.front().bytes;
    parties[0].wire->sent.clear();
    return bytes;
  }
  [[nodiscard]] const std::vector<std::string>& received(std::size_t at) const { return parties[at].sink->received; }
  static Type type_of(const std::string& packet) { return static_cast<Type>(packet[0]); }

  static constexpr Place kTranslated{{0x0a090909}, 40'000};
  static constexpr Place kAttacker{{0x0a060606}, 666};
  std::vector<std::unique_ptr<KeyFile>> files;
  Party parties[2];
  SimHosts net{2};
  Place seen_at;
  std::vector<std::string> from_inside;
  std::vector<CarriedWire::Packet> astray;  ///< What host 1 has sent to where host 0 is not.
};

using Strings = std::vector<std::string>;

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
  std::ifstream in(files[1]->path());
  const std::string line(std::istreambuf_iterator<char>(in), {});
  files[1]->write(line + "10.0.0.7" + line.substr(line.find(' ')));
  {
    const Shepherd inside(net[1].monitor());
    control::RereadKeys again;
    ASSERT_EQ(control::ask(*parties[1].auth, again), Errc::ok);
    ASSERT_EQ(again.keys, 2U);
  }
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
  seen_at = {kTranslated.host, 41'000};
  send(0, "two");
  send(1, "answer");
  EXPECT_EQ(received(1), (Strings{"one", "two"}));
  EXPECT_EQ(received(0), Strings{"answer"});
  EXPECT_TRUE(astray.empty());
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

TEST_F(AuthElsewhere, a_host_that_was_heard_at_its_own_address_is_not_taken_away_by_a_packet_from_elsewhere) {
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

TEST_F(AuthElsewhere, a_new_handshake_moves_a_host_that_was_heard_at_its_own_address) {
  start();
  seen_at = {net.address(0)};
  send(1, "from outside");
  send(0, "at home");
  {
    const Shepherd inside(net[0].monitor());
    parties[0].sink->sessions.clear();
    control::Request forget = control::DropIdle{};
    ASSERT_EQ(parties[0].auth->control(forget), Errc::ok);
  }
  seen_at = kTranslated;
  send(0, "moved");
  EXPECT_EQ(received(1), (Strings{"at home", "moved"}));
  send(1, "answer");
  EXPECT_EQ(received(0), (Strings{"from outside", "answer"}));
}

/// So nobody who has once held up a packet, and sent it on himself, keeps a host away for longer.
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
