// Compiles the text of a policy (TOML) to its rules. The only file of the library that includes toml++, which is
// compiled into it: a program that links the library needs nothing of toml++.
#include <algorithm>
#include <exception>

#include "lrpc/detail/nameserver/policy_file.h"
#include "lrpc/detail/shim/user_number.h"
#include "name_pattern.h"
#include "policy_names.h"
#include "quota/user_accounts.h"
#include "toml_or_throw.h"

namespace lrpc::nameserver {
namespace {

constexpr std::size_t kMostErrors = 20;
constexpr std::string_view kEverybody = "*";
/// What a default may say.
constexpr std::pair<std::string_view, FilePolicy::Who> kDefaults[] = {
    {"allow", FilePolicy::Who::anyone}, {"own", FilePolicy::Who::own_user}, {"deny", FilePolicy::Who::nobody}};

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

/// `node`, or the elements of it if it is an array.
template <class Visitor>
void each(const toml::node& node, Visitor&& visit) {
  const toml::array* const array = node.as_array();
  if (array == nullptr) return visit(node);
  for (const toml::node& element : *array) visit(element);
}

template <class Visitor>
void each_named(const toml::table& rule, const char* key, Visitor&& visit) {
  const toml::node* const node = rule.get(key);
  if (node == nullptr) return;
  each(*node, [&](const toml::node& one) {
    if (const auto* text = one.as_string()) visit(text->get());
  });
}

}  // namespace

NamedInPolicy names_in_policy(std::string_view text) {
  NamedInPolicy named;
  const auto add = [](std::set<std::string>& names, const std::string& name) {
    if (name != kEverybody && !shim::user_number(name)) names.insert(name);
  };
  try {
    const toml::table document = parse_toml(text);
    if (const toml::node* const rules = document.get("rule")) {
      each(*rules, [&](const toml::node& node) {
        const toml::table* const rule = node.as_table();
        if (rule == nullptr) return;
        each_named(*rule, "users", [&](const std::string& name) { add(named.users, name); });
        each_named(*rule, "groups", [&](const std::string& name) { add(named.groups, name); });
      });
    }
    if (const toml::table* const users = document["quotas"]["users"].as_table()) {
      for (const auto& [name, value] : *users) add(named.users, std::string(name.str()));
    }
  } catch (const std::exception&) {  // compile() will say what is wrong
  }
  return named;
}

class PolicyParser {
 public:
  PolicyParser(const PolicySource& source, FilePolicy& policy) : source_(source), policy_(policy) {}

  /// Every error that was found, in the order of the file.
  std::string parse() {
    try {
      const toml::table document = parse_toml(source_.text);
      only_keys(document, {"rule", "default", "quotas"});
      rules(document.get("rule"));
      defaults(document.get("default"));
      quotas(document.get("quotas"));
    } catch (const toml::parse_error& wrong) {
      error(wrong.source(), "this is no TOML: " + std::string(wrong.description()));
    } catch (const std::exception& wrong) {
      error(toml::source_region{}, std::string("cannot be read: ") + wrong.what());
    }
    return all_errors();
  }

 private:
  struct Problem {
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::string what;
  };

  void error(const toml::source_region& where, std::string what) {
    problems_.push_back({std::max(where.begin.line, 1U), std::max(where.begin.column, 1U), std::move(what)});
  }
  void error(const toml::node& node, std::string what) { error(node.source(), std::move(what)); }

  std::string all_errors() {
    std::ranges::stable_sort(problems_, [](const Problem& a, const Problem& b) {
      return std::tie(a.line, a.column) < std::tie(b.line, b.column);
    });
    std::string text;
    for (const Problem& one : std::span(problems_).first(std::min(problems_.size(), kMostErrors))) {
      text.append(text.empty() ? "" : "\n").append(source_.path).append(":").append(std::to_string(one.line));
      text.append(":").append(std::to_string(one.column)).append(": ").append(one.what);
    }
    if (problems_.size() > kMostErrors)
      text += "\n" + source_.path + ": and " + std::to_string(problems_.size() - kMostErrors) + " more errors";
    return text;
  }

