// A policy from a file, once it has been compiled: deciding and explaining.
#include "lrpc/detail/nameserver/policy_file.h"

#include <algorithm>

#include "name_pattern.h"
#include "quota/user_accounts.h"

namespace lrpc::nameserver {
namespace {

using Action = FilePolicy::Action;
using Who = FilePolicy::Who;

const char* verb(Action action) noexcept { return action == Action::export_name ? "export" : "import"; }

const char* describe_who(Who who) noexcept {
  return who == Who::anyone ? "everybody" : who == Who::own_user ? "root and lrpcd's own user" : "nobody";
}

std::string words_of(std::uint64_t limit) { return limit == kNoLimit ? shim::kNoLimitWord : std::to_string(limit); }

void append_subjects(std::string& text, const char* kind, const std::vector<FilePolicy::Subject>& subjects) {
  for (const auto& subject : subjects)
    text.append(text.empty() ? "" : ", ").append(kind).append(" ").append(subject.spelled);
}

}  // namespace

std::string FilePolicy::Rule::describe() const {
  std::string patterns;
  for (const std::string& name : names)
    patterns.append(patterns.empty() ? "" : ", ").append("'").append(name).append("'");
  std::string who;
  if (everybody) who = "everybody";
  append_subjects(who, "user", users);
  append_subjects(who, "group", groups);
  return std::string(allow ? "allow " : "deny ") +
         (on_export && on_import ? "export and import"
          : on_export            ? "export"
                                 : "import") +
         " of " + patterns + " to " + who;
}

FilePolicy::Decision FilePolicy::decide(Action action, const Peer& who, std::string_view name) const {
  for (const Rule& rule : rules_) {
    if (!(action == Action::export_name ? rule.on_export : rule.on_import)) continue;
    const bool about =
        rule.everybody || std::ranges::any_of(rule.users, [&](const Subject& user) { return user.id == who.uid; }) ||
        std::ranges::any_of(rule.groups, [&](const Subject& group) { return who.is_member_of(group.id); });
    if (!about) continue;
    if (std::ranges::any_of(rule.names, [&](const std::string& pattern) { return matches(pattern, name); }))
      return {rule.allow, &rule, false};
  }
  const Who allowed = otherwise(action).who;
  const bool own = who.uid == 0 || who.uid == own_user_;
  return {allowed == Who::anyone || (allowed == Who::own_user && own), nullptr, allowed == Who::own_user};
}

std::string FilePolicy::explain(Action action, const Decision& decision) const {
  if (decision.rule != nullptr) {
    const std::string& id = decision.rule->id;
    return path_ + ":" + std::to_string(decision.rule->line) + ": " + decision.rule->describe() +
           (id.empty() ? std::string() : " (rule '" + id + "')");
  }
  const Default& last = otherwise(action);
  return path_ + (last.line != 0 ? ":" + std::to_string(last.line) : std::string()) +
         ": no rule matches, and by default " + describe_who(last.who) + " may " + verb(action);
}

/// The error for peers names the rule, but neither the file's directory nor the others to whom the rule applies.
Status FilePolicy::decided(Action action, const Peer& who, std::string_view name) const {
  const Decision decision = decide(action, who, name);
  if (decision.allowed) return {};
  std::string text = "user " + std::to_string(who.uid) + " may not " + verb(action) + " '" + std::string(name) + "': ";
  const auto at = [this](std::uint32_t line) {
    return path_.substr(path_.rfind('/') + 1) + ":" + std::to_string(line);
  };
  if (decision.rule != nullptr) {
    text.append("denied by the rule ");
    if (!decision.rule->id.empty()) text.append("'").append(decision.rule->id).append("' ");
    text.append("at ").append(at(decision.rule->line)).append(" of the nameserver's policy");
  } else {
    const Default& last = otherwise(action);
    text.append("no rule of the nameserver's policy allows it, and by default ").append(describe_who(last.who));
    text.append(" may");
    if (last.line != 0) text.append(" (").append(at(last.line)).append(")");
  }
  return Error{Errc::not_permitted, std::move(text)};
}

Status FilePolicy::may_export(const Peer& server, std::string_view name) {
  return decided(Action::export_name, server, name);
}

Status FilePolicy::may_import(const Peer& client, std::string_view name, const shim::Credentials*) {
  return decided(Action::import_name, client, name);
}

UserQuota FilePolicy::changed(UserQuota quota, const QuotaChange& change) {
  for (const QuotaName& one : kQuotaNames)
    if (const auto found = change.find(one.key); found != change.end()) quota.*one.limit = found->second;
  return quota;
}

UserQuota FilePolicy::quota(uid_t user, const UserQuota& standard) {
  const UserQuota quota = changed(standard, everybodys_);
  const auto own = users_.find(user);
  return own != users_.end() ? changed(quota, own->second.second) : quota;
}

std::string FilePolicy::describe(const UserQuota& standard) const {
  std::string text = path_ + " is right. The first rule that matches decides:\n";
  for (const Rule& rule : rules_) {
    text.append("  line ").append(std::to_string(rule.line)).append(": ").append(rule.describe());
    if (!rule.id.empty()) text.append("  ('").append(rule.id).append("')");
    text.append("\n");
  }
  if (rules_.empty()) text.append("  (there are none)\n");
  for (const Action action : {Action::export_name, Action::import_name}) {
    const Default& last = otherwise(action);
    text.append("  otherwise: ").append(describe_who(last.who)).append(" may ").append(verb(action));
    text.append(last.line != 0 ? " (line " + std::to_string(last.line) + ")\n" : " (built in)\n");
  }
  text.append("  always: '").append(shim::kNetworkName).append("', '").append(shim::kDirectoryName);
  text.append("' and 'lrpc.user.*' are exported by root or lrpcd's own user, or not at all\n");
  const UserQuota quota = changed(standard, everybodys_);
  text.append("Each user may have at most:\n");
  for (const QuotaName& one : kQuotaNames) {
    text.append("  ").append(one.key).append(" = ").append(words_of(quota.*one.limit));
    text.append("  (").append(one.what).append(")\n");
  }
  for (const auto& [user, own] : users_) {
    text.append("  but user ").append(own.first).append(":");
    for (const auto& [key, limit] : own.second) text.append(" ").append(key).append(" = ").append(words_of(limit));
    text.append("\n");
  }
  return text;
}

}  // namespace lrpc::nameserver
