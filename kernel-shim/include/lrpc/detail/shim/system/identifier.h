// Names for the lives of things (boots, seeds), and how they and hashes are written.
#pragma once

#include <cstdint>
#include <string>

namespace lrpc::shim {

/// 64 random bits from the kernel, never zero, which stands for "not known". Ends the process if the kernel gives none,
/// as make_nonce() does. Does not block once the kernel's generator is seeded.
[[nodiscard]] std::uint64_t make_identifier();
/// As it is written: 16 digits, small letters.
[[nodiscard]] std::string hexadecimal(std::uint64_t identifier);

}  // namespace lrpc::shim