  /// A misspelt key must not go unnoticed: it would change who may do what.
  void only_keys(const toml::table& table, std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : table) {
      if (std::ranges::find(known, key.str()) != known.end()) continue;
      std::string list;
      for (const std::string_view one : known) list.append(list.empty() ? "" : ", ").append(one);
      error(key.source(), "there is no key " + quoted(key.str()) + " here; known are " + list);
    }
  }

  // ---- [[rule]] ----

  void rules(const toml::node* node) {
    if (node == nullptr) return;
    const toml::array* const array = node->as_array();
    if (array == nullptr) return error(*node, "rules are an array of tables: write [[rule]]");
    for (const toml::node& one : *array) {
      if (const toml::table* const table = one.as_table()) {
        rule(*table);
      } else {
        error(one, "a rule is a table: write [[rule]]");
      }
    }
  }

  void rule(const toml::table& table) {
    only_keys(table, {"allow", "deny", "names", "users", "groups", "id"});
    FilePolicy::Rule made;
    made.line = table.source().begin.line;
    action(table, made);
    names(table, made);
    subjects(table, "users", source_.users, made.users, &made.everybody);
    subjects(table, "groups", source_.groups, made.groups, nullptr);
    if (table.get("users") == nullptr && table.get("groups") == nullptr)
      error(table, "the rule does not say about whom: add users or groups, or users = \"*\" for everybody");
    if (const toml::node* const id = table.get("id")) {
      made.id = id->value_or(std::string_view());
      if (made.id.empty()) error(*id, "a rule's id is a text in quotes");
    }
    policy_.rules_.push_back(std::move(made));
  }

  void action(const toml::table& table, FilePolicy::Rule& made) {
    const toml::node* const allow = table.get("allow");
    const toml::node* const deny = table.get("deny");
    if ((allow == nullptr) == (deny == nullptr))
      return error(table, "a rule has either allow or deny: \"export\", \"import\" or \"both\"");
    made.allow = allow != nullptr;
    const toml::node& node = allow != nullptr ? *allow : *deny;
    const std::string_view what = node.value_or(std::string_view());
    made.on_export = what == "export" || what == "both";
    made.on_import = what == "import" || what == "both";
    if (!made.on_export && !made.on_import)
      error(node, std::string(made.allow ? "allow" : "deny") + " is \"export\", \"import\" or \"both\"");
  }

  void names(const toml::table& table, FilePolicy::Rule& made) {
    const toml::node* const node = table.get("names");
    if (node == nullptr) return error(table, "the rule has no names: a pattern, or a list of them, such as [\"db.*\"]");
    each(*node, [&](const toml::node& one) {
      const auto* pattern = one.as_string();
      if (pattern == nullptr) return error(one, "a pattern of names is a text in quotes");
      if (const std::string wrong = pattern_error(pattern->get()); !wrong.empty())
        return error(one, "no name can match " + quoted(pattern->get()) + ": " + wrong);
      made.names.push_back(pattern->get());
    });
    if (node->is_array() && node->as_array()->empty()) error(*node, "the list of names is empty");
  }

  void subjects(const toml::table& table, const char* key,
                const std::map<std::string, std::optional<std::uint32_t>>& known,
                std::vector<FilePolicy::Subject>& made, bool* everybody) {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return;
    const std::string kind(std::string_view(key).substr(0, std::string_view(key).size() - 1));
    each(*node, [&](const toml::node& one) {
      const auto* text = one.as_string();
      if (text != nullptr && everybody != nullptr && text->get() == kEverybody) {
        *everybody = true;
        return;
      }
      const auto* number = one.as_integer();
      if (text == nullptr && number == nullptr) return error(one, "a " + kind + " is a name in quotes or a number");
      const std::string spelled = text != nullptr ? text->get() : std::to_string(number->get());
      if (const auto id = subject(one, kind, spelled, known)) made.push_back({spelled, *id});
    });
    if (node->is_array() && node->as_array()->empty()) error(*node, "the list of " + kind + "s is empty");
  }

