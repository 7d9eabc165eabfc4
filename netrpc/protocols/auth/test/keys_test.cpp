// The key file: its syntax, its permissions, and which line applies.
#include <gtest/gtest.h>

#include <cctype>

#include "netrpc/protocols/auth/keys.h"
#include "netrpc/protocols/auth/test/key_file.h"

namespace lrpc::netrpc::auth {
namespace {

HostAddress host(const char* text) { return *parse_host(text); }

TEST(AuthKeys, the_most_specific_line_counts) {
  const auto ring = KeyRing::parse("# all of us\n* " + generate_key() + "\n10.1.0.0/16\t" + generate_key() +
                                       "\n10.1.2.3 " + generate_key() + "  # one\n\n",
                                   "keys");
  ASSERT_TRUE(ring) << ring.error().message();
  const KeyRing& keys = *ring;
  EXPECT_EQ(keys.size(), 3U);
  EXPECT_EQ(keys.find(host("10.1.2.3"))->name, "10.1.2.3");
  EXPECT_EQ(keys.find(host("10.1.2.4"))->name, "10.1.0.0/16");
  EXPECT_EQ(keys.find(host("192.168.0.1"))->name, "*");
}

TEST(AuthKeys, a_host_that_no_line_names_has_no_key) {
  auto ring = KeyRing::parse("10.1.0.0/16 " + generate_key(), "keys");
  ASSERT_TRUE(ring);
  EXPECT_EQ(ring->find(host("10.2.0.1")), nullptr);
}

TEST(AuthKeys, generated_keys_are_32_random_bytes_in_base64) {
  const std::string key = generate_key();
  EXPECT_EQ(key.size(), 44U);
  EXPECT_NE(key, generate_key());
}

TEST(AuthKeys, errors_name_the_line_and_what_to_do) {
  const std::string key = generate_key();
  const auto error = [](const std::string& text) { return KeyRing::parse(text, "k").error().message(); };
  EXPECT_EQ(error("\n10.0.0.300 " + key), "k:2: '10.0.0.300' is not a host (10.0.0.2), a network (10.0.0.0/24) or *");
  EXPECT_EQ(error("10.0.0.0/33 " + key), "k:1: '10.0.0.0/33' is not a host (10.0.0.2), a network (10.0.0.0/24) or *");
  EXPECT_EQ(error("10.0.0.1/24 " + key), "k:1: '10.0.0.1/24' has bits behind its prefix: write 10.0.0.0/24");
  EXPECT_EQ(error("10.0.0.1 AAAA"), "k:1: the key is not 32 bytes in base64: make one with lrpc-netd --generate-key");
  EXPECT_EQ(error("10.0.0.1"), "k:1: the key is not 32 bytes in base64: make one with lrpc-netd --generate-key");
  EXPECT_EQ(error("10.0.0.1 " + key + "AA"),
            "k:1: the key is not 32 bytes in base64: make one with lrpc-netd --generate-key");
  EXPECT_EQ(error("10.0.0.1 " + key + " more"), "k:1: more than a host and a key");
  EXPECT_EQ(error("10.0.0.1 " + key + "\n10.0.0.1/32 " + key), "k:2: '10.0.0.1/32' has a key already");
}

/// Errors are logged, and logs have more readers than the key file.
TEST(AuthKeys, no_error_tells_a_key_that_stands_in_the_wrong_place) {
  const std::string key = generate_key();
  for (const std::string& line : {key, key + " 10.0.0.1", "10.0.0.1" + key, "fe80::1" + key, key + key + " " + key,
                                  "10.0.0.1 " + key + " " + key, "10.0.0.1 x" + key, "host " + key}) {
    const auto refused = KeyRing::parse(line + "\n", "k");
    ASSERT_FALSE(refused) << line;
    const std::string text = refused.error().message();
    EXPECT_EQ(text.find(key), std::string::npos) << text;
    EXPECT_TRUE(text.starts_with("k:1: ")) << text;
  }
  EXPECT_EQ(KeyRing::parse(key, "k").error().message(),
            "k:1: the first word is not a host (10.0.0.2), a network (10.0.0.0/24) or *");
}

TEST(AuthKeys, a_key_has_letters_of_base64_alone) {
  const std::string key(43, 'A');
  EXPECT_TRUE(KeyRing::parse("10.0.0.1 " + key + "=", "k"));
  for (int byte = 1; byte < 256; ++byte) {
    std::string other = key + "=";
    other[7] = static_cast<char>(byte);
    const bool letter = std::isalnum(byte) != 0 || byte == '+' || byte == '/';
    EXPECT_EQ(bool(KeyRing::parse("10.0.0.1 " + other, "k")), letter) << byte;
  }
}

TEST(AuthKeys, a_file_that_others_can_read_is_refused_with_what_to_do) {
  const KeyFile file("* " + generate_key() + "\n");
  ASSERT_TRUE(KeyRing::read(file.path()));
  ASSERT_EQ(::chmod(file.path().c_str(), 0640), 0);
  const auto refused = KeyRing::read(file.path());
  EXPECT_EQ(refused.code(), Errc::not_permitted);
  EXPECT_EQ(refused.error().message(),
            file.path() + " can be read by others than its owner (mode 0640); do: chmod 600 " + file.path());
}

TEST(AuthKeys, a_file_that_is_none_is_an_error) {
  EXPECT_EQ(KeyRing::read("/nonexistent/keys").code(), Errc::system_error);
  EXPECT_EQ(KeyRing::read("/dev/null").code(), Errc::invalid_argument);
}

}  // namespace
}  // namespace lrpc::netrpc::auth
