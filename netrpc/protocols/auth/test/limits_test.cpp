// The limits of a key: an association is replaced before it reaches them, or ends.
#include <gtest/gtest.h>
#include <sodium.h>

#include <set>

#include "netrpc/protocols/auth/test/auth_fixture.h"

namespace lrpc::netrpc::auth {
namespace {

TEST(KeyLimits, are_those_of_the_standards) {
  // RFC 8446 section 5.5: 2^24.5 records of 2^14 bytes; RFC 9147 section 4.5.3: 2^36 forgeries.
  EXPECT_LE(limits_of(Cipher::aes256_gcm).blocks, (std::uint64_t{1} << 24) * (1 << 14) / 16 * 14 / 10);
  EXPECT_LE(limits_of(Cipher::aes256_gcm).forgeries, std::uint64_t{1} << 36);
  EXPECT_LE(limits_of(Cipher::chacha20_poly1305).forgeries, std::uint64_t{1} << 36);
}

/// Both ends of an association, without hosts.
class TwoEnds : public testing::TestWithParam<Cipher> {
 protected:
  void SetUp() override {
    if ((available_ciphers() & static_cast<Ciphers>(GetParam())) == 0)
      GTEST_SKIP() << "this processor has no instructions for AES";
    ASSERT_GE(sodium_init(), 0);
    EphemeralKey first;
    EphemeralKey second;
    first.generate();
    second.generate();
    Hello hello{.ends = {{1}, {2}}, .boot_id = 1, .association = 10, .ciphers = static_cast<Ciphers>(GetParam())};
    hello.key = first.pub;
    HelloReply reply{.hello = hello, .cipher = hello.ciphers};
    reply.hello.association = 20;
    reply.hello.key = second.pub;
    ASSERT_TRUE(initiator.establish(hello, reply, first, true, key, Time{}));
    ASSERT_TRUE(responder.establish(hello, reply, second, false, key, Time{}));
  }
  /// A sealed message without its header, and the header.
  std::pair<DataHeader, Message> sealed(std::size_t size) {
    Message message = Message::make(pool, size);
    std::ranges::fill(message.bytes(), std::byte{7});
    EXPECT_EQ(initiator.seal({1}, {2}, message), Errc::ok);
    message.pop(head);
    return {decode_data(head.bytes), std::move(message)};
  }

