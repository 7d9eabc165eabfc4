// What seals messages: one of two ciphers, as the handshake has chosen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace lrpc::netrpc::auth {

/// Bits of a set on the wire.
enum class Cipher : std::uint8_t {
  chacha20_poly1305 = 1,  ///< RFC 8439. Every machine has it.
  aes256_gcm =
      2,  ///< NIST SP 800-38D. Three times as fast where the processor has instructions for it, and only there.
};
using Ciphers = std::uint8_t;

/// Those that this machine has. Any thread.
[[nodiscard]] Ciphers available_ciphers() noexcept;
/// The best of those that both have; nothing: none. Bits without a meaning count for nothing.
[[nodiscard]] std::optional<Cipher> best_of(Ciphers mine, Ciphers theirs) noexcept;

/// A key that seals in one direction only, so that the counter alone makes each nonce different. Wiped when it goes.
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

  /// Encrypts `text` in place and writes its tag, which vouches for `header`, too. Precondition: set, text in it, and no message
  /// has been sealed with this counter.
  void seal(std::span<std::byte> text, std::span<const std::byte> header, std::span<std::byte, kTag> tag,
            std::uint64_t counter) const noexcept;
  /// The reverse. False: not authentic, and `text` is worth nothing.
  [[nodiscard]] bool open(std::span<std::byte> text, std::span<const std::byte> header,
                          std::span<const std::byte, kTag> tag, std::uint64_t counter) const noexcept;

 private:
  Cipher cipher_ = Cipher::chacha20_poly1305;
  /// The key, or for AES what has been expanded from it (crypto_aead_aes256gcm_state).
  alignas(16) std::array<unsigned char, 512> ready_{};
};

}  // namespace lrpc::netrpc::auth
