// Attacks what lrpcd makes of a policy: the text (TOML), its transfer from the process that reads it, and its patterns,
// against names that come from peers. Every text is either refused, with the places of its mistakes, or decides as its
// rules say, read one by one. Patterns match what fnmatch(3) matches. A peer is not told the policy's folder, nor whom
// else a rule concerns.
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "input.h"
#include "lrpc/detail/nameserver/policy_file.h"
#include "policy/name_pattern.h"
#include "policy/policy_names.h"

namespace lrpc::nameserver {
namespace {

using fuzz::Input;
using fuzz::require;

constexpr const char* kPath = "/secret-folder/policy.toml";
constexpr uid_t kOwn = 100;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// As fnmatch(3) in the C locale, to which names and patterns are limited here.
void match(std::string pattern, std::string name) {
  const auto beyond = [](char c) { return c <= ' ' || c > '~'; };
  std::erase_if(pattern, beyond);
  std::erase_if(name, beyond);
  const bool matched = matches(pattern, name);
  // Not compared: character classes, which are not supported here; and '\', which fnmatch treats in another way at the
  // end, or in a list without ']'.
  for (const char* const other : {"[:", "[.", "[="})
    if (pattern.find(other) != std::string::npos) return;
  if (pattern.find('\\') != std::string::npos) return;
  require(matched == (::fnmatch(pattern.c_str(), name.c_str(), 0) == 0), "a pattern matches what fnmatch says");
}

void way_to_lrpcd(const std::string& bytes) {
  const auto source = decode_policy_source(bytes);
  if (!source) return require(source.code() == Errc::bad_message, "what is no source is refused as that");
  const auto again = decode_policy_source(encode(*source));
  require(again && again->path == source->path && again->text == source->text && again->users == source->users &&
              again->groups == source->groups,
          "a source stays what it is");
}

/// Treats half of the names in the text as users and groups of this machine.
PolicySource resolved(std::string text) {
  PolicySource source{.path = kPath, .text = std::move(text)};
  const NamedInPolicy named = names_in_policy(source.text);
  const auto number = [](const std::string& name) -> std::optional<std::uint32_t> {
    if (name.size() % 2 == 1) return std::nullopt;
    return 200 + static_cast<std::uint32_t>(name.size()) / 2 % 4;
  };
  for (const std::string& name : named.users) source.users[name] = number(name);
  for (const std::string& name : named.groups) source.groups[name] = number(name);
  return source;
}

void check_refusal(const std::string& text, const Error& error) {
  require(error.code == Errc::invalid_argument && !error.text.empty(), "a policy that is none is refused");
  const auto lines_of_text = static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
  std::size_t mistakes = 0;
  for (std::size_t begin = 0; begin < error.text.size();) {
    const std::size_t next = error.text.find(std::string("\n") + kPath, begin);
    std::string_view one(error.text);
    one = one.substr(begin, next - begin);
    begin = next == std::string::npos ? error.text.size() : next + 1;
    require(one.starts_with(std::string(kPath) + ":"), "each mistake has the file in front");
    one.remove_prefix(std::string_view(kPath).size() + 1);
    if (one.starts_with(" and ")) continue;
    std::size_t line = 0;
    const auto [end, wrong] = std::from_chars(one.data(), one.data() + one.size(), line);
    require(wrong == std::errc() && *end == ':' && line >= 1 && line <= lines_of_text + 1, "and a line of the text");
    ++mistakes;
  }
  require(mistakes >= 1 && mistakes <= 20, "twenty mistakes at most are listed");
}

FilePolicy::Decision expected(const FilePolicy& policy, FilePolicy::Action action, const Peer& who,
                              const std::string& name) {
  const bool exports = action == FilePolicy::Action::export_name;
  for (const FilePolicy::Rule& rule : policy.rules()) {
    bool about = rule.everybody;
    for (const auto& user : rule.users) about = about || user.id == who.uid;
    for (const auto& group : rule.groups)
      about = about || group.id == who.gid || (who.groups && std::ranges::count(*who.groups, group.id) != 0);
    bool named = false;
    for (const std::string& pattern : rule.names) named = named || matches(pattern, name);
    if (about && named && (exports ? rule.on_export : rule.on_import)) return {rule.allow, &rule, false};
  }
  return policy.decide(action, who, "\x01");  // no name: only the default is left to decide
}

void ask(FilePolicy& policy, Input& input) {
  Peer who;
  who.uid = input.byte() % 4 == 0 ? kOwn : input.byte();
  who.gid = 200 + input.byte() % 4U;
  if (input.byte() % 2 == 0) who.groups.emplace({201U + input.byte() % 4U});
  const std::string name = text_of(input.bytes(1 + input.byte() % 16));
  for (const auto action : {FilePolicy::Action::export_name, FilePolicy::Action::import_name}) {
    const auto decision = policy.decide(action, who, name);
    const auto right = expected(policy, action, who, name);
    require(decision.allowed == right.allowed && decision.rule == right.rule, "the first rule that matches decides");
    require(policy.explain(action, decision).starts_with(kPath), "a decision has its reason");
    const Status may = action == FilePolicy::Action::export_name ? policy.may_export(who, name)
                                                                 : policy.may_import(who, name, nullptr);
    require(bool(may) == decision.allowed, "a peer is told what was decided");
    if (may) continue;
    require(may.code() == Errc::not_permitted && may.error().text.find("secret-folder") == std::string::npos,
            "a peer does not hear where the policy lies");
  }
}

void compile(std::string text, Input questions) {
  const auto otherwise = questions.byte() % 2 == 0 ? ExportRule::own_user : ExportRule::anyone;
  const PolicySource source = resolved(std::move(text));
  auto compiled = FilePolicy::compile(source, otherwise, kOwn);
  const auto again = FilePolicy::compile(source, otherwise, kOwn);
  require(bool(compiled) == bool(again), "the same text is the same policy");
  if (!compiled) {
    require(compiled.error().text == again.error().text, "with the same mistakes");
    return check_refusal(source.text, compiled.error());
  }
  FilePolicy& policy = **compiled;
  require(policy.describe({}) == (*again)->describe({}), "with the same rules");
  for (const FilePolicy::Rule& rule : policy.rules()) {
    require(rule.on_export || rule.on_import, "a rule is about something");
    require(rule.everybody || !rule.users.empty() || !rule.groups.empty(), "a rule is about somebody");
    require(
        !rule.names.empty() && std::ranges::all_of(rule.names, [](const auto& p) { return pattern_error(p).empty(); }),
        "a rule is about names");
    for (const auto* const subjects : {&rule.users, &rule.groups})
      for (const auto& subject : *subjects) require(subject.id != ~std::uint32_t{0}, "nobody's number is in no rule");
  }
  for (int i = 0; i < 8 && (i == 0 || questions.more()); ++i) ask(policy, questions);
  const UserQuota standard;
  require(policy.quota(kOwn, standard) == policy.quota(kOwn, policy.quota(kOwn, standard)),
          "a quota is set, not added");
}

void run(Input input) {
  switch (input.byte() % 8) {
    case 0: {
      const auto pattern = input.bytes(input.byte() % 32);
      return match(text_of(pattern), text_of(input.bytes(32)));
    }
    case 1: return way_to_lrpcd(text_of(input.rest()));
    default: {
      const auto questions = input.bytes(input.byte() % 64);
      return compile(text_of(input.rest()),
                     {reinterpret_cast<const std::uint8_t*>(questions.data()), questions.size()});
    }
  }
}

}  // namespace
}  // namespace lrpc::nameserver

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::nameserver::run({data, size});
  return 0;
}
