// AES-256-GCM (NIST SP 800-38D, nonces of 96 bits) by the quickest library that the build has found: CMakeLists.txt
// chooses aes_gcm_ipsec_mb.cpp or aes_gcm_sodium.cpp. Both give the same bytes, so hosts need not have the same one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lrpc::netrpc::auth::aes_gcm {

/// A key as the library expands it, once.
struct alignas(64) Expanded {
  std::array<unsigned char, 1024> bytes{};
};

using Nonce = std::array<unsigned char, 12>;

/// Whether this processor has instructions for AES-GCM. Without them it would be slow, and its run time would depend on
/// the key. Any thread. The first call allocates memory for a moment; it throws std::bad_alloc if there is none, and
/// the next call tries again.
[[nodiscard]] bool available();
/// The name of the library.
[[nodiscard]] std::string_view library() noexcept;

// Precondition: available() has returned true. No allocation; any thread.
void expand(std::span<const std::uint8_t, 32> key, Expanded& expanded) noexcept;
/// Encrypts `text` in place and writes its tag, which authenticates `header`, too.
void seal(const Expanded& key, const Nonce& nonce, std::span<std::byte> text, std::span<const std::byte> header,
          std::span<std::byte, 16> tag) noexcept;
/// Decrypts `text` in place. False: not authentic, and `text` must not be used.
[[nodiscard]] bool open(const Expanded& key, const Nonce& nonce, std::span<std::byte> text,
                        std::span<const std::byte> header, std::span<const std::byte, 16> tag) noexcept;

}  // namespace lrpc::netrpc::auth::aes_gcm
