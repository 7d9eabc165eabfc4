// Users and groups in options and files: their numbers, and the user database.
#pragma once

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lrpc/detail/shim/result.h"

namespace lrpc::shim {

/// The user or group whose decimal number `text` is; none if it is anything else, or the highest number, which
/// stands for callers of other hosts.
[[nodiscard]] inline std::optional<std::uint32_t> user_number(std::string_view text) noexcept {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == ~std::uint32_t{0}) return std::nullopt;
  return number;
}

/// What `look`, a call of getpwnam(3) or of one like it, has found: null if the database does not have `whom`. Error:
/// system_error, if it could not look; getpwnam(3) lists the reasons. Of several sources (nsswitch.conf(5)) the last
/// one counts. Blocks.
template <class Look>
[[nodiscard]] auto looked_up(const std::string& whom, const Look& look) -> Result<decltype(look())> {
  errno = 0;
  const auto found = look();
  const int err = errno;
  if (found != nullptr) return found;
  for (const int reason : {EINTR, EIO, EMFILE, ENFILE, ENOMEM, ERANGE})
    if (err == reason) return system_error("cannot look up " + whom, err);
  return found;
}

}  // namespace lrpc::shim
