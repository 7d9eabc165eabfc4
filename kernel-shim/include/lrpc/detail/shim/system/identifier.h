// Identifiers (of boots, seeds), and how they and hashes are written.
#pragma once

#include <cstdint>
#include <string>

namespace lrpc::shim {

/// 64 random bits from the kernel, never zero: zero means "not known". If the kernel gives none, ends the process, as
/// make_nonce() does. Does not block once the kernel's generator is seeded.
[[nodiscard]] std::uint64_t make_identifier();
/// In hexadecimal: 16 digits, small letters.
[[nodiscard]] std::string hexadecimal(std::uint64_t identifier);

}  // namespace lrpc::shim
