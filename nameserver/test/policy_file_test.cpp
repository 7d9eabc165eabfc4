// Policies in files: their text, the mistakes in it, and what they decide.
#include "lrpc/detail/nameserver/policy_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <utility>

#include "quota/user_accounts.h"
#include "soft_limit.h"
#include "test_peer.h"

namespace lrpc::nameserver::test {
namespace {

using Action = FilePolicy::Action;

constexpr uid_t kAlice = 71'001;
constexpr uid_t kBob = 71'002;
constexpr gid_t kStaff = 72'001;
constexpr gid_t kInterns = 72'002;

/// A policy text for which these users and groups exist, whatever this machine has.
PolicySource source(std::string text) {
  return {.path = "/etc/lrpc/policy.toml",
          .text = std::move(text),
          .users = {{"alice", kAlice}, {"bob", kBob}, {"mallory", std::nullopt}},
          .groups = {{"staff", kStaff}, {"interns", kInterns}, {"ghosts", std::nullopt}}};
}

std::shared_ptr<FilePolicy> policy_of(const std::string& text, ExportRule otherwise = ExportRule::own_user) {
  auto made = FilePolicy::compile(source(text), otherwise);
  EXPECT_TRUE(made) << made.error().message();
  return made ? *made : nullptr;
}

std::string errors_of(const std::string& text) {
  const auto made = FilePolicy::compile(source(text));
  EXPECT_EQ(made.code(), Errc::invalid_argument);
  return made.error().text;
}

Peer peer(uid_t user, gid_t group = 79'999, std::vector<gid_t> groups = {}) {
  return {{1, user, group}, std::move(groups)};
}

constexpr const char* kExample = R"([default]
import = "deny"

[[rule]]
id = "no interns"
deny = "import"
names = "db.*"
groups = "interns"

[[rule]]
allow = "both"
names = ["db.*", "cache[0-9]"]
users = ["alice", 71002]
groups = ["staff"]

[[rule]]
allow = "import"
names = "public.*"
users = "*"
)";

TEST(FilePolicy, an_empty_file_decides_as_no_file_does) {
  const auto policy = policy_of("");
  EXPECT_TRUE(policy->may_export(peer(0), "a"));
  EXPECT_TRUE(policy->may_export(peer(::geteuid()), "a"));
  EXPECT_EQ(policy->may_export(peer(kAlice), "a").code(), Errc::not_permitted);
  EXPECT_TRUE(policy->may_import(peer(kAlice), "a", nullptr));
  EXPECT_TRUE(policy_of("", ExportRule::anyone)->may_export(peer(kAlice), "a"));
  EXPECT_EQ(policy->quota(kAlice, {}), UserQuota{});
}

TEST(FilePolicy, the_first_rule_that_matches_decides) {
  const auto policy = policy_of(kExample);
  const auto line = [&](Action action, const Peer& who, const char* name) {
    const auto decision = policy->decide(action, who, name);
    return std::pair(decision.allowed, decision.rule != nullptr ? decision.rule->line : 0);
  };
  using Decided = std::pair<bool, std::uint32_t>;
  // By user name, by user number, by primary and by supplementary group.
  EXPECT_EQ(line(Action::import_name, peer(kAlice), "db.main"), Decided(true, 10));
  EXPECT_EQ(line(Action::import_name, peer(kBob), "db.main"), Decided(true, 10));
  EXPECT_EQ(line(Action::import_name, peer(9, kStaff), "cache7"), Decided(true, 10));
  EXPECT_EQ(line(Action::import_name, peer(9, 1, {5, kStaff}), "cache7"), Decided(true, 10));
  // The first rule that matches counts, also against users whom a later rule names; but only for what it is about.
  EXPECT_EQ(line(Action::import_name, peer(kAlice, kInterns), "db.main"), Decided(false, 4));
  EXPECT_EQ(line(Action::import_name, peer(kAlice, 1, {kInterns}), "db.main"), Decided(false, 4));
  EXPECT_EQ(line(Action::export_name, peer(kAlice, kInterns), "db.main"), Decided(true, 10));
  EXPECT_EQ(line(Action::import_name, peer(kAlice, kInterns), "cache1"), Decided(true, 10));
  // A rule for everybody; and no rule at all: the default.
  EXPECT_EQ(line(Action::import_name, peer(9), "public.time"), Decided(true, 16));
  EXPECT_EQ(line(Action::export_name, peer(9), "public.time"), Decided(false, 0));
  EXPECT_EQ(line(Action::import_name, peer(9), "db.main"), Decided(false, 0));
  EXPECT_EQ(line(Action::import_name, peer(0), "elsewhere"), Decided(false, 0)) << "root has no privilege by default";
}

TEST(FilePolicy, defaults_are_for_everybody_for_nobody_or_for_root_and_the_own_user) {
  const auto may = [](const std::string& how, uid_t user) {
    return policy_of("default = { export = \"" + how + "\", import = \"" + how + "\" }")
        ->may_import(peer(user), "a", nullptr)
        .has_value();
  };
  EXPECT_TRUE(may("allow", kAlice));
  EXPECT_FALSE(may("own", kAlice));
  EXPECT_TRUE(may("own", 0));
  EXPECT_TRUE(may("own", ::geteuid()));
  EXPECT_FALSE(may("deny", 0));
}

TEST(FilePolicy, a_denial_names_the_rule_and_tells_no_path_and_nothing_of_others) {
  const auto policy = policy_of(kExample);
  const Status by_rule = policy->may_import(peer(9, kInterns), "db.main", nullptr);
  EXPECT_EQ(by_rule.code(), Errc::not_permitted);
  EXPECT_EQ(
      by_rule.error().text,
      "user 9 may not import 'db.main': denied by the rule 'no interns' at policy.toml:4 of the nameserver's policy");
  const Status by_default = policy->may_import(peer(9), "db.main", nullptr);
  EXPECT_EQ(by_default.error().text,
            "user 9 may not import 'db.main': no rule of the nameserver's policy allows it, and by default nobody may "
            "(policy.toml:2)");
  const auto decision = policy->decide(Action::import_name, peer(9, kInterns), "db.main");
  EXPECT_EQ(policy->explain(Action::import_name, decision),
            "/etc/lrpc/policy.toml:4: deny import of 'db.*' to group interns (rule 'no interns')");
}

TEST(FilePolicy, quotas_are_everybodys_and_of_single_users) {
  const auto policy = policy_of(R"([quotas]
names = 5
imports = "no-limit"
[quotas.users.alice]
names = 50
region_bytes = 1_000_000
[quotas.users.71002]
connections = 1
)");
  UserQuota expected;
  expected.names = 5;
  expected.imports = kNoLimit;
  EXPECT_EQ(policy->quota(9, {}), expected);
  UserQuota bobs = expected;
  bobs.connections = 1;
  EXPECT_EQ(policy->quota(kBob, {}), bobs);
  expected.names = 50;
  expected.region_bytes = 1'000'000;
  EXPECT_EQ(policy->quota(kAlice, {}), expected);
}

TEST(FilePolicy, every_quota_can_be_set) {
  UserQuota quota;
  for (std::size_t i = 0; i < kQuotas; ++i) {
    const auto which = static_cast<Quota>(i);
    const auto policy = policy_of("[quotas]\n" + std::string(name_of(which).key) + " = 77\n");
    const UserQuota changed = policy->quota(9, quota);
    for (std::size_t j = 0; j < kQuotas; ++j) {
      const auto other = static_cast<Quota>(j);
      EXPECT_EQ(limit_of(changed, other), i == j ? 77 : limit_of(quota, other)) << name_of(other).key;
    }
  }
}

TEST(FilePolicy, every_error_is_told_with_its_place_in_the_order_of_the_file) {
  EXPECT_EQ(errors_of(R"([defaults]
[[rule]]
deny = "imports"
name = "db.*"
groups = ["ghosts", 1234]
[[rule]]
allow = "both"
deny = "both"
names = ["a b", ""]
users = ["*", -1, 4294967295, 1.5]
[quotas]
name = 10
imports = -1
users.mallory.imports = 3
)"),
            R"(/etc/lrpc/policy.toml:1:2: there is no key 'defaults' here; known are rule, default, quotas
/etc/lrpc/policy.toml:2:1: the rule has no names: a pattern, or a list of them, such as ["db.*"]
/etc/lrpc/policy.toml:3:8: deny is "export", "import" or "both"
/etc/lrpc/policy.toml:4:1: there is no key 'name' here; known are allow, deny, names, users, groups, id
/etc/lrpc/policy.toml:5:11: there is no group 'ghosts' on this machine; a number needs no entry
/etc/lrpc/policy.toml:6:1: a rule has either allow or deny: "export", "import" or "both"
/etc/lrpc/policy.toml:9:10: no name can match 'a b': names are printable ASCII characters without space
/etc/lrpc/policy.toml:9:17: no name can match '': it is empty; '*' is for every name
/etc/lrpc/policy.toml:10:15: -1 is no number of a user
/etc/lrpc/policy.toml:10:19: 4294967295 is no number of a user
/etc/lrpc/policy.toml:10:31: a user is a name in quotes or a number
/etc/lrpc/policy.toml:12:1: there is no quota 'name'; there are connections, names, declaration_bytes, imports, )"
            R"(region_bytes, descriptors_in_flight, binds
/etc/lrpc/policy.toml:13:11: a quota is a number over 0, or "no-limit"
/etc/lrpc/policy.toml:14:7: there is no user 'mallory' on this machine; a number needs no entry)");
}

