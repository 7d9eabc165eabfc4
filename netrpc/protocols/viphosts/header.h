// What a host advertises about itself.
#pragma once

#include <array>

#include "lrpc/netrpc/wire.h"

namespace lrpc::netrpc::viphosts {

inline constexpr std::uint8_t kVersion = 1;
/// In `flags`: the sender has just started, and asks for an advertisement in return.
inline constexpr std::uint8_t kAnswerMe = 1;

/// One Ethernet frame of the shortest kind.
struct Advertisement {
  static constexpr std::size_t kSize = 46;

  std::uint8_t version = kVersion;
  std::uint8_t flags = 0;
  HostAddress host;
  std::uint32_t boot_id = 0;
  std::uint32_t lifetime_ms = 0;             ///< From receipt; 0: forget me.
  std::array<std::uint8_t, 32> protocols{};  ///< Bit n % 8 of byte n / 8: VIP is spoken for protocol number n.

  [[nodiscard]] bool speaks(std::uint32_t number) const noexcept {
    return number < 256 && (protocols[number / 8] >> (number % 8) & 1) != 0;
  }
  void set(std::uint32_t number, bool spoken) noexcept {
    const auto bit = static_cast<std::uint8_t>(1U << (number % 8));
    std::uint8_t& byte = protocols[number / 8];
    byte = static_cast<std::uint8_t>(spoken ? byte | bit : byte & ~bit);
  }
  void encode(std::byte* to) const noexcept {
    WireWriter(to).put(version, flags, host, boot_id, lifetime_ms, protocols);
  }
  [[nodiscard]] static Advertisement decode(const std::byte* from) noexcept {
    Advertisement said;
    WireReader(from).get(said.version, said.flags, said.host, said.boot_id, said.lifetime_ms, said.protocols);
    return said;
  }
};

}  // namespace lrpc::netrpc::viphosts
