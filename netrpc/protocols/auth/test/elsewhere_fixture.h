// Two hosts with AUTH over a layer whose peers are hosts and ports. An address translator and an attacker are between
// them.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <fstream>
#include <map>

#include "netrpc/protocols/auth/keys.h"
#include "netrpc/protocols/auth/protocol.h"
#include "netrpc/protocols/auth/test/key_file.h"
#include "netrpc/sim/test_hosts.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc::auth {

using namespace std::chrono_literals;

struct Place {
  HostAddress host;
  std::uint16_t port = 1;  ///< The port of a host that is not behind a translator.
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

using Strings = std::vector<std::string>;

/// Host 0 is inside, behind the translator; host 1 is outside and sees packets of host 0 come from `seen_at`.
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
  /// Carries all packets that the two have sent, and their answers.
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
  /// Takes the only packet that the host has sent and the test has not carried.
  std::string take(std::size_t from) {
    EXPECT_EQ(parties[from].wire->sent.size(), 1U);
    std::string bytes = parties[from].wire->sent.empty() ? std::string(1, 0) : parties[from].wire->sent.front().bytes;
    parties[from].wire->sent.clear();
    return bytes;
  }
  std::string take_from_inside() { return take(0); }
  void lose(std::size_t from) { parties[from].wire->sent.clear(); }
  /// These two carry one packet of a host to where the other host is.
  void carry_from_inside() { parties[1].wire->arrive(seen_at, take(0)); }
  void carry_from_outside() { parties[0].wire->arrive({net.address(1)}, take(1)); }
  /// Makes the host forget its sessions, peers and associations.
  void forget(std::size_t host) {
    const Shepherd inside(net[host].monitor());
    parties[host].sink->sessions.clear();
    control::Request forget = control::DropIdle{};
    ASSERT_EQ(parties[host].auth->control(forget), Errc::ok);
  }
  void reread(std::size_t host) {
    const Shepherd inside(net[host].monitor());
    (void)test::asked<control::RereadKeys>(*parties[host].auth);
  }
  [[nodiscard]] std::string keys_of(std::size_t host) const {
    std::ifstream in(files[host]->path());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] const std::vector<std::string>& received(std::size_t at) const { return parties[at].sink->received; }
  /// To be called after "one" was sent: the translator gives host 0 another port.
  void expect_that_answers_follow_to_another_port() {
    seen_at = {kTranslated.host, 41'000};
    send(0, "two");
    send(1, "answer");
    EXPECT_EQ(received(1), (Strings{"one", "two"}));
    EXPECT_EQ(received(0), Strings{"answer"});
    EXPECT_TRUE(astray.empty());
  }
  static Type type_of(const std::string& packet) { return static_cast<Type>(packet[0]); }

  static constexpr Place kTranslated{{0x0a090909}, 40'000};
  static constexpr Place kAttacker{{0x0a060606}, 666};
  std::vector<std::unique_ptr<KeyFile>> files;
  Party parties[2];
  SimHosts net{2};
  Place seen_at;
  std::vector<std::string> from_inside;
  std::vector<CarriedWire::Packet> astray;  ///< Packets that host 1 has sent to places other than `seen_at`.
};

}  // namespace lrpc::netrpc::auth