  template <class Place>
  std::optional<std::uint32_t> subject(const Place& place, const std::string& kind, const std::string& spelled,
                                       const std::map<std::string, std::optional<std::uint32_t>>& known) {
    if (const auto number = shim::user_number(spelled)) return number;
    const auto found = known.find(spelled);
    if (found != known.end() && found->second) return found->second;
    const bool numeric = !spelled.empty() && spelled.find_first_not_of("-0123456789") == std::string::npos;
    error(place, numeric ? spelled + " is no number of a " + kind
                         : "there is no " + kind + " " + quoted(spelled) + " on this machine; a number needs no entry");
    return std::nullopt;
  }

  // ---- [default] ----

  void defaults(const toml::node* node) {
    if (node == nullptr) return;
    const toml::table* const table = node->as_table();
    if (table == nullptr) return error(*node, "the defaults are a table: write [default]");
    only_keys(*table, {"export", "import"});
    one_default(table->get("export"), policy_.default_export_);
    one_default(table->get("import"), policy_.default_import_);
  }

  void one_default(const toml::node* node, FilePolicy::Default& made) {
    if (node == nullptr) return;
    made.line = node->source().begin.line;
    const std::string_view what = node->value_or(std::string_view());
    const auto found = std::ranges::find(kDefaults, what, &std::pair<std::string_view, FilePolicy::Who>::first);
    if (found == std::end(kDefaults))
      return error(*node, "a default is \"allow\", \"deny\" or \"own\" (root and lrpcd's own user)");
    made.who = found->second;
  }

  // ---- [quotas] ----

  void quotas(const toml::node* node) {
    if (node == nullptr) return;
    const toml::table* const table = node->as_table();
    if (table == nullptr) return error(*node, "the quotas are a table: write [quotas]");
    quota_table(*table, policy_.everybodys_, true);
    const toml::node* const users = table->get("users");
    if (users == nullptr) return;
    const toml::table* const by_user = users->as_table();
    if (by_user == nullptr) return error(*users, "one user's quotas are a table: write [quotas.users.NAME]");
    for (const auto& [key, value] : *by_user) {
      const std::string spelled(key.str());
      const toml::table* const own = value.as_table();
      if (own == nullptr) {
        error(value, "one user's quotas are a table: write [quotas.users." + spelled + "]");
        continue;
      }
      const auto user = subject(key.source(), "user", spelled, source_.users);
      if (!user) continue;
      const auto [made, is_new] = policy_.users_.try_emplace(*user, spelled, FilePolicy::QuotaChange{});
      if (!is_new) error(key.source(), quoted(spelled) + " and " + quoted(made->second.first) + " are the same user");
      quota_table(*own, made->second.second, false);
    }
  }

  void quota_table(const toml::table& table, FilePolicy::QuotaChange& made, bool for_everybody) {
    for (const auto& [key, value] : table) {
      if (for_everybody && key.str() == "users") continue;
      bool known = false;
      std::string list;
      for (const QuotaName& one : kQuotaNames) {
        known = known || one.key == key.str();
        list.append(list.empty() ? "" : ", ").append(one.key);
      }
      if (!known) {
        error(key.source(), "there is no quota " + quoted(key.str()) + "; there are " + list);
        continue;
      }
      const auto* number = value.as_integer();
      if (value.value_or(std::string_view()) == shim::kNoLimitWord) {
        made[std::string(key.str())] = kNoLimit;
      } else if (number != nullptr && number->get() > 0) {
        made[std::string(key.str())] = static_cast<std::uint64_t>(number->get());
      } else {
        error(value, "a quota is a number over 0, or \"" + std::string(shim::kNoLimitWord) + "\"");
      }
    }
  }

  const PolicySource& source_;
  FilePolicy& policy_;
  std::vector<Problem> problems_;
};

Result<std::shared_ptr<FilePolicy>> FilePolicy::compile(Result<PolicySource> source, ExportRule otherwise,
                                                        uid_t own_user) {
  if (!source) return source.error();
  const std::shared_ptr<FilePolicy> policy(new FilePolicy());
  policy->own_user_ = own_user;
  policy->default_export_.who = otherwise == ExportRule::anyone ? Who::anyone : Who::own_user;
  std::string errors = PolicyParser(*source, *policy).parse();
  if (!errors.empty()) return Error{Errc::invalid_argument, std::move(errors)};
  policy->path_ = std::move(source->path);
  return policy;
}

}  // namespace lrpc::nameserver
