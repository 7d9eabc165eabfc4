// lrpcd with a policy file: what it decides, for which users, and what happens when the file changes.
#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>

#include "daemon.h"
#include "length.h"
#include "test_peer.h"

namespace lrpc::nameserver::test {
namespace {

constexpr uid_t kUser = 54'321;  // needs no entry in /etc/passwd
constexpr uid_t kOtherUser = 54'322;
constexpr gid_t kGroup = 54'323;

class LrpcdPolicy : public ::testing::Test {
 protected:
  void write(const std::string& text, mode_t mode = 0644) {
    // Renamed into place, as editors do: a reload never sees a part of it.
    const std::string next = directory_ / "next.toml";
    std::ofstream(next) << text;
    ASSERT_EQ(::chmod(next.c_str(), mode), 0);
    ASSERT_EQ(::rename(next.c_str(), file_.c_str()), 0);
  }
  void start(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"--socket", socket_, "--policy", file_, "--mode", "666"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    daemon_.emplace(arguments);
    ASSERT_TRUE(daemon_->ready()) << (daemon_->end(0), daemon_->output);
    // So that other users can reach the directory, which is the test's own.
    ASSERT_EQ(::chmod((directory_ / ".").c_str(), 0755), 0);
  }
  /// Makes lrpcd read the file again. True once lrpcd has printed `text`.
  bool reload(const std::string& text) {
    daemon_->forget();
    daemon_->signal(SIGHUP);
    return daemon_->says(text);
  }
  int check(std::vector<std::string> more, std::string& said) {
    more.insert(more.begin(), {"--check-policy", file_});
    Daemon asked(more, false);
    const int status = asked.end(0);
    said = asked.output;
    return status;
  }

