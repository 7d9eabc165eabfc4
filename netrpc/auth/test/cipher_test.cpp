// The two ciphers, and how two hosts agree on one.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "netrpc/auth/cipher.h"
#include "netrpc/auth/test/auth_fixture.h"

namespace lrpc::netrpc::auth {
namespace {

constexpr auto kChacha = static_cast<Ciphers>(Cipher::chacha20_poly1305);
constexpr auto kAes = static_cast<Ciphers>(Cipher::aes256_gcm);

class SealingKeys : public testing::TestWithParam<Cipher> {
 protected:
  void SetUp() override {
    if ((available_ciphers() & static_cast<Ciphers>(GetParam())) == 0) GTEST_SKIP() << "this processor has no AES-NI";
    std::array<std::uint8_t, SealingKey::kKey> key{};
    for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i);
    key_.set(GetParam(), key);
  }
  static std::vector<std::byte> text_of(std::size_t size) {
    std::vector<std::byte> text(size);
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<std::byte>(i * 7);
    return text;
  }

  SealingKey key_;
  std::array<std::byte, 26> header_{};
  std::array<std::byte, SealingKey::kTag> tag_{};
};

TEST_P(SealingKeys, open_what_they_have_sealed_whatever_its_size) {
  for (const std::size_t size : {1UL, 15UL, 16UL, 17UL, 64UL, 1000UL, 16384UL}) {
    const std::vector<std::byte> text = text_of(size);
    std::vector<std::byte> sealed = text;
    key_.seal(sealed, header_, tag_, size + 1);
    if (size >= 16) {
      EXPECT_NE(sealed, text);
    }
    EXPECT_TRUE(key_.open(sealed, header_, tag_, size + 1));
    EXPECT_EQ(sealed, text);
  }
}

TEST_P(SealingKeys, seal_the_same_text_differently_each_time) {
  std::vector<std::byte> one = text_of(64);
  std::vector<std::byte> other = one;
  key_.seal(one, header_, tag_, 1);
  key_.seal(other, header_, tag_, 2);
  EXPECT_NE(one, other);
}

TEST_P(SealingKeys, do_not_open_what_differs_in_a_single_bit) {
  std::vector<std::byte> sealed = text_of(64);
  key_.seal(sealed, header_, tag_, 7);
  const auto opens = [&](std::vector<std::byte> text, std::array<std::byte, 26> header,
                         std::array<std::byte, SealingKey::kTag> tag,
                         std::uint64_t counter) { return key_.open(text, header, tag, counter); };
  EXPECT_TRUE(opens(sealed, header_, tag_, 7));
  EXPECT_FALSE(opens(sealed, header_, tag_, 8));
  EXPECT_FALSE(opens(sealed, header_, tag_, 7 + (std::uint64_t{1} << 63)));
  for (std::size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    std::vector<std::byte> wrong = sealed;
    wrong[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(opens(wrong, header_, tag_, 7)) << "bit " << bit;
  }
  for (std::size_t bit = 0; bit < 8 * header_.size(); ++bit) {
    auto wrong = header_;
    wrong[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(opens(sealed, wrong, tag_, 7)) << "bit " << bit << " of the header";
  }
  for (std::size_t bit = 0; bit < 8 * tag_.size(); ++bit) {
    auto wrong = tag_;
    wrong[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(opens(sealed, header_, wrong, 7)) << "bit " << bit << " of the tag";
  }
}

INSTANTIATE_TEST_SUITE_P(ciphers, SealingKeys, testing::Values(Cipher::chacha20_poly1305, Cipher::aes256_gcm),
                         [](const auto& tested) {
                           return tested.param == Cipher::aes256_gcm ? "aes256_gcm" : "chacha20_poly1305";
                         });

TEST(Ciphers, the_better_one_is_chosen_of_those_that_both_have) {
  EXPECT_EQ(best_of(kChacha | kAes, kChacha | kAes), Cipher::aes256_gcm);
  EXPECT_EQ(best_of(kChacha | kAes, kChacha), Cipher::chacha20_poly1305);
  EXPECT_EQ(best_of(kAes, kChacha), std::nullopt);
  EXPECT_EQ(best_of(0xff, 0xfc), std::nullopt) << "bits without a meaning are none";
  EXPECT_NE(available_ciphers() & kChacha, 0) << "every machine has it";
}

/// What the reply says; it stands behind the addresses, the boot identifier, the association and the generation.
Ciphers chosen_in(const std::string& reply) { return static_cast<Ciphers>(reply[10 + 12]); }

TEST_F(Auth, hosts_agree_on_a_cipher_that_both_have) {
  const std::string keys = "* " + generate_key();
  start(keys, keys, {}, {}, {"chacha20-poly1305", "best"});
  send(0, "there");
  run();
  send(1, "and back");
  run();
  EXPECT_EQ(received(1), Texts{"there"});
  EXPECT_EQ(received(0), Texts{"and back"});
  ASSERT_EQ(arrived(0, Type::hello_reply).size(), 1U);
  EXPECT_EQ(chosen_in(arrived(0, Type::hello_reply).front()), kChacha);
}

TEST_F(Auth, hosts_with_aes_in_their_processors_use_it) {
  if ((available_ciphers() & kAes) == 0) GTEST_SKIP() << "this processor has no AES-NI";
  start();
  send(0, "there");
  run();
  EXPECT_EQ(received(1), Texts{"there"});
  ASSERT_EQ(arrived(0, Type::hello_reply).size(), 1U);
  EXPECT_EQ(chosen_in(arrived(0, Type::hello_reply).front()), kAes);
}

TEST_F(Auth, hosts_without_a_cipher_in_common_get_nothing) {
  if ((available_ciphers() & kAes) == 0) GTEST_SKIP() << "this processor has no AES-NI";
  const std::string keys = "* " + generate_key();
  start(keys, keys, {}, {}, {"chacha20-poly1305", "aes256-gcm"});
  send(0, "there");
  run(10s);
  EXPECT_TRUE(received(1).empty());
  EXPECT_TRUE(arrived(0, Type::hello_reply).empty());
  EXPECT_GE(statistics(1).refused, 1U);
}

TEST_F(Auth, a_cipher_that_nobody_knows_is_an_error_that_names_those_there_are) {
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

}  // namespace
}  // namespace lrpc::netrpc::auth
