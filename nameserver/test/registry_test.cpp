// Names: export, withdraw, list, describe, and their end with their process.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_peer.h"

namespace lrpc::nameserver::test {
namespace {

using Registry = WithNameserver;
LRPC_ON_BOTH_BACKENDS(Registry);

std::vector<std::string> names_seen_by(TestPeer& peer) {
  std::vector<std::string> names;
  shim::ListRequest request;
  for (;;) {
    peer.ask(request);
    const auto page = peer.next_as<shim::Listed>();
    if (!page) return names;
    for (const auto& listed : page->names) names.push_back(listed.name);
    if (!page->more) return names;
    request.after = names.back();
  }
}

TEST_P(Registry, an_exported_name_is_listed_and_described) {
  START_NAMESERVER();
  TestPeer server(path());
  EXPECT_NE(server.export_name("files"), 0U);
  TestPeer client(path());
  client.ask(shim::ListRequest{});
  const auto listed = client.next_as<shim::Listed>();
  ASSERT_TRUE(listed && listed->names.size() == 1);
  EXPECT_EQ(listed->names[0].name, "files");
  EXPECT_EQ(listed->names[0].interface.name, "Files");
  EXPECT_EQ(listed->names[0].interface.hash, kFiles.hash);
  EXPECT_EQ(listed->names[0].server.pid, ::getpid());
  EXPECT_FALSE(listed->more);

  const auto request = client.ask(shim::DescribeRequest{"files"});
  const auto described = client.next_as<shim::Described>();
  ASSERT_TRUE(described);
  EXPECT_EQ(client.last_answer, request);
  EXPECT_EQ(described->text, "interface Files");
  client.ask(shim::DescribeRequest{"other"});
  EXPECT_EQ(client.next_failure(), Errc::name_unknown);
}

TEST_P(Registry, a_taken_name_says_who_holds_it) {
  START_NAMESERVER();
  TestPeer holder(path());
  holder.export_name("files");
  TestPeer other(path());
  for (TestPeer* peer : {&other, &holder}) {
    peer->ask(shim::ExportRequest{"files", kFiles, kClasses, ""});
    EXPECT_EQ(peer->next_failure(), Errc::name_taken);
    EXPECT_NE(peer->text.find("process " + std::to_string(::getpid())), std::string::npos) << peer->text;
  }
}

TEST_P(Registry, a_withdrawn_name_is_free_again) {
  START_NAMESERVER();
  TestPeer first(path());
  TestPeer second(path());
  const auto id = first.export_name("files");
  second.ask(shim::WithdrawRequest{id});  // belongs to the first peer
  EXPECT_EQ(second.next_failure(), Errc::invalid_argument);
  first.ask(shim::WithdrawRequest{id});
  EXPECT_TRUE(first.next_as<shim::Withdrawn>());
  EXPECT_NE(second.export_name("files"), 0U);
  first.ask(shim::WithdrawRequest{id});
  EXPECT_EQ(first.next_failure(), Errc::invalid_argument);
}

TEST_P(Registry, a_server_that_restarts_gets_its_name_back_at_once) {
  START_NAMESERVER();
  for (int i = 0; i < 20; ++i) {
    TestPeer server(path());
    EXPECT_NE(server.export_name("files"), 0U);
  }
}

TEST_P(Registry, a_name_vanishes_when_its_process_is_killed) {
  START_NAMESERVER();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    TestPeer server(path());
    const bool exported = server.export_name("files") != 0;
    if (exported && ::write(ready[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  ::close(ready[1]);
  TestPeer client(path());
  EXPECT_EQ(names_seen_by(client), std::vector<std::string>{"files"});
  ::kill(child, SIGKILL);
  EXPECT_TRUE(eventually([&] { return names_seen_by(client).empty(); }));
  ::waitpid(child, nullptr, 0);
}

/// A process that exports "files", and its forked child, which holds the socket as well.
struct ServerWithChild {
  pid_t server = -1;
  pid_t child = -1;  ///< -1: it could not be made.
};
ServerWithChild server_with_child(const std::string& nameserver) {
  ServerWithChild made;
  int told[2];
  if (::pipe(told) != 0) return made;
  made.server = ::fork();
  if (made.server == 0) {
    TestPeer server(nameserver);
    if (server.export_name("files") == 0) ::_exit(1);
    const pid_t child = ::fork();
    if (child == 0 || ::write(told[1], &child, sizeof child) == sizeof child) ::pause();
    ::_exit(1);
  }
  ::close(told[1]);
  if (::read(told[0], &made.child, sizeof made.child) != sizeof made.child) made.child = -1;
  ::close(told[0]);
  return made;
}

TEST_P(Registry, a_name_vanishes_with_its_process_although_a_forked_child_holds_the_socket) {
  START_NAMESERVER();
  const ServerWithChild made = server_with_child(path());
  ASSERT_GT(made.child, 0);
  ::kill(made.server, SIGKILL);
  TestPeer client(path());
  EXPECT_TRUE(eventually([&] { return names_seen_by(client).empty(); }));
  ::kill(made.child, SIGKILL);
  ::waitpid(made.server, nullptr, 0);
}

/// At the second export, ends the process that made the first.
class EndsTheFirst final : public Policy {
 public:
  Status may_export(const Peer& server, std::string_view) override {
    if (first_ != 0) {
      ::kill(first_, SIGKILL);
      ::waitpid(first_, nullptr, 0);
    }
    first_ = server.pid;
    return {};
  }
  Status may_import(const Peer&, std::string_view, const lrpc::shim::Credentials*) override { return {}; }

 private:
  pid_t first_ = 0;
};

TEST_P(Registry, a_server_gets_the_name_of_a_dead_process_at_once_although_a_forked_child_holds_the_socket) {
  options_.policy = std::make_shared<EndsTheFirst>();
  START_NAMESERVER();
  const ServerWithChild made = server_with_child(path());
  ASSERT_GT(made.child, 0);
  TestPeer server(path());
  EXPECT_NE(server.export_name("files"), 0U);
  ::kill(made.child, SIGKILL);
}

TEST_P(Registry, more_names_than_fit_one_message_are_listed_in_pages) {
  options_.limits.max_exports_per_connection = 1000;
  START_NAMESERVER();
  TestPeer server(path());
  std::vector<std::string> names;
  for (int i = 1000; i < 1600; ++i) {
    names.push_back(std::to_string(i) + std::string(240, 'n'));
    ASSERT_NE(server.export_name(names.back()), 0U);
  }
  TestPeer client(path());
  EXPECT_EQ(names_seen_by(client), names);
}

TEST_P(Registry, exports_that_make_no_sense_are_refused) {
  options_.limits.max_region_bytes = 1U << 20;
  START_NAMESERVER();
  TestPeer server(path());
  for (const char* name : {"", "a@b", "a/b"}) {
    server.ask(shim::ExportRequest{name, kFiles, kClasses, ""});
    EXPECT_EQ(server.next_failure(), Errc::invalid_argument) << name;
  }
  server.ask(shim::ExportRequest{"a", kFiles, kClasses, "interface Files version 1.0 {\x1b[2J}"});
  EXPECT_EQ(server.next_failure(), Errc::invalid_argument) << "it would be shown on a terminal";
  server.ask(shim::ExportRequest{"a", {"", 1, 0, 0}, kClasses, ""});
  EXPECT_EQ(server.next_failure(), Errc::invalid_argument);
  server.ask(shim::ExportRequest{"a", kFiles, {{limits::kMaxImageSize + 1, 0, 1}}, ""});
  EXPECT_TRUE(server.next_failure() != Errc::ok);
  server.ask(shim::ExportRequest{"a", kFiles, {{64, 1U << 20, 8}}, ""});
  EXPECT_EQ(server.next_failure(), Errc::limit_reached);
  EXPECT_NE(server.text.find("1048576"), std::string::npos) << server.text;
  EXPECT_NE(server.export_name("a"), 0U);
}

TEST_P(Registry, one_connection_cannot_export_without_end) {
  options_.limits.max_exports_per_connection = 3;
  options_.limits.max_export_bytes_per_connection = 1000;
  START_NAMESERVER();
  TestPeer server(path());
  server.ask(shim::ExportRequest{"big", kFiles, kClasses, std::string(1001, 't')});
  EXPECT_EQ(server.next_failure(), Errc::limit_reached);
  for (const char* name : {"a", "b", "c"}) server.export_name(name);
  server.ask(shim::ExportRequest{"d", kFiles, kClasses, ""});
  EXPECT_EQ(server.next_failure(), Errc::limit_reached);
}

/// Denies the names that the test chooses.
class TestPolicy final : public Policy {
 public:
  Status may_export(const Peer&, std::string_view name) override {
    return name == "forbidden" ? Status(Error{Errc::not_permitted, "no such export here"}) : Status();
  }
  Status may_import(const Peer&, std::string_view name, const lrpc::shim::Credentials*) override {
    return name == "closed" ? Status(Error{Errc::not_permitted, "closed to you"}) : Status();
  }
};

TEST_P(Registry, the_policy_is_asked_about_exports_and_imports) {
  options_.policy = std::make_shared<TestPolicy>();
  START_NAMESERVER();
  TestPeer server(path());
  server.ask(shim::ExportRequest{"forbidden", kFiles, kClasses, ""});
  EXPECT_EQ(server.next_failure(), Errc::not_permitted);
  EXPECT_EQ(server.text, "no such export here");
  server.export_name("closed");
  TestPeer client(path());
  client.import("closed");
  EXPECT_EQ(client.next_failure(), Errc::not_permitted);
  EXPECT_EQ(client.text, "closed to you");
  EXPECT_TRUE(server.quiet());
}

TEST(DefaultPolicy, only_root_and_the_own_user_export_unless_anyone_may) {
  auto own = default_policy();
  auto anyone = default_policy(ExportRule::anyone);
  const Peer self{{1, ::geteuid(), 0}};
  const Peer root{{1, 0, 0}};
  const Peer stranger{{1, 12345, 12345}};
  EXPECT_TRUE(own->may_export(self, "a"));
  EXPECT_TRUE(own->may_export(root, "a"));
  const auto refused = own->may_export(stranger, "a");
  EXPECT_EQ(refused.code(), Errc::not_permitted);
  const std::string whom = self.uid == 0 ? "root only" : "root and from user " + std::to_string(self.uid) + " only";
  EXPECT_NE(refused.error().text.find("takes names from " + whom), std::string::npos) << refused.error().text;
  EXPECT_TRUE(anyone->may_export(stranger, "a"));
  EXPECT_TRUE(own->may_import(stranger, "a", &self));
}

}  // namespace
}  // namespace lrpc::nameserver::test
