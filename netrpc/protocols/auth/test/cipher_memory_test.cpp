// Looking for AES when there is no memory. The linker leads what aes_gcm_ipsec_mb.cpp allocates with to this file.
#include <gtest/gtest.h>
#include <sodium.h>

#include <cstdint>
#include <new>

#include "netrpc/protocols/auth/cipher.h"

namespace {

int asked = 0;
bool has_memory = true;

}  // namespace

extern "C" {
void* real_alloc(std::uint64_t flags) asm("__real_alloc_mb_mgr");
void* wrapped_alloc(std::uint64_t flags) asm("__wrap_alloc_mb_mgr");

void* wrapped_alloc(std::uint64_t flags) {
  ++asked;
  return has_memory ? real_alloc(flags) : nullptr;
}
}

namespace lrpc::netrpc::auth {
namespace {

TEST(CipherMemory, without_any_no_cipher_is_taken_for_missing_and_the_next_question_finds_it) {
  ASSERT_GE(sodium_init(), 0);
  has_memory = false;
  EXPECT_THROW((void)available_ciphers(), std::bad_alloc);
  has_memory = true;
  const Ciphers found = available_ciphers();
  EXPECT_EQ(asked, 2);
  const bool has_aes = (found & static_cast<Ciphers>(Cipher::aes256_gcm)) != 0;
  EXPECT_TRUE(has_aes || crypto_aead_aes256gcm_is_available() == 0) << "libsodium uses the same instructions";
  EXPECT_EQ(available_ciphers(), found);
  EXPECT_EQ(asked, 2) << "the answer is kept";
}

}  // namespace
}  // namespace lrpc::netrpc::auth
