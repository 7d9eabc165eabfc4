// How two hosts agree on a cipher, and that an attacker between them cannot downgrade it.
#include <gtest/gtest.h>
#include <sodium.h>

#include <algorithm>

#include "netrpc/protocols/auth/test/auth_fixture.h"

namespace lrpc::netrpc::auth {
namespace {

/// Offsets: the offer follows the addresses, the boot identifier, the association and the generation; the choice
/// precedes the MAC.
constexpr std::size_t kOffer = 10 + 12;
constexpr std::size_t kChoice = HelloReply::kSize - sizeof(Mac) - 1;
constexpr std::size_t kVersionAt = 1;

class Negotiation : public Auth {
 protected:
  /// Both hosts have the same key. Some tests give the attacker its MAC key.
  void start_with(std::string first, std::string second) {
    if (!aes_gcm::available()) GTEST_SKIP() << "this processor has no instructions for AES";
    line_ = "* " + generate_key();
    ciphers = {std::move(first), std::move(second)};
    start(line_, line_);
  }
  /// Replaces the MAC of a handshake packet by a valid one.
  [[nodiscard]] std::string signed_again(std::string packet) const {
    packet.resize(type_of(packet) == Type::hello ? Hello::kSize : HelloReply::kSize);  // Ethernet has padded it
    const auto keys = KeyRing::parse(line_, "keys");
    const MacKey& key = keys->find({0x0a000001})->mac;
    auto* const bytes = reinterpret_cast<unsigned char*>(packet.data());
    const std::size_t before = packet.size() - sizeof(Mac);
    crypto_generichash(bytes + before, sizeof(Mac), bytes, before, key.data(), key.size());
    return packet;
  }
  /// Passes every packet of `type` on its way to `host` through `how`, and recomputes its MAC if `sign`.
  void change(std::size_t host, Type type, bool sign, std::function<void(std::string&)> how) {
    stacks[host].tap->on_arrival = [this, type, sign, how = std::move(how)](std::string& packet) {
      if (type_of(packet) != type) return true;
      how(packet);
      if (sign) packet = signed_again(packet);
      return true;
    };
  }
  static bool told(const std::vector<std::string>& notices, std::string_view part) {
    return std::ranges::any_of(notices, [part](const auto& text) { return text.find(part) != std::string::npos; });
  }

