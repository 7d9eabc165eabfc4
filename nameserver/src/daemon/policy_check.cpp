#include "policy_check.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "lrpc/detail/nameserver/policy_file.h"
#include "lrpc/detail/shim/user_number.h"
#include "lrpc/nameserver.h"

namespace lrpc::nameserver {
namespace {

constexpr int kDenied = 2;

struct Asker {
  Peer peer;
  std::string name;
};

/// The user as the kernel would describe it after a login: with the groups of the group database. The error names
/// `option`.
Result<Asker> find_user(const std::string& option, const std::string& as) {
  const auto number = as.empty() ? std::optional(::geteuid()) : shim::user_number(as);
  const auto looked = shim::looked_up("user '" + (as.empty() ? std::to_string(*number) : as) + "'",
                                      [&] { return number ? ::getpwuid(*number) : ::getpwnam(as.c_str()); });
  if (!looked) return Error{looked.code(), option + ": " + looked.error().message()};
  const passwd* const user = *looked;
  Asker found;
  if (user == nullptr) {
    if (!number) return Error{Errc::invalid_argument, option + ": there is no user '" + as + "'"};
    found.peer.uid = *number;
    found.peer.gid = as.empty() ? ::getegid() : static_cast<gid_t>(-1);
    found.name = std::to_string(found.peer.uid) + " (not in the user database: without groups)";
    return found;
  }
  found.name = std::string(user->pw_name) + " (" + std::to_string(user->pw_uid) + ")";
  found.peer.uid = user->pw_uid;
  found.peer.gid = user->pw_gid;
  int count = 64;
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  while (::getgrouplist(user->pw_name, user->pw_gid, groups.data(), &count) < 0)
    groups.resize(static_cast<std::size_t>(count));
  groups.resize(static_cast<std::size_t>(count));
  found.peer.groups = std::move(groups);
  return found;
}

std::string describe_groups(const Peer& peer) {
  std::string text;
  if (!peer.groups) return text;
  for (const gid_t id : *peer.groups) {
    const group* const found = ::getgrgid(id);
    text.append(text.empty() ? ", groups " : ", ");
    text.append(found != nullptr ? std::string(found->gr_name) + " (" + std::to_string(id) + ")" : std::to_string(id));
  }
  return text;
}

bool ask(const FilePolicy& policy, FilePolicy::Action action, const Asker& asker, const std::string& name,
         const Asker& daemon) {
  if (action == FilePolicy::Action::export_name && !may_have_name(asker.peer.uid, name, daemon.peer.uid)) {
    std::printf("export '%s' as %s%s: denied\n  by lrpcd itself: this name is root's and its own user's, %s\n",
                name.c_str(), asker.name.c_str(), describe_groups(asker.peer).c_str(), daemon.name.c_str());
    return false;
  }
  const auto decision = policy.decide(action, asker.peer, name);
  std::printf("%s '%s' as %s%s: %s\n  by %s\n", action == FilePolicy::Action::export_name ? "export" : "import",
              name.c_str(), asker.name.c_str(), describe_groups(asker.peer).c_str(),
              decision.allowed ? "allowed" : "denied", policy.explain(action, decision).c_str());
  if (decision.by_own_user) std::printf("  (lrpcd's own user is %s: --daemon-user)\n", daemon.name.c_str());
  if (!shim::valid_name(name)) std::printf("  ('%s' is no name that can be exported)\n", name.c_str());
  return decision.allowed;
}

int wrong(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  return 1;
}

}  // namespace

int check_policy(const PolicyQuestion& question) {
  const auto daemon = find_user("--daemon-user", question.daemon_user);
  if (!daemon) return wrong("lrpcd: " + daemon.error().message());
  const auto policy =
      FilePolicy::compile(load_policy_source(question.file, daemon->peer.uid), question.export_rule, daemon->peer.uid);
  if (!policy) return wrong(policy.error().message());
  if (question.exports.empty() && question.imports.empty()) {
    if (!question.as.empty()) return wrong("lrpcd: --as: say by --import or --export what is asked about");
    std::fputs((*policy)->describe(Limits{}.user).c_str(), stdout);
    return 0;
  }
  const auto asker = find_user("--as", question.as);
  if (!asker) return wrong("lrpcd: " + asker.error().message());
  bool allowed = true;
  for (const auto& name : question.exports)
    allowed = ask(**policy, FilePolicy::Action::export_name, *asker, name, *daemon) && allowed;
  for (const auto& name : question.imports)
    allowed = ask(**policy, FilePolicy::Action::import_name, *asker, name, *daemon) && allowed;
  return allowed ? 0 : kDenied;
}

}  // namespace lrpc::nameserver