  BufferPool pool;
  Key key;
  Association initiator;
  Association responder;
  Message::Header<DataHeader::kSize> head;
};

TEST_P(TwoEnds, never_seal_twice_with_one_nonce) {
  std::set<std::uint64_t> counters;
  std::set<std::string> texts;
  for (int i = 0; i < 1000; ++i) {
    const auto [header, message] = sealed(64);
    EXPECT_TRUE(counters.insert(header.counter).second);
    EXPECT_TRUE(texts.insert(text_of(message)).second);
  }
}

TEST_P(TwoEnds, count_at_least_the_blocks_that_the_cipher_uses) {
  for (const std::size_t size : {4U, 15U, 16U, 17U, 16'000U}) {
    const std::uint64_t before = initiator.blocks();
    (void)sealed(size);
    EXPECT_GE(initiator.blocks() - before, (DataHeader::kSealed + 15) / 16 + (size + 15) / 16 + 1);
    EXPECT_LE(initiator.blocks() - before, (DataHeader::kSealed + 15) / 16 + (size + 15) / 16 + 3);
  }
}

TEST_P(TwoEnds, are_spent_at_the_limit) {
  EXPECT_EQ(initiator.limits.blocks, limits_of(GetParam()).blocks);
  initiator.limits.blocks = 100;
  EXPECT_FALSE(initiator.spent());
  (void)sealed(16 * 100);
  EXPECT_TRUE(initiator.spent());
}

TEST_P(TwoEnds, end_with_the_last_forgery_that_the_key_may_refuse) {
  EXPECT_EQ(responder.limits.forgeries, limits_of(GetParam()).forgeries);
  responder.limits.forgeries = 3;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(responder.alive());
    auto [header, message] = sealed(64);
    message.bytes()[5] ^= std::byte{1};
    EXPECT_EQ(responder.open(header, head.bytes, message), Opened::forged);
  }
  EXPECT_FALSE(responder.alive());
}

INSTANTIATE_TEST_SUITE_P(ciphers, TwoEnds, testing::Values(Cipher::chacha20_poly1305, Cipher::aes256_gcm),
                         [](const auto& tested) {
                           return tested.param == Cipher::aes256_gcm ? "aes256_gcm" : "chacha20_poly1305";
                         });

class Limited : public Auth {};

TEST_F(Limited, keys_that_near_their_limit_are_replaced_without_loss) {
  limits = KeyLimits{.blocks = 200, .forgeries = 1000};
  start();
  const SessionRef session = open(0, 1);
  Texts expected;
  for (int i = 0; i < 500; ++i) {
    expected.push_back(std::to_string(i));
    ASSERT_EQ(push(0, session, expected.back()), Errc::ok);
    run(1ms);
  }
  run();
  EXPECT_EQ(received(1), expected);
  EXPECT_GE(arrived(0, Type::hello_reply).size(), 10U);
}

TEST_F(Limited, no_more_is_sealed_with_a_key_that_is_spent_though_no_other_can_be_agreed) {
  limits = KeyLimits{.blocks = 200, .forgeries = 1000};
  start();
  const SessionRef session = open(0, 1);
  ASSERT_EQ(push(0, session, "first"), Errc::ok);
  run();
  stacks[1].tap->on_arrival = [](std::string& packet) { return type_of(packet) != Type::hello; };
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(push(0, session, "more"), Errc::ok);
    run(1ms);
  }
  EXPECT_LE(received(1).size(), 50U) << "of at least four blocks each";
  stacks[1].tap->on_arrival = nullptr;
  run(10s);
  received(1).clear();
  ASSERT_EQ(push(0, session, "on"), Errc::ok);
  run(10s);
  EXPECT_FALSE(received(1).empty());
}

TEST_F(Limited, a_message_that_waits_for_the_next_key_is_not_lost_when_the_peer_is_heard) {
  limits = KeyLimits{.blocks = 200, .forgeries = 1000};
  start();
  const SessionRef session = open(0, 1);
  const SessionRef back = open(1, 0);
  ASSERT_EQ(push(0, session, "first"), Errc::ok);
  run();
  stacks[1].tap->on_arrival = [](std::string& packet) { return type_of(packet) != Type::hello; };
  while (statistics(0).sent < 1000 && received(1).size() < 1000) {
    const std::size_t before = received(1).size();
    ASSERT_EQ(push(0, session, "more"), Errc::ok);
    run(1ms);
    if (received(1).size() == before) break;  // it waits: the key is spent
  }
  ASSERT_EQ(push(1, back, "heard"), Errc::ok);
  run(1ms);
  EXPECT_EQ(received(0), Texts{"heard"});
  const std::size_t before = received(1).size();
  stacks[1].tap->on_arrival = nullptr;
  run(10s);
  EXPECT_EQ(received(1).size(), before + 1);
}

TEST_F(Limited, an_association_that_was_guessed_at_too_often_is_replaced) {
  limits = KeyLimits{.blocks = 1 << 20, .forgeries = 100};
  start();
  const SessionRef session = open(0, 1);
  ASSERT_EQ(push(0, session, "before"), Errc::ok);
  run();
  std::string forged = arrived(1, Type::data).back();
  forged[10 + 4 + 7] = static_cast<char>(forged[10 + 4 + 7] + 50);  // a counter that was not used before
  const auto handshakes = arrived(1, Type::hello).size();
  for (int i = 0; i < 200; ++i) inject(1, forged);
  ASSERT_EQ(push(0, session, "lost"), Errc::ok);
  run();
  ASSERT_EQ(push(0, session, "after"), Errc::ok);
  run();
  EXPECT_EQ(received(1).front(), "before");
  EXPECT_EQ(received(1).back(), "after");
  EXPECT_GT(arrived(1, Type::hello).size(), handshakes);
}

}  // namespace
}  // namespace lrpc::netrpc::auth
