// The key that seals messages with one of two ciphers, which the handshake chooses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "netrpc/protocols/auth/aes_gcm.h"

namespace lrpc::netrpc::auth {

/// The ciphers, as bits of a set on the wire.
enum class Cipher : std::uint8_t {
  chacha20_poly1305 = 1,  ///< RFC 8439. Every machine has it.
  aes256_gcm = 2,         ///< NIST SP 800-38D. Ten times as fast where the processor has instructions for it.
};
using Ciphers = std::uint8_t;

/// The ciphers that this machine has. Any thread. Throws std::bad_alloc if there is no memory to find out, and the next
/// call tries again.
[[nodiscard]] Ciphers available_ciphers();
/// The best cipher that both have; null: they have none in common. Unknown bits are ignored.
[[nodiscard]] std::optional<Cipher> best_of(Ciphers mine, Ciphers theirs) noexcept;
/// For reports: "aes256-gcm, chacha20-poly1305", "none"; unknown bits as a number.
[[nodiscard]] std::string names_of(Ciphers ciphers);

/// How much one key may be used.
struct KeyLimits {
  /// Blocks of 16 bytes that it may seal: beyond that a listener could tell the ciphertext from random bytes (RFC 8446
  /// section 5.5: 2^24.5 records of 2^14 bytes).
  std::uint64_t blocks = std::numeric_limits<std::uint64_t>::max();
  /// Forgeries that it may refuse: each is a guess at the tag (RFC 9147 section 4.5.3).
  std::uint64_t forgeries = std::uint64_t{1} << 36;
};
[[nodiscard]] constexpr KeyLimits limits_of(Cipher cipher) noexcept {
  KeyLimits limits;
  if (cipher == Cipher::aes256_gcm) limits.blocks = std::uint64_t{1} << 34;
  return limits;
}

/// A key for one direction, so that the counter alone makes each nonce different. Wiped on destruction.
class SealingKey {
 public:
  static constexpr std::size_t kKey = 32;
  static constexpr std::size_t kTag = 16;

  SealingKey() = default;
  SealingKey(const SealingKey&) = delete;
  SealingKey& operator=(const SealingKey&) = delete;
  ~SealingKey() { wipe(); }

  /// `cipher`: one that this machine has.
  void set(Cipher cipher, std::span<const std::uint8_t, kKey> key) noexcept;
  void wipe() noexcept;

  /// Encrypts `text` in place and writes its tag, which authenticates `header`, too. Precondition: the key is set,
  /// `text` is not empty, and no message has been sealed with this counter.
  void seal(std::span<std::byte> text, std::span<const std::byte> header, std::span<std::byte, kTag> tag,
            std::uint64_t counter) const noexcept;
  /// Decrypts `text` in place. False: not authentic, and `text` must not be used.
  [[nodiscard]] bool open(std::span<std::byte> text, std::span<const std::byte> header,
                          std::span<const std::byte, kTag> tag, std::uint64_t counter) const noexcept;

 private:
  Cipher cipher_ = Cipher::chacha20_poly1305;
  aes_gcm::Expanded ready_;  ///< The key itself; for AES, the expanded key.
};

}  // namespace lrpc::netrpc::auth