 private:
  std::string line_;
};

TEST_F(Negotiation, a_host_without_aes_talks_to_one_with_both_in_either_direction) {
  for (const bool first : {true, false}) {
    start_with(first ? "chacha20-poly1305" : "best", first ? "best" : "chacha20-poly1305");
    if (IsSkipped()) return;
    send(0, "there");
    run();
    send(1, "and back");
    run();
    EXPECT_EQ(received(1), Texts{"there"});
    EXPECT_EQ(received(0), Texts{"and back"});
    const auto replies = arrived(0, Type::hello_reply);
    ASSERT_EQ(replies.size(), 1U);
    EXPECT_EQ(replies.front()[kChoice], kChacha);
    EXPECT_EQ(replies.front()[kOffer], first ? kChacha | kAes : kChacha);
    EXPECT_EQ(arrived(1, Type::hello).back()[kOffer], first ? kChacha : kChacha | kAes);
  }
}

TEST_F(Negotiation, hosts_with_aes_in_their_processors_use_it) {
  start_with("best", "best");
  if (IsSkipped()) return;
  send(0, "there");
  run();
  EXPECT_EQ(received(1), Texts{"there"});
  ASSERT_EQ(arrived(0, Type::hello_reply).size(), 1U);
  EXPECT_EQ(arrived(0, Type::hello_reply).front()[kChoice], kAes);
}

TEST_F(Negotiation, hosts_without_a_cipher_in_common_get_nothing_and_both_say_why) {
  start_with("chacha20-poly1305", "aes256-gcm");
  if (IsSkipped()) return;
  send(0, "there");
  run();
  EXPECT_TRUE(received(1).empty());
  EXPECT_EQ(statistics(0).refused, 1U);
  EXPECT_EQ(statistics(1).refused, 1U);
  EXPECT_EQ(statistics(0).failed, 1U) << "the message that waited, and at once";
  EXPECT_EQ(notices(0), Texts{"host 10.0.0.2 has no cipher in common with this one; it has aes256-gcm, and this one "
                              "chacha20-poly1305"});
  EXPECT_EQ(notices(1), Texts{"host 10.0.0.1 has no cipher in common with this one; it has chacha20-poly1305, and this "
                              "one aes256-gcm"});
  for (const std::size_t at : {0U, 1U}) {
    const Shepherd inside((*net)[at].monitor());
    const auto shares = test::asked(*stacks[at].auth, control::SharesKey{.host = net->address(1 - at)});
    EXPECT_TRUE(shares.no_cipher);
    EXPECT_FALSE(shares.shown);
  }
}

TEST_F(Negotiation, hosts_without_a_cipher_in_common_try_again_now_and_then_and_say_it_once) {
  start_with("chacha20-poly1305", "aes256-gcm");
  if (IsSkipped()) return;
  for (int i = 0; i < 20; ++i) {
    send(0, "there");
    run();
  }
  EXPECT_EQ(arrived(1, Type::hello).size(), 2U) << "one handshake, whose first HELLO had no challenge";
  run(5s);
  for (int i = 0; i < 20; ++i) {
    send(0, "there");
    run();
  }
  EXPECT_EQ(arrived(1, Type::hello).size(), 3U);
  EXPECT_EQ(notices(0).size(), 1U);
  EXPECT_EQ(notices(1).size(), 1U);
}

TEST_F(Negotiation,
       that_there_is_no_cipher_in_common_is_not_said_any_more_of_a_host_that_is_silent_or_has_another_key) {
  const auto no_cipher = [this] {
    const Shepherd inside((*net)[0].monitor());
    return test::asked(*stacks[0].auth, control::SharesKey{.host = net->address(1)}).no_cipher;
  };
  for (const bool silent : {true, false}) {
    start_with("chacha20-poly1305", "aes256-gcm");
    if (IsSkipped()) return;
    send(0, "there");
    run(6s);
    EXPECT_TRUE(no_cipher());
    if (silent) {
      stacks[1].tap->on_arrival = [](std::string&) { return false; };
      send(0, "there");
      run(60s);
      stacks[1].tap->on_arrival = nullptr;
    } else {
      files[0]->write("* " + generate_key());
      const Shepherd inside((*net)[0].monitor());
      (void)test::asked<control::RereadKeys>(*stacks[0].auth);
    }
    EXPECT_FALSE(no_cipher());
  }
}

TEST_F(Negotiation, who_has_not_the_key_cannot_take_a_cipher_away) {
  start_with("best", "best");
  if (IsSkipped()) return;
  change(1, Type::hello, false, [](std::string& packet) { packet[kOffer] = kChacha; });
  send(0, "there");
  run(20s);  // until the handshake is abandoned
  EXPECT_TRUE(received(1).empty());
  EXPECT_TRUE(arrived(0, Type::hello_reply).empty());
  stacks[1].tap->on_arrival = nullptr;
  for (const std::size_t at : {kOffer, kChoice}) {
    change(0, Type::hello_reply, false, [at](std::string& packet) { packet[at] = kChacha; });
    send(0, "there");
    run(20s);
    EXPECT_TRUE(received(1).empty());
  }
  stacks[0].tap->on_arrival = nullptr;
  send(0, "there");
  run(20s);
  ASSERT_FALSE(received(1).empty());
  EXPECT_EQ(arrived(0, Type::hello_reply).back()[kChoice], kAes);
}

/// The attacker has the key of the handshakes' MACs, but not the secret from which session keys are derived.
TEST_F(Negotiation, keys_do_not_agree_if_an_offer_was_changed_under_a_good_mac) {
  start_with("best", "best");
  if (IsSkipped()) return;
  change(1, Type::hello, true, [](std::string& packet) { packet[kOffer] = kChacha; });
  send(0, "there");
  run(10s);
  EXPECT_FALSE(arrived(0, Type::hello_reply).empty()) << "the responder has been taken in";
  EXPECT_TRUE(told(notices(0), "uses chacha20-poly1305; it has aes256-gcm, chacha20-poly1305"));
  // The reply is changed to match the initiator's offer as well: both use ChaCha20-Poly1305, but with different keys.
  change(0, Type::hello_reply, true, [](std::string& packet) { packet[kOffer] = kChacha; });
  send(0, "there");
  run(10s);
  EXPECT_TRUE(received(1).empty());
  EXPECT_GE(arrived(1, Type::data).size(), 1U);
}

TEST_F(Negotiation, a_choice_that_is_not_the_best_of_both_offers_is_refused) {
  for (const Ciphers chosen : {Ciphers{0}, kChacha, Ciphers(kChacha | kAes), Ciphers{0x40}}) {
    start_with("best", "best");
    if (IsSkipped()) return;
    change(0, Type::hello_reply, true, [chosen](std::string& packet) { packet[kChoice] = static_cast<char>(chosen); });
    send(0, "there");
    run(10s);
    EXPECT_TRUE(received(1).empty());
    EXPECT_TRUE(arrived(1, Type::data).empty());
    EXPECT_GE(statistics(0).refused, 1U);
    EXPECT_TRUE(told(notices(0), "host 10.0.0.2 uses " + names_of(chosen) + "; it has ")) << int{chosen};
    const Shepherd inside((*net)[0].monitor());
    EXPECT_FALSE(test::asked(*stacks[0].auth, control::SharesKey{.host = net->address(1)}).no_cipher)
        << "there would be one";
  }
}

TEST_F(Negotiation, offers_of_ciphers_that_nobody_knows_are_refused_and_told) {
  for (const Ciphers offered : {Ciphers{0}, Ciphers{0xfc}}) {
    start_with("best", "best");
    if (IsSkipped()) return;
    change(1, Type::hello, true, [offered](std::string& packet) { packet[kOffer] = static_cast<char>(offered); });
    send(0, "there");
    run(10s);
    EXPECT_TRUE(received(1).empty());
    EXPECT_GE(statistics(1).refused, 1U);
    EXPECT_TRUE(told(notices(1), "no cipher in common with this one; it has " + names_of(offered)));
  }
}

TEST_F(Negotiation, unknown_ciphers_beside_known_ones_are_bound_and_refuse_nothing) {
  start_with("best", "best");
  if (IsSkipped()) return;
  const auto offer_more = [](std::string& packet) { packet[kOffer] = static_cast<char>(packet[kOffer] | 0x40); };
  change(0, Type::hello_reply, true, offer_more);
  send(0, "there");
  run(10s);
  EXPECT_TRUE(notices(0).empty()) << "the choice is right";
  EXPECT_GE(arrived(1, Type::data).size(), 1U);
  EXPECT_TRUE(received(1).empty()) << "but the two do not agree about the offer, and so not about the keys";
}

TEST_F(Negotiation, packets_of_another_version_are_refused_told_and_not_answered) {
  start_with("best", "best");
  if (IsSkipped()) return;
  change(1, Type::hello, true, [](std::string& packet) { packet[kVersionAt] = 1; });
  send(0, "there");
  run();
  EXPECT_TRUE(received(1).empty());
  EXPECT_EQ(statistics(1).sent, 0U);
  EXPECT_EQ(statistics(1).state, 0U);
  EXPECT_GE(statistics(1).refused, 1U);
  ASSERT_FALSE(notices(1).empty());
  EXPECT_EQ(notices(1).front(), "host 10.0.0.1 speaks version 1 of AUTH, and this one version 2");
}

TEST_F(Negotiation, a_cipher_that_nobody_knows_is_an_error_that_names_those_there_are) {
  SimHosts hosts(1, 1, {});
  KeyFile file("* " + generate_key());
  hosts[0].on_boot([&](SimHost& machine) {
    Options options;
    options.set("keys", file.path());
    options.set("cipher", "rot13");
    Tap& tap = machine.add<Tap>(machine.ethernet());
    const auto made = auth_kind().make({machine.host(), "auth", {&tap}, options});
    EXPECT_EQ(made.code(), Errc::invalid_argument);
    EXPECT_EQ(made.error().message(), "cipher 'rot13': chacha20-poly1305, aes256-gcm or best");
  });
}

TEST_F(Negotiation, a_host_needs_room_for_the_messages_that_wait_for_it) {
  SimHosts hosts(1, 1, {});
  KeyFile file("* " + generate_key());
  hosts[0].on_boot([&](SimHost& machine) {
    Options options;
    options.set("keys", file.path());
    Tap& tap = machine.add<Tap>(machine.ethernet());
    for (const char* const pending : {"1", "0"}) {
      options.set("pending", pending);
      EXPECT_EQ(auth_kind().make({machine.host(), "auth", {&tap}, options}).has_value(), *pending == '1') << pending;
    }
  });
}

}  // namespace
}  // namespace lrpc::netrpc::auth