TEST(FilePolicy, each_of_these_is_wrong) {
  struct Case {
    const char* text;
    const char* error;
  };
  for (const auto& [text, error] : {
           Case{"[[rule]\n", ":1:8: this is no TOML"},
           {"a = \"\xff\"\n", ":1:5: this is no TOML"},
           {"a = 1\n8\xce\x92"
            "A\x15",
            ":2:2: this is no TOML"},
           {"a = \"\xce\x92\" 8\xce\x92", ":1:9: this is no TOML"},
           // These violated an assumption of the optimizer; the first one because no quote begins there.
           {"a = 2'''\xef\xbb\xbb", ":1:6: this is no TOML"},
           {"a = 2\xef\xbb\xbb", ":1:6: this is no TOML"},
           {"\xe1\x9a\x80 = 1", ":1:1: this is no TOML"},
           {"a = \"\xce\x92\\\"#\xce\x92\" # \xce\x92\n", "no key 'a'"},
           {"[rule]\nallow = \"both\"\n", "write [[rule]]"},
           {"rule = [1]\n", ":1:9: a rule is a table"},
           {"rule = 1\n", "write [[rule]]"},
           {"[[rule]]\nallow = \"both\"\nnames = \"*\"\n", ":1:1: the rule does not say about whom"},
           {"[[rule]]\nallow = \"both\"\nnames = \"*\"\nusers = []\n", ":4:9: the list of users is empty"},
           {"[[rule]]\nallow = \"both\"\nnames = []\nusers = \"*\"\n", ":3:9: the list of names is empty"},
           {"[[rule]]\nallow = \"both\"\nnames = 7\nusers = \"*\"\n", ":3:9: a pattern"},
           {"[[rule]]\nallow = \"both\"\nnames = \"a@b\"\nusers = \"*\"\n", "on another host"},
           {"[[rule]]\nallow = \"both\"\nnames = \"*\"\ngroups = \"*\"\n", ":4:10: there is no group '*'"},
           {"[[rule]]\nallow = \"both\"\nnames = \"*\"\nusers = \"*\"\nid = 3\n", ":5:6: a rule's id"},
           {"[[rule]]\nnames = \"*\"\nusers = \"*\"\n", ":1:1: a rule has either allow or deny"},
           {"[[rule]]\nallow = [\"both\"]\nnames = \"*\"\nusers = \"*\"\n", ":2:9: allow is"},
           {"default = \"deny\"\n", ":1:11: the defaults are a table"},
           {"[default]\nexport = \"no\"\n", ":2:10: a default is"},
           {"[default]\nexports = \"deny\"\n", ":2:1: there is no key 'exports'"},
           {"quotas = 3\n", ":1:10: the quotas are a table"},
           {"[quotas]\nusers = 3\n", ":2:9: one user's quotas are a table"},
           {"[quotas.users]\nalice = 3\n", ":2:9: one user's quotas are a table"},
           {"[quotas.users.alice]\nusers.bob.names = 3\n", ":2:1: there is no quota 'users'"},
           {"[quotas.users.alice]\n[quotas.users.71001]\n", "are the same user"},
           {"[quotas]\nnames = \"3\"\n", ":2:9: a quota is a number"},
           {"[quotas]\nnames = 99999999999999999999\n", ":2:"},
       })
    EXPECT_NE(errors_of(text).find(error), std::string::npos) << text << "\n" << errors_of(text);
  std::string many;
  for (int i = 0; i < 100; ++i) many += "wrong" + std::to_string(i) + " = 1\n";
  EXPECT_NE(errors_of(many).find("and 80 more errors"), std::string::npos);
}

