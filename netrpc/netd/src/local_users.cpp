#include "local_users.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "lrpc/detail/shim/user_number.h"

namespace lrpc::netd {
namespace {

Result<passwd*> find_user(const std::string& name) {
  return shim::looked_up("user '" + name + "'", [&] { return ::getpwnam(name.c_str()); });
}

}  // namespace

Result<MayCall> who_may_call(const std::vector<std::string>& users, const std::vector<std::string>& groups) {
  std::set<uid_t> allowed{0, ::geteuid()};
  std::set<gid_t> allowed_groups;
  for (const std::string& name : users) {
    if (const auto number = shim::user_number(name)) {
      allowed.insert(*number);
      continue;
    }
    const auto user = find_user(name);
    if (!user) return Error{user.code(), "--allow-user: " + user.error().message()};
    if (*user == nullptr) return Error{Errc::invalid_argument, "--allow-user: there is no user '" + name + "'"};
    allowed.insert((*user)->pw_uid);
  }
  for (const std::string& name : groups) {
    const auto number = shim::user_number(name);
    const auto found = shim::looked_up("group '" + name + "'",
                                       [&] { return number ? ::getgrgid(*number) : ::getgrnam(name.c_str()); });
    if (!found) return Error{found.code(), "--allow-group: " + found.error().message()};
    if (*found == nullptr && !number)
      return Error{Errc::invalid_argument, "--allow-group: there is no group '" + name + "'"};
    allowed_groups.insert(*found != nullptr ? (*found)->gr_gid : *number);
    if (*found == nullptr) continue;
    std::vector<std::string> members;  // copied first: the next look-up may use the same memory
    for (char** member = (*found)->gr_mem; *member != nullptr; ++member) members.emplace_back(*member);
    for (const std::string& member : members) {
      const auto user = find_user(member);
      if (!user) return Error{user.code(), "--allow-group: " + user.error().message()};
      if (*user != nullptr) allowed.insert((*user)->pw_uid);
    }
  }
  return [allowed, allowed_groups](const shim::ClientCredentials& client) -> Status {
    const auto has = [&client](gid_t group) { return client.is_member_of(group); };
    if (allowed.contains(client.uid) || std::ranges::any_of(allowed_groups, has)) return {};
    return Error{Errc::not_permitted, "user " + std::to_string(client.uid) +
                                          " may not call other hosts with this host's keys; start lrpc-netd with "
                                          "--allow-user or --allow-group"};
  };
}

}  // namespace lrpc::netd
