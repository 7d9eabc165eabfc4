// What reading and compiling a policy share.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace lrpc::nameserver {

/// The users and groups that a policy's text gives by name, not by number. For a malformed text: those that can be
/// found.
struct NamedInPolicy {
  std::set<std::string> users;
  std::set<std::string> groups;
};
NamedInPolicy names_in_policy(std::string_view text);

/// A decimal number of a user or group; none if it is anything else, or the highest number, which is nobody's.
std::optional<std::uint32_t> number_of(std::string_view text) noexcept;

}  // namespace lrpc::nameserver