TEST(FilePolicy, no_text_is_worse_than_wrong) {
  // Tries every prefix of a good text, and deep nesting.
  const std::string good = kExample;
  for (std::size_t size = 0; size < good.size(); ++size) (void)FilePolicy::compile(source(good.substr(0, size)));
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string changed = good;
    for (const char c : {'\0', '"', '[', '\xff', '='}) {
      changed[at] = c;
      (void)FilePolicy::compile(source(changed));
      (void)resolve_policy_source("p", changed);
    }
  }
  EXPECT_NE(errors_of("rule = " + std::string(100'000, '[')), "");
}

TEST(PolicySource, travels_as_bytes) {
  const PolicySource sent = source(kExample);
  const auto received = decode_policy_source(encode(sent));
  ASSERT_TRUE(received) << received.error().message();
  EXPECT_EQ(received->path, sent.path);
  EXPECT_EQ(received->text, sent.text);
  EXPECT_EQ(received->users, sent.users);
  EXPECT_EQ(received->groups, sent.groups);
  const std::string bytes = encode(sent);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(decode_policy_source(bytes.substr(0, size)).code(), Errc::bad_message) << size;
  for (const char* wrong : {"x", "5 abc", "-1 ", "4294967294 ", "1 p1 t9 ", "1 p1 t0 0 more"})
    EXPECT_EQ(decode_policy_source(wrong).code(), Errc::bad_message) << wrong;
}

// Before other look-ups of the process: of several sources of the user database (nsswitch.conf(5)) the C library tells
// what the last one said, and one that is loaded by then may need no descriptor.
TEST(PolicySource, does_not_say_that_there_is_no_user_if_nobody_could_look) {
  std::optional<testing_lrpc::SoftLimit> few(std::in_place, 0);
  const auto user = resolve_policy_source("p", "rule = [{users = \"no-such-user-here\"}]");
  const auto group = resolve_policy_source("p", "rule = [{groups = \"no-such-group-here\"}]");
  few.reset();
  EXPECT_EQ(user.code(), Errc::system_error);
  EXPECT_EQ(group.code(), Errc::system_error);
  EXPECT_NE(user.error().message().find("p: cannot look up user 'no-such-user-here'"), std::string::npos);
  EXPECT_NE(group.error().message().find("p: cannot look up group 'no-such-group-here'"), std::string::npos);
}

TEST(PolicySource, looks_up_whom_the_text_names) {
  const auto found = resolve_policy_source("p", R"([[rule]]
allow = "both"
names = "*"
users = ["root", "no-such-user-here", "12", 13, "*"]
groups = "root"
[quotas.users.root]
names = 1
)");
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->users,
            (std::map<std::string, std::optional<uid_t>>{{"root", 0}, {"no-such-user-here", std::nullopt}}));
  EXPECT_EQ(found->groups, (std::map<std::string, std::optional<gid_t>>{{"root", 0}}));
}

class PolicyOnDisk : public ::testing::Test {
 protected:
  void write(mode_t mode) {
    std::ofstream(path_) << kExample;
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
  }
  [[nodiscard]] Errc loaded() const { return load_policy_source(path_).code(); }
  TemporaryDirectory directory_;
  std::string path_ = directory_ / "policy.toml";
};

TEST_F(PolicyOnDisk, is_read_if_nobody_else_can_write_it) {
  write(0644);
  const auto source = load_policy_source(path_);
  ASSERT_TRUE(source) << source.error().message();
  EXPECT_EQ(source->text, kExample);
  EXPECT_EQ(source->path, path_);
}

TEST_F(PolicyOnDisk, is_refused_if_somebody_else_can_write_it) {
  write(0664);
  EXPECT_EQ(loaded(), Errc::not_permitted);
  write(0646);
  EXPECT_EQ(loaded(), Errc::not_permitted);
  write(0600);
  EXPECT_EQ(loaded(), Errc::ok);
}

TEST_F(PolicyOnDisk, is_refused_if_it_belongs_to_somebody_else) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  write(0644);
  ASSERT_EQ(::chown(path_.c_str(), kAlice, 0), 0);
  EXPECT_EQ(loaded(), Errc::not_permitted);
}

TEST_F(PolicyOnDisk, is_a_file_of_bounded_length) {
  EXPECT_EQ(loaded(), Errc::system_error) << "it is not there";
  EXPECT_EQ(load_policy_source(directory_ / "").code(), Errc::invalid_argument) << "a directory";
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(loaded(), Errc::invalid_argument) << "a FIFO, and nobody writes to it";
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  std::ofstream(path_) << std::string((1U << 20) + 1, '#');
  EXPECT_EQ(loaded(), Errc::invalid_argument) << "too long";
}

}  // namespace
}  // namespace lrpc::nameserver::test
