// What reading and compiling a policy share.
#pragma once

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

}  // namespace lrpc::nameserver
