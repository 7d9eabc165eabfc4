// Which members of groups are bound, and why others are not: for the users whose bindings these are, and for root.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "group_members.h"
#include "lrpc/detail/shim/printable.h"
#include "lrpc/detail/shim/system/little_endian.h"

namespace lrpc::netpath {
namespace {

constexpr std::size_t kMostWhy = 200;
constexpr uid_t kRoot = 0;

void append_text(std::string& to, std::string_view text) {
  text = text.substr(0, 255);
  to.push_back(static_cast<char>(text.size()));
  to += text;
}

/// In the format of Groups (libclient/network_path.lrpc). The largest binding, with 64 members, fits in the results.
std::string encode(const GroupBinding& binding) {
  std::string bytes;
  shim::append_number(bytes, binding.number);
  shim::append_number(bytes, static_cast<std::uint32_t>(binding.user));
  append_text(bytes, binding.group);
  append_text(bytes, binding.name);
  bytes.push_back(static_cast<char>(binding.members.size()));
  for (const GroupBinding::Member& member : binding.members) {
    shim::append_number(bytes, member.host);
    bytes.push_back(member.bound ? 1 : 0);
    append_text(bytes, member.why);
  }
  return bytes;
}
static_assert(8 + 4 + 2 * 256 + 1 + kMaxMembers * (4 + 1 + 1 + kMostWhy) <=
              NetworkPath::layout::kGroups_bindings.bound);

}  // namespace

std::string PathService::Members::why_not(const Error& error, std::string_view at) {
  const std::string text = error.message();
  std::string_view why = text;
  if (why.starts_with(at)) why.remove_prefix(at.size());
  why.remove_prefix(std::min(why.find_first_not_of(": "), why.size()));
  return shim::printable(why, kMostWhy);
}

std::vector<GroupBinding> PathService::group_bindings(std::optional<uid_t> user, std::uint64_t after,
                                                      std::size_t most) const {
  std::vector<std::shared_ptr<Path>> found = paths_to_groups();
  std::erase_if(found,
                [&](const auto& path) { return path->local_binding <= after || (user && path->user() != *user); });
  std::ranges::sort(found, {}, [](const auto& path) { return path->local_binding; });
  std::vector<GroupBinding> bindings;
  for (const auto& path : found) {
    if (bindings.size() == most) break;
    Members& members = *path->members;
    GroupBinding binding{path->local_binding, path->user(), members.name, members.message.name, {}};
    std::lock_guard lock(members.mutex);
    for (const Members::Member& member : members.all) {
      GroupBinding::Member said{member.host, member.bound(), {}};
      if (!said.bound) said.why = member.why.empty() && member.path != nullptr ? "its binding has ended" : member.why;
      binding.members.push_back(std::move(said));
    }
    bindings.push_back(std::move(binding));
  }
  return bindings;
}

void PathService::Groups(CallContext& context, std::uint64_t after, Buffer& bindings) {
  const uid_t user = context.caller().uid;
  constexpr std::size_t kAtOnce = 64;  // bounds the time of a call
  std::string all;
  for (const GroupBinding& one : group_bindings(user != kRoot ? std::optional(user) : std::nullopt, after, kAtOnce)) {
    const std::string bytes = encode(one);
    if (all.size() + bytes.size() > bindings.room().size()) break;
    all += bytes;
  }
  (void)bindings.assign(bytes_of(all));
}

}  // namespace lrpc::netpath