  TemporaryDirectory directory_;
  std::string socket_ = directory_ / "lrpcd.sock";
  std::string file_ = directory_ / "policy.toml";
  std::optional<Daemon> daemon_;
};

std::string rule(const std::string& id, const std::string& what, const std::string& names) {
  return "[[rule]]\nid = \"" + id + "\"\n" + what + "\nnames = \"" + names + "\"\nusers = \"*\"\n";
}

TEST_F(LrpcdPolicy, decides_by_the_file_and_names_the_rule) {
  write(rule("closed", "deny = \"import\"", "db.*") + rule("nobody's", "deny = \"export\"", "sys.*"));
  start();
  EXPECT_TRUE(daemon_->says("policy.toml: 2 rules"));
  TestPeer server(socket_);
  EXPECT_NE(server.export_name("db.main"), 0U);
  server.ask(shim::ExportRequest{"sys.a", kFiles, kClasses, ""});
  EXPECT_EQ(server.next_failure(), Errc::not_permitted);
  EXPECT_NE(server.text.find("'nobody's' at policy.toml:6"), std::string::npos) << server.text;
  TestPeer client(socket_);
  client.import("db.main");
  EXPECT_EQ(client.next_failure(), Errc::not_permitted);
  EXPECT_NE(client.text.find("denied by the rule 'closed' at policy.toml:1"), std::string::npos) << client.text;
  EXPECT_EQ(client.text.find(file_), std::string::npos) << "where the file lies is nobody's business: " << client.text;
  client.import("db.other", shim::ImportRequest::kForever);
  EXPECT_EQ(client.next_failure(), Errc::not_permitted) << "it need not wait for the name to hear that";
  EXPECT_TRUE(server.quiet());
}

TEST_F(LrpcdPolicy, sighup_puts_a_changed_file_into_force_and_bindings_live_on) {
  write("");
  start();
  TestPeer server(socket_);
  server.export_name("db.main");
  TestPeer client(socket_);
  client.import("db.main");
  ASSERT_TRUE(server.answer_bind());
  ASSERT_TRUE(client.next_as<shim::Bound>());
  const UniqueFd bell = std::move(client.fds[2]);
  TestPeer waiting(socket_);
  waiting.import("db.later", shim::ImportRequest::kForever);
  EXPECT_TRUE(waiting.quiet(milliseconds(20)));

  write(rule("closed", "deny = \"import\"", "db.*"));
  ASSERT_TRUE(reload("the new policy is in force"));
  EXPECT_EQ(waiting.next_failure(), Errc::not_permitted);
  client.import("db.main");
  EXPECT_EQ(client.next_failure(), Errc::not_permitted);
  pollfd hung_up{bell.get(), 0, 0};
  EXPECT_EQ(::poll(&hung_up, 1, 0), 0) << "the binding has ended";

  write("");
  ASSERT_TRUE(reload("the new policy is in force"));
  client.import("db.main");
  EXPECT_TRUE(server.answer_bind());
  EXPECT_TRUE(client.next_as<shim::Bound>());
}

TEST_F(LrpcdPolicy, a_file_that_is_not_right_changes_nothing_and_the_log_says_why) {
  write(rule("closed", "deny = \"import\"", "db.*"));
  start();
  TestPeer server(socket_);
  server.export_name("db.main");
  TestPeer client(socket_);
  const auto still_closed = [&] {
    client.import("db.main");
    return client.next_failure() == Errc::not_permitted && client.text.find("'closed'") != std::string::npos;
  };
  write("[[rule]]\ndeny = \"imports\"\nnames = \"a\"\nusers = \"*\"\n");
  EXPECT_TRUE(reload(file_ + ":2:8: deny is \"export\", \"import\" or \"both\""));
  EXPECT_NE(daemon_->output.find("the policy stays as it is"), std::string::npos) << daemon_->output;
  EXPECT_TRUE(still_closed());
  write("", 0666);
  EXPECT_TRUE(reload("chmod go-w"));
  EXPECT_TRUE(still_closed());
  ASSERT_EQ(::unlink(file_.c_str()), 0);
  EXPECT_TRUE(reload("cannot read "));
  EXPECT_TRUE(still_closed());
  write("");
  EXPECT_TRUE(reload("the new policy is in force")) << "and it goes on reading";
}

/// The living or unreaped children of a process; none if the kernel does not list them.
std::vector<pid_t> children_of(pid_t process) {
  const std::string number = std::to_string(process);
  std::ifstream file("/proc/" + number + "/task/" + number + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

/// Whether it has ended: it is gone, or not yet reaped.
bool has_ended(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return true;
  const std::size_t name_end = line.rfind(')');
  return name_end + 2 < line.size() && line[name_end + 2] == 'Z';
}

TEST_F(LrpcdPolicy, its_reader_ends_with_it_whatever_ends_it) {
  write("");
  for (const int signal : {SIGTERM, SIGKILL}) {
    start();
    const std::vector<pid_t> readers = children_of(daemon_->pid());
    EXPECT_LE(readers.size(), 1U);
    EXPECT_EQ(daemon_->end(signal), signal == SIGTERM ? 0 : -SIGKILL) << daemon_->output;
    for (const pid_t reader : readers) EXPECT_TRUE(eventually([&] { return has_ended(reader); }));
    daemon_.reset();
  }
}

TEST_F(LrpcdPolicy, without_its_reader_it_serves_on_by_the_policy_it_has) {
  write(rule("closed", "deny = \"import\"", "db.*"));
  start();
  const std::vector<pid_t> readers = children_of(daemon_->pid());
  if (readers.empty()) GTEST_SKIP() << "this kernel does not tell a process's children";
  ASSERT_EQ(::kill(readers.front(), SIGKILL), 0);
  EXPECT_TRUE(daemon_->says("the process that reads the policy is gone"));
  TestPeer client(socket_);
  client.import("db.main");
  EXPECT_EQ(client.next_failure(), Errc::not_permitted);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(reload("the process that reads the policy is gone")) << "each time";
  EXPECT_TRUE(client.is_served());
  EXPECT_EQ(daemon_->end(SIGTERM), 0);
}

TEST_F(LrpcdPolicy, it_does_not_start_with_a_file_that_is_not_right) {
  write("[[rule]]\n");
  Daemon daemon({"--socket", socket_, "--policy", file_});
  EXPECT_FALSE(daemon.ready());
  EXPECT_EQ(daemon.end(0), 1);
  EXPECT_NE(daemon.output.find(file_ + ":1:1: "), std::string::npos) << daemon.output;
  Daemon missing({"--socket", socket_, "--policy", directory_ / "none.toml"});
  EXPECT_FALSE(missing.ready());
  EXPECT_EQ(missing.end(0), 1);
}

TEST_F(LrpcdPolicy, check_policy_says_what_is_wrong_and_where) {
  std::string said;
  write("[[rule]]\nallow = \"both\"\nnames = \"a/b\"\nusers = \"*\"\n[quota]\n");
  EXPECT_EQ(check({}, said), 1);
  EXPECT_NE(said.find(file_ + ":3:9: no name can match 'a/b'"), std::string::npos) << said;
  EXPECT_NE(said.find(file_ + ":5:2: there is no key 'quota'"), std::string::npos) << said;
  write("", 0622);
  EXPECT_EQ(check({}, said), 1);
  EXPECT_NE(said.find("chmod go-w"), std::string::npos) << said;
}

TEST_F(LrpcdPolicy, check_policy_explains_the_rules_and_single_decisions) {
  std::string said;
  write("[default]\nimport = \"deny\"\n" + rule("open", "allow = \"import\"", "public.*") +
        "[quotas.users.54321]\nnames = 7\n");
  EXPECT_EQ(check({}, said), 0);
  for (const char* line :
       {"line 3: allow import of 'public.*' to everybody  ('open')", "nobody may import (line 2)",
        "root and lrpcd's own user may export (built in)", "imports = 512", "but user 54321: names = 7"})
    EXPECT_NE(said.find(line), std::string::npos) << line << "\n" << said;

  EXPECT_EQ(check({"--as", "54321", "--import", "public.time"}, said), 0);
  EXPECT_NE(said.find("import 'public.time' as 54321"), std::string::npos) << said;
  EXPECT_NE(said.find("allowed\n  by " + file_ + ":3: allow import of 'public.*' to everybody (rule 'open')"),
            std::string::npos)
      << said;
  EXPECT_EQ(check({"--as", "54321", "--import", "public.time", "--export", "public.time"}, said), 2);
  EXPECT_NE(said.find("export 'public.time' as 54321"), std::string::npos) << said;
  EXPECT_NE(said.find("denied\n  by " + file_ + ": no rule matches, and by default root"), std::string::npos) << said;
  EXPECT_EQ(check({"--as", "root", "--export", "a"}, said), 0);
  EXPECT_NE(said.find("as root (0), groups root (0)"), std::string::npos) << said;
  EXPECT_EQ(check({"--as", "54321", "--export", "a"}, said), 2);
  EXPECT_EQ(check({"--as", "54321", "--export", "a", "--daemon-user", "54321"}, said), ::geteuid() == 0 ? 0 : 1)
      << "its own user may export, but would not trust a file of another than root: " << said;
  write("[default]\nexport = \"allow\"\n");
  EXPECT_EQ(check({"--as", "54321", "--export", "a"}, said), 0);
  for (const char* const own : {"lrpc.network", "lrpc.directory", "lrpc.user.echo"}) {
    EXPECT_EQ(check({"--as", "54321", "--export", own}, said), 2) << "whatever the file says";
    EXPECT_NE(said.find("by lrpcd itself"), std::string::npos) << said;
  }
  EXPECT_EQ(check({"--as", "54321", "--export", "lrpc.users"}, said), 0);
  EXPECT_EQ(check({"--as", "54321"}, said), 1) << "nothing is asked about: " << said;
  EXPECT_EQ(check({"--as", "no-such-user-here", "--export", "a"}, said), 1);
  EXPECT_NE(said.find("there is no user 'no-such-user-here'"), std::string::npos) << said;
}

/// Tests with users other than the daemon's: only root can run them.
class LrpcdPolicyOfOthers : public LrpcdPolicy {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can start a process of another user";
  }
  /// Runs `action` in a process of that user with these groups. Returns its value.
  template <class Action>
  int as(uid_t user, const std::vector<gid_t>& groups, Action action) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setgroups(groups.size(), groups.data()) != 0 || ::setresgid(user, user, user) != 0 ||
          ::setresuid(user, user, user) != 0)
        ::_exit(255);
      ::_exit(action());
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  /// The error that a user gets who imports a name that nobody exports; export_as() exports one.
  int import_as(uid_t user, const std::vector<gid_t>& groups, const std::string& name) {
    return as(user, groups, [&] {
      TestPeer client(socket_);
      client.import(name);
      return static_cast<int>(client.next_failure());
    });
  }
  int export_as(uid_t user, const std::vector<gid_t>& groups, const std::string& name) {
    return as(user, groups, [&] {
      TestPeer server(socket_);
      server.ask(shim::ExportRequest{name, kFiles, kClasses, ""});
      const auto answer = server.next();
      const auto* failed = answer ? std::get_if<shim::Failed>(&answer->body) : nullptr;
      return static_cast<int>(failed != nullptr ? failed->code : Errc::ok);
    });
  }
};

constexpr int kAllowed = static_cast<int>(Errc::name_unknown);  // allowed: then the name is looked up
constexpr int kDenied = static_cast<int>(Errc::not_permitted);

TEST_F(LrpcdPolicyOfOthers, users_and_groups_are_the_kernels_word) {
  write(R"([default]
import = "deny"
[[rule]]
deny = "both"
names = "*"
groups = 54324
[[rule]]
allow = "both"
names = "app.*"
users = 54321
groups = 54323
)");
  start();
  EXPECT_EQ(import_as(kUser, {}, "app.a"), kAllowed);
  EXPECT_EQ(import_as(kOtherUser, {}, "app.a"), kDenied);
  EXPECT_EQ(import_as(kOtherUser, {kGroup}, "app.a"), kAllowed) << "by a supplementary group";
  EXPECT_EQ(import_as(kGroup, {}, "app.a"), kAllowed) << "by the primary group";
  EXPECT_EQ(import_as(kUser, {kGroup + 1}, "app.a"), kDenied) << "the first rule counts";
  std::vector<gid_t> many;
  for (gid_t group = 60'000; group < 60'100; ++group) many.push_back(group);
  many.push_back(kGroup);
  EXPECT_EQ(import_as(kOtherUser, many, "app.a"), kAllowed) << "one of many groups";
  EXPECT_EQ(import_as(kUser, {}, "other"), kDenied);
  EXPECT_EQ(export_as(kUser, {}, "app.b"), 0);
  EXPECT_EQ(export_as(kOtherUser, {}, "app.b"), kDenied);
}

TEST_F(LrpcdPolicyOfOthers, nobody_else_becomes_the_network_domain_whatever_the_policy_says) {
  write("[[rule]]\nallow = \"both\"\nnames = \"*\"\nusers = \"*\"\n");
  start();
  EXPECT_EQ(export_as(kUser, {}, "a"), 0);
  EXPECT_EQ(export_as(kUser, {}, "lrpc.network"), kDenied);
}

TEST_F(LrpcdPolicyOfOthers, a_quota_stops_one_user_while_another_goes_on) {
  write(R"([default]
export = "allow"
[quotas]
names = 3
imports = 2
connections = 4
[quotas.users.54322]
names = 5
)");
  start();
  // One user takes all that it may have, and keeps it.
  TestPeer own(socket_);
  for (int i = 0; i < 3; ++i) EXPECT_NE(own.export_name("own" + std::to_string(i)), 0U);
  own.ask(shim::ExportRequest{"own3", kFiles, kClasses, ""});
  EXPECT_EQ(own.next_failure(), Errc::limit_reached);
  EXPECT_NE(own.text.find("its quota is 3 (names)"), std::string::npos) << own.text;
  for (int i = 0; i < 2; ++i) own.import("later", shim::ImportRequest::kForever);
  own.import("later", shim::ImportRequest::kForever);
  EXPECT_EQ(own.next_failure(), Errc::limit_reached);
  // Another user is not affected, and has its own quota.
  EXPECT_EQ(as(kOtherUser, {},
               [&] {
                 TestPeer server(socket_);
                 int exported = 0;
                 for (; exported < 9; ++exported) {
                   server.ask(shim::ExportRequest{"other" + std::to_string(exported), kFiles, kClasses, ""});
                   const auto answer = server.next();
                   if (!answer || !std::holds_alternative<shim::Exported>(answer->body)) break;
                 }
                 TestPeer client(socket_);
                 client.import("own0");
                 return client.quiet(milliseconds(10)) ? exported : 100;  // the clerk is being asked
               }),
            5);
  // A reload with SIGHUP raises the quota.
  write("[default]\nexport = \"allow\"\n[quotas]\nnames = 4\n");
  ASSERT_TRUE(reload("the new policy is in force"));
  own.ask(shim::ExportRequest{"own3", kFiles, kClasses, ""});
  // The bind request for own0 may come first.
  auto answer = own.next();
  if (answer && std::holds_alternative<shim::BindRequest>(answer->body)) answer = own.next();
  ASSERT_TRUE(answer);
  EXPECT_TRUE(std::holds_alternative<shim::Exported>(answer->body));
}

/// The exit status of an lrpcd that may have so much address space; minus the signal if one ended it.
int end_within(rlim_t mebibytes, std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "lrpcd");
  arguments.push_back(nullptr);
  const pid_t daemon = ::fork();
  if (daemon == 0) {
    const rlimit space{mebibytes << 20, mebibytes << 20};
    const rlimit no_core{0, 0};
    ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), 1);
    ::dup2(1, 2);
    if (::setrlimit(RLIMIT_CORE, &no_core) == 0 && ::setrlimit(RLIMIT_AS, &space) == 0)
      ::execv(LRPCD_PATH, const_cast<char* const*>(arguments.data()));
    ::_exit(126);
  }
  int status = 0;
  ::waitpid(daemon, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_F(LrpcdPolicy, whose_answers_find_no_memory_ends_lrpcd_with_an_error) {
  if (testing_lrpc::kSanitized) GTEST_SKIP() << "a sanitizer takes all address space";
  write(rule("all", "allow = \"import\"", "*"));
  rlim_t least = 4;
  while (least < 256 && end_within(least, {"--version"}) != 0) ++least;
  for (rlim_t more = 1; more < 5; ++more)  // those answers want 8 MiB
    EXPECT_EQ(end_within(least + more, {"--socket", "/proc/none/lrpcd.sock", "--policy", file_.c_str()}), 1) << more;
}

}  // namespace
}  // namespace lrpc::nameserver::test
