// AES-256-GCM by libsodium, for builds without intel-ipsec-mb.
#include <sodium.h>

#include "netrpc/protocols/auth/aes_gcm.h"

namespace lrpc::netrpc::auth::aes_gcm {

namespace {

using State = crypto_aead_aes256gcm_state;
static_assert(sizeof(State) <= sizeof(Expanded));
static_assert(alignof(State) <= alignof(Expanded));
static_assert(crypto_aead_aes256gcm_KEYBYTES == 32 && crypto_aead_aes256gcm_ABYTES == 16);
static_assert(crypto_aead_aes256gcm_NPUBBYTES == sizeof(Nonce));

const State* state_of(const Expanded& key) noexcept { return reinterpret_cast<const State*>(key.bytes.data()); }
unsigned char* plain(std::byte* bytes) noexcept { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* plain(const std::byte* bytes) noexcept { return reinterpret_cast<const unsigned char*>(bytes); }

}  // namespace

bool available() { return sodium_init() >= 0 && crypto_aead_aes256gcm_is_available() == 1; }

std::string_view library() noexcept { return "libsodium"; }

void expand(std::span<const std::uint8_t, 32> key, Expanded& expanded) noexcept {
  crypto_aead_aes256gcm_beforenm(reinterpret_cast<State*>(expanded.bytes.data()), key.data());
}

void seal(const Expanded& key, const Nonce& nonce, std::span<std::byte> text, std::span<const std::byte> header,
          std::span<std::byte, 16> tag) noexcept {
  unsigned char* const at = plain(text.data());
  crypto_aead_aes256gcm_encrypt_detached_afternm(at, plain(tag.data()), nullptr, at, text.size(), plain(header.data()),
                                                 header.size(), nullptr, nonce.data(), state_of(key));
}

bool open(const Expanded& key, const Nonce& nonce, std::span<std::byte> text, std::span<const std::byte> header,
          std::span<const std::byte, 16> tag) noexcept {
  unsigned char* const at = plain(text.data());
  return crypto_aead_aes256gcm_decrypt_detached_afternm(at, nullptr, at, text.size(), plain(tag.data()),
                                                        plain(header.data()), header.size(), nonce.data(),
                                                        state_of(key)) == 0;
}

}  // namespace lrpc::netrpc::auth::aes_gcm
