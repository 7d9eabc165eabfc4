// Names for the lives of things: boots, seeds.
#pragma once

#include <cstdint>

namespace lrpc::shim {

/// 64 random bits from the kernel, never zero, which stands for "not known". Ends the process if the kernel gives none,
/// as make_nonce() does. Does not block once the kernel's generator is seeded.
[[nodiscard]] std::uint64_t make_identifier();

}  // namespace lrpc::shim
