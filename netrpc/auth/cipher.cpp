#include "netrpc/auth/cipher.h"

#include <sodium.h>

#include <algorithm>

namespace lrpc::netrpc::auth {

namespace {

static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == SealingKey::kKey);
static_assert(crypto_aead_aes256gcm_KEYBYTES == SealingKey::kKey);
static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == SealingKey::kTag);
static_assert(crypto_aead_aes256gcm_ABYTES == SealingKey::kTag);
static_assert(crypto_aead_chacha20poly1305_ietf_NPUBBYTES == crypto_aead_aes256gcm_NPUBBYTES);

using Nonce = std::array<unsigned char, crypto_aead_aes256gcm_NPUBBYTES>;

Nonce nonce_of(std::uint64_t counter) noexcept {
  Nonce nonce{};
  for (std::size_t i = 0; i < 8; ++i) nonce[4 + i] = static_cast<unsigned char>(counter >> (8 * i));
  return nonce;
}

constexpr Ciphers bit(Cipher cipher) noexcept { return static_cast<Ciphers>(cipher); }

unsigned char* plain(std::byte* bytes) noexcept { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* plain(const std::byte* bytes) noexcept { return reinterpret_cast<const unsigned char*>(bytes); }

}  // namespace

Ciphers available_ciphers() noexcept {
  static const bool aes = sodium_init() >= 0 && crypto_aead_aes256gcm_is_available() == 1;
  return aes ? bit(Cipher::chacha20_poly1305) | bit(Cipher::aes256_gcm) : bit(Cipher::chacha20_poly1305);
}

std::optional<Cipher> best_of(Ciphers mine, Ciphers theirs) noexcept {
  for (const Cipher cipher : {Cipher::aes256_gcm, Cipher::chacha20_poly1305})
    if ((mine & theirs & bit(cipher)) != 0) return cipher;
  return std::nullopt;
}

void SealingKey::set(Cipher cipher, std::span<const std::uint8_t, kKey> key) noexcept {
  static_assert(sizeof(crypto_aead_aes256gcm_state) == sizeof ready_);
  static_assert(alignof(crypto_aead_aes256gcm_state) <= 16);
  wipe();
  cipher_ = cipher;
  if (cipher == Cipher::aes256_gcm) {
    crypto_aead_aes256gcm_beforenm(reinterpret_cast<crypto_aead_aes256gcm_state*>(ready_.data()), key.data());
  } else {
    std::ranges::copy(key, ready_.begin());
  }
}

void SealingKey::wipe() noexcept { sodium_memzero(ready_.data(), ready_.size()); }

void SealingKey::seal(std::span<std::byte> text, std::span<const std::byte> header, std::span<std::byte, kTag> tag,
                      std::uint64_t counter) const noexcept {
  unsigned char* const at = plain(text.data());
  const Nonce nonce = nonce_of(counter);
  if (cipher_ == Cipher::aes256_gcm) {
    crypto_aead_aes256gcm_encrypt_detached_afternm(at, plain(tag.data()), nullptr, at, text.size(),
                                                   plain(header.data()), header.size(), nullptr, nonce.data(),
                                                   reinterpret_cast<const crypto_aead_aes256gcm_state*>(ready_.data()));
  } else {
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(at, plain(tag.data()), nullptr, at, text.size(),
                                                       plain(header.data()), header.size(), nullptr, nonce.data(),
                                                       ready_.data());
  }
}

bool SealingKey::open(std::span<std::byte> text, std::span<const std::byte> header,
                      std::span<const std::byte, kTag> tag, std::uint64_t counter) const noexcept {
  unsigned char* const at = plain(text.data());
  const Nonce nonce = nonce_of(counter);
  if (cipher_ == Cipher::aes256_gcm) {
    return crypto_aead_aes256gcm_decrypt_detached_afternm(
               at, nullptr, at, text.size(), plain(tag.data()), plain(header.data()), header.size(), nonce.data(),
               reinterpret_cast<const crypto_aead_aes256gcm_state*>(ready_.data())) == 0;
  }
  return crypto_aead_chacha20poly1305_ietf_decrypt_detached(at, nullptr, at, text.size(), plain(tag.data()),
                                                            plain(header.data()), header.size(), nonce.data(),
                                                            ready_.data()) == 0;
}

}  // namespace lrpc::netrpc::auth
