#include "netrpc/protocols/auth/cipher.h"

#include <sodium.h>

#include <algorithm>

namespace lrpc::netrpc::auth {

namespace {

static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == SealingKey::kKey);
static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == SealingKey::kTag);
static_assert(crypto_aead_chacha20poly1305_ietf_NPUBBYTES == sizeof(aes_gcm::Nonce));

struct Named {
  Cipher cipher;
  std::string_view name;
};
/// The best first.
constexpr Named kCiphers[] = {{Cipher::aes256_gcm, "aes256-gcm"}, {Cipher::chacha20_poly1305, "chacha20-poly1305"}};

aes_gcm::Nonce nonce_of(std::uint64_t counter) noexcept {
  aes_gcm::Nonce nonce{};
  for (std::size_t i = 0; i < 8; ++i) nonce[4 + i] = static_cast<unsigned char>(counter >> (8 * i));
  return nonce;
}

constexpr Ciphers bit(Cipher cipher) noexcept { return static_cast<Ciphers>(cipher); }

unsigned char* plain(std::byte* bytes) noexcept { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* plain(const std::byte* bytes) noexcept { return reinterpret_cast<const unsigned char*>(bytes); }

}  // namespace

Ciphers available_ciphers() {
  return aes_gcm::available() ? bit(Cipher::chacha20_poly1305) | bit(Cipher::aes256_gcm)
                              : bit(Cipher::chacha20_poly1305);
}

std::optional<Cipher> best_of(Ciphers mine, Ciphers theirs) noexcept {
  for (const Named& known : kCiphers)
    if ((mine & theirs & bit(known.cipher)) != 0) return known.cipher;
  return std::nullopt;
}

std::string names_of(Ciphers ciphers) {
  std::string text;
  const auto add = [&text](std::string_view name) { (text += text.empty() ? "" : ", ") += name; };
  for (const Named& known : kCiphers) {
    if ((ciphers & bit(known.cipher)) != 0) add(known.name);
    ciphers &= static_cast<Ciphers>(~bit(known.cipher));
  }
  if (ciphers != 0) add("unknown ones (" + std::to_string(ciphers) + ")");
  return text.empty() ? "none" : text;
}

void SealingKey::set(Cipher cipher, std::span<const std::uint8_t, kKey> key) noexcept {
  wipe();
  cipher_ = cipher;
  if (cipher == Cipher::aes256_gcm) {
    aes_gcm::expand(key, ready_);
  } else {
    std::ranges::copy(key, ready_.bytes.begin());
  }
}

void SealingKey::wipe() noexcept { sodium_memzero(ready_.bytes.data(), ready_.bytes.size()); }

void SealingKey::seal(std::span<std::byte> text, std::span<const std::byte> header, std::span<std::byte, kTag> tag,
                      std::uint64_t counter) const noexcept {
  const aes_gcm::Nonce nonce = nonce_of(counter);
  if (cipher_ == Cipher::aes256_gcm) return aes_gcm::seal(ready_, nonce, text, header, tag);
  unsigned char* const at = plain(text.data());
  crypto_aead_chacha20poly1305_ietf_encrypt_detached(at, plain(tag.data()), nullptr, at, text.size(),
                                                     plain(header.data()), header.size(), nullptr, nonce.data(),
                                                     ready_.bytes.data());
}

bool SealingKey::open(std::span<std::byte> text, std::span<const std::byte> header,
                      std::span<const std::byte, kTag> tag, std::uint64_t counter) const noexcept {
  const aes_gcm::Nonce nonce = nonce_of(counter);
  if (cipher_ == Cipher::aes256_gcm) return aes_gcm::open(ready_, nonce, text, header, tag);
  unsigned char* const at = plain(text.data());
  return crypto_aead_chacha20poly1305_ietf_decrypt_detached(at, nullptr, at, text.size(), plain(tag.data()),
                                                            plain(header.data()), header.size(), nonce.data(),
                                                            ready_.bytes.data()) == 0;
}

}  // namespace lrpc::netrpc::auth
