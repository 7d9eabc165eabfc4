// The two ciphers.
#include <gtest/gtest.h>
#include <sodium.h>

#include <cstring>
#include <vector>

#include "netrpc/protocols/auth/test/auth_fixture.h"

namespace lrpc::netrpc::auth {
namespace {

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

TEST(Ciphers, are_named_in_reports_and_those_without_a_meaning_counted) {
  EXPECT_EQ(names_of(kChacha | kAes), "aes256-gcm, chacha20-poly1305");
  EXPECT_EQ(names_of(kChacha), "chacha20-poly1305");
  EXPECT_EQ(names_of(0x50 | kAes), "aes256-gcm, unknown ones (80)");
  EXPECT_EQ(names_of(0), "none");
}

/// Two hosts may use different implementations.
TEST(AesGcm, seals_and_opens_the_same_bytes_as_libsodium) {
  if (!aes_gcm::available()) GTEST_SKIP() << "this processor has no instructions for AES";
  ASSERT_GE(sodium_init(), 0);
  std::array<std::uint8_t, SealingKey::kKey> key;
  randombytes_buf(key.data(), key.size());
  aes_gcm::Expanded expanded;
  aes_gcm::expand(key, expanded);
  aes_gcm::Nonce nonce{};
  for (std::size_t size = 1; size <= 20'000; size += size < 600 ? 1 : 997) {
    nonce[4] = static_cast<std::uint8_t>(size);
    nonce[5] = static_cast<std::uint8_t>(size >> 8);
    std::vector<std::byte> text(size);
    randombytes_buf(text.data(), text.size());
    std::array<std::byte, 26> header;
    randombytes_buf(header.data(), header.size());
    std::vector<std::byte> sealed = text;
    std::array<std::byte, SealingKey::kTag> tag;
    aes_gcm::seal(expanded, nonce, sealed, header, tag);
    const auto plain = [](auto& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); };
    std::vector<std::byte> other(size);
    std::array<std::byte, SealingKey::kTag> other_tag;
    crypto_aead_aes256gcm_encrypt_detached(plain(other), plain(other_tag), nullptr, plain(text), size, plain(header),
                                           header.size(), nullptr, nonce.data(), key.data());
    ASSERT_EQ(sealed, other) << size;
    ASSERT_EQ(tag, other_tag) << size;
    ASSERT_TRUE(aes_gcm::open(expanded, nonce, other, header, other_tag)) << size;
    ASSERT_EQ(other, text) << size;
  }
}

/// Test case 16 of the GCM specification (NIST): key, nonce, 20 bytes of header, 60 bytes of text.
TEST(AesGcm, gives_the_published_answer) {
  if (!aes_gcm::available()) GTEST_SKIP() << "this processor has no instructions for AES";
  const auto bytes = [](std::string_view hex) {
    std::vector<std::byte> out(hex.size() / 2);
    sodium_hex2bin(reinterpret_cast<unsigned char*>(out.data()), out.size(), hex.data(), hex.size(), nullptr, nullptr,
                   nullptr);
    return out;
  };
  const auto key = bytes("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
  const auto iv = bytes("cafebabefacedbaddecaf888");
  const auto header = bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  std::vector<std::byte> text = bytes(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657"
      "ba637b39");
  aes_gcm::Expanded expanded;
  aes_gcm::Nonce nonce;
  std::memcpy(nonce.data(), iv.data(), nonce.size());
  aes_gcm::expand(std::span<const std::uint8_t, 32>(reinterpret_cast<const std::uint8_t*>(key.data()), 32), expanded);
  std::array<std::byte, SealingKey::kTag> tag;
  aes_gcm::seal(expanded, nonce, text, header, tag);
  EXPECT_EQ(text,
            bytes("522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5"
                  "f61e6393ba7a0abcc9f662"));
  EXPECT_EQ(std::vector<std::byte>(tag.begin(), tag.end()), bytes("76fc6ece0f4e1768cddf8853bb2d551b"));
}

}  // namespace
}  // namespace lrpc::netrpc::auth
