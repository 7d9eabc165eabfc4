// Binding: names, waiting, mismatches, refusals, several servers and clients, private sockets (LRPC §3.1).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "conformance_service.h"
#include "eventually.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using namespace std::chrono_literals;

TEST(Binding, import_finds_an_exported_name_and_calls_it) {
  World world;
  const Process server = world.start_server({"arith"});
  auto client = world.import("arith");
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(client->Add(2, 3).value(), 5);
  EXPECT_EQ(client->binding().server().pid, server.pid());
}

TEST(Binding, import_waits_until_the_name_appears) {
  World world;
  std::optional<lrpc::Result<Conformance::Client>> client;
  std::thread importer([&] { client.emplace(world.import("late", {.timeout = kPatience})); });
  std::this_thread::sleep_for(50ms);
  const Process server = world.start_server({"late"});
  importer.join();
  ASSERT_TRUE(*client) << client->error().message();
  EXPECT_TRUE((*client)->Null());
}

TEST(Binding, import_of_an_unknown_name_says_so_after_its_timeout) {
  World world;
  const auto began = std::chrono::steady_clock::now();
  auto client = world.import("nobody", {.timeout = 100ms});
  EXPECT_EQ(client.code(), Errc::name_unknown);
  EXPECT_NE(client.error().message().find("nobody"), std::string::npos);
  EXPECT_GE(std::chrono::steady_clock::now() - began, 100ms);
}

TEST(Binding, import_without_a_nameserver_says_what_was_tried_and_how_to_start_one) {
  auto client = Conformance::Client::import("x", {.nameserver = "/nonexistent/lrpcd.sock"});
  ASSERT_EQ(client.code(), Errc::no_nameserver);
  EXPECT_NE(client.error().message().find("/nonexistent/lrpcd.sock"), std::string::npos);
  EXPECT_NE(client.error().message().find("lrpcd"), std::string::npos);
}

TEST(Binding, a_name_that_is_none_is_refused_by_the_library) {
  lrpc::Server server({.nameserver = "/nonexistent/lrpcd.sock"});
  ConformanceService service(&server);
  for (const std::string name : {"", "a b", "a/b", "a\n"}) {
    const auto client = Conformance::Client::import(name, {.nameserver = "/nonexistent/lrpcd.sock"});
    EXPECT_EQ(client.code(), Errc::invalid_argument) << name;
    EXPECT_EQ(Conformance::export_to(server, name, service).code(), Errc::invalid_argument) << name;
  }
}

TEST(Binding, an_export_that_makes_no_sense_is_refused) {
  lrpc::Server server({.nameserver = "/nonexistent/lrpcd.sock"});
  int implementation = 0;
  const std::vector<lrpc::EntryStub> stubs(Conformance::kPdl.procedures.size(), nullptr);
  EXPECT_EQ(server.export_interface("x", Conformance::kPdl, stubs, nullptr).code(), Errc::invalid_argument);
  EXPECT_EQ(server.export_interface("x", Conformance::kPdl, std::span(stubs).first(1), &implementation).code(),
            Errc::invalid_argument);
}

TEST(Binding, import_of_a_remote_name_without_a_network_path_is_a_clear_error) {
  World world;
  EXPECT_EQ(world.import("files@elsewhere").code(), Errc::remote_unavailable);
}

TEST(Binding, import_reports_interface_version_and_hash_mismatches_apart) {
  World world;
  const Process server = world.start_server({"arith"});
  const auto import = [&](const lrpc::Pdl& pdl) {
    return lrpc::Binding::import("arith", pdl, {.nameserver = world.nameserver()});
  };
  lrpc::Pdl pdl = Conformance::kPdl;
  pdl.interface.name = "Otherwise";
  EXPECT_EQ(import(pdl).code(), Errc::interface_mismatch);
  pdl = Conformance::kPdl;
  pdl.interface.major = 3;
  EXPECT_EQ(import(pdl).code(), Errc::version_mismatch);
  pdl = Conformance::kPdl;
  pdl.interface.hash ^= 1;
  const auto mismatch = import(pdl);
  EXPECT_EQ(mismatch.code(), Errc::hash_mismatch);
  EXPECT_FALSE(mismatch.error().text.empty());
  EXPECT_TRUE(world.import("arith")) << "a mismatch harms nobody else";
}

TEST(Binding, the_clerk_may_refuse_and_its_reason_reaches_the_client) {
  World world;
  const Process server = world.start_server({"closed"}, {"--refuse"});
  auto client = world.import("closed");
  ASSERT_EQ(client.code(), Errc::not_permitted);
  EXPECT_NE(client.error().message().find("not today"), std::string::npos);
}

/// A nameserver, and a server in this process.
struct LocalWorld : World {
  lrpc::Server server{{.nameserver = nameserver()}};
  ConformanceService service{&server};
};

/// An `authorise` hook: records the client that asks, and answers as set. Runs on the clerk's thread.
class Clerk {
 public:
  [[nodiscard]] lrpc::ExportOptions options() {
    lrpc::ExportOptions made;
    made.authorise = [this](const lrpc::ClientCredentials& client) -> lrpc::Status {
      const std::lock_guard lock(mutex_);
      heard_ = client;
      return answer_;
    };
    return made;
  }
  /// Sets the answer from now on, and forgets the recorded client.
  void answer(const lrpc::Status& status) {
    const std::lock_guard lock(mutex_);
    answer_ = status;
    heard_ = {};
  }
  /// The client that asked last.
  lrpc::ClientCredentials heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  void expect_groups(lrpc::GroupsKnown known, const std::vector<gid_t>& groups, const char* why = "") {
    EXPECT_EQ(heard().groups_known, known) << why;
    EXPECT_EQ(heard().groups, groups);
  }

 private:
  std::mutex mutex_;
  lrpc::Status answer_;
  lrpc::ClientCredentials heard_;
};

TEST(Binding, the_clerk_may_refuse_for_want_of_something) {
  LocalWorld world;
  Clerk clerk;
  clerk.answer(lrpc::Error{Errc::limit_reached, "come again later"});
  ASSERT_TRUE(Conformance::export_to(world.server, "busy", world.service, clerk.options()));
  const auto refused = world.import("busy");
  EXPECT_EQ(refused.code(), Errc::limit_reached);
  EXPECT_NE(refused.error().text.find("come again later"), std::string::npos) << refused.error().text;
}

TEST(Binding, the_clerk_decides_by_who_calls) {
  LocalWorld world;
  Clerk clerk;
  const std::string rule = "the rule 'no users " + std::to_string(::geteuid()) + "' at clerk.toml:7";
  clerk.answer(lrpc::Error{Errc::not_permitted, rule});
  ASSERT_TRUE(Conformance::export_to(world.server, "choosy", world.service, clerk.options()));
  const auto expect_heard = [&] {
    EXPECT_EQ(clerk.heard().pid, ::getpid());
    EXPECT_EQ(clerk.heard().uid, ::geteuid());
    EXPECT_EQ(clerk.heard().gid, ::getegid());
  };

  const auto refused = world.import("choosy");
  ASSERT_EQ(refused.code(), Errc::not_permitted);
  EXPECT_NE(refused.error().message().find(rule), std::string::npos) << refused.error().message();
  expect_heard();
  EXPECT_EQ(world.server.statistics().bindings, 0U);
  clerk.answer({});
  auto client = world.import("choosy");
  ASSERT_TRUE(client) << client.error().message();
  expect_heard();
  EXPECT_EQ(client->Add(2, 3).value(), 5);
}

/// Runs `act` on a thread with those supplementary groups, which the kernel keeps per thread. False: not permitted.
bool with_groups(const std::vector<gid_t>& groups, const std::function<void()>& act) {
  bool may = false;
  std::thread([&] {
    may = ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
    if (may) act();
  }).join();
  return may;
}

std::vector<gid_t> groups_from(gid_t first, gid_t count) {
  std::vector<gid_t> groups(count);
  for (gid_t i = 0; i < count; ++i) groups[i] = first + i;
  return groups;
}

TEST(Binding, the_clerk_knows_the_groups_of_who_calls) {
  using lrpc::shim::GroupsKnown;
  LocalWorld world;
  Clerk clerk;
  ASSERT_TRUE(Conformance::export_to(world.server, "choosy", world.service, clerk.options()));
  const auto import = [&] { EXPECT_TRUE(world.import("choosy")); };
  if (!with_groups({}, import)) GTEST_SKIP() << "needs CAP_SETGID";
  clerk.expect_groups(GroupsKnown::all, {});

  ASSERT_TRUE(with_groups({54'323, 54'324}, import));
  clerk.expect_groups(GroupsKnown::all, {54'323, 54'324});
  EXPECT_TRUE(clerk.heard().is_member_of(54'324));
  EXPECT_FALSE(clerk.heard().is_member_of(54'325));

  ASSERT_TRUE(with_groups(groups_from(60'000, 64), import));
  clerk.expect_groups(GroupsKnown::all, groups_from(60'000, 64));
  ASSERT_TRUE(with_groups(groups_from(60'000, 5'000), import));
  clerk.expect_groups(GroupsKnown::first, groups_from(60'000, 64), "more than are carried");
}

/// A request to import Conformance, as a client sends it.
std::vector<std::byte> import_request() {
  const auto& wanted = Conformance::kPdl.interface;
  const lrpc::shim::OwnedInterfaceId interface { std::string(wanted.name), wanted.major, wanted.minor, wanted.hash };
  return lrpc::shim::encode({1, lrpc::shim::ImportRequest{"", interface}, {}, {}}).value();
}

TEST(Binding, a_private_clients_groups_are_known_if_it_made_the_pair_itself) {
  using lrpc::shim::GroupsKnown;
  lrpc::Server server;
  ConformanceService service(&server);
  Clerk clerk;
  const auto make_pair = [&] {
    auto ends = lrpc::shim::make_socket_pair();
    EXPECT_TRUE(ends);
    EXPECT_TRUE(Conformance::serve_over(server, std::move(ends->first), service, clerk.options()));
    return std::move(ends->second);
  };
  const auto import = [&] { EXPECT_TRUE(Conformance::Client::import_over(make_pair())); };
  if (!with_groups({54'323, 54'324}, import)) GTEST_SKIP() << "needs CAP_SETGID";
  clerk.expect_groups(GroupsKnown::all, {54'323, 54'324});

  // The pair was made by another process, which has groups that the client does not have.
  auto end = make_pair();
  const auto bytes = import_request();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::send(end.get(), bytes.data(), bytes.size(), 0) > 0 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  auto answer = lrpc::shim::receive_message(end.get(), kPatience);
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ(clerk.heard().pid, child);
  clerk.expect_groups(GroupsKnown::none, {});
}

/// Two processes of a PID namespace other than the server's have the same number there: 0.
TEST(Binding, a_private_client_of_another_process_namespace_is_not_taken_for_who_made_the_pair) {
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends);
  const int on = 1;  // as the library does: then the message has credentials even if it comes before it is served
  ASSERT_EQ(::setsockopt(ends->second.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
  int told[2];
  ASSERT_EQ(::pipe2(told, O_CLOEXEC), 0);
  const auto request = import_request();
  const pid_t server = ::fork();
  if (server == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(77);
    const pid_t first = ::fork();  // first process of the namespace
    if (first == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      lrpc::Server serving;
      ConformanceService service(&serving);
      lrpc::ExportOptions options;
      options.authorise = [&](const lrpc::ClientCredentials& client) -> lrpc::Status {
        const char heard[2] = {static_cast<char>(client.pid), static_cast<char>(client.groups_known)};
        return ::write(told[1], heard, sizeof heard) == sizeof heard ? lrpc::Status() : Errc::not_permitted;
      };
      if (!Conformance::serve_over(serving, std::move(ends->first), service, options)) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(told[1]);
    ::waitpid(first, nullptr, 0);
    ::_exit(1);
  }
  ::close(told[1]);
  ends->first.reset();
  const pid_t client = ::fork();  // another process than the one that made the pair
  if (client == 0) ::_exit(::send(ends->second.get(), request.data(), request.size(), 0) > 0 ? 0 : 1);
  char heard[2] = {};
  const ssize_t size = ::read(told[0], heard, sizeof heard);
  ::close(told[0]);
  ::kill(server, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(client, &status, 0), client);
  ASSERT_EQ(::waitpid(server, &status, 0), server);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs CAP_SYS_ADMIN";
  ASSERT_EQ(size, 2);
  EXPECT_EQ(heard[0], 0) << "the kernel has no number for it there";
  EXPECT_EQ(heard[1], static_cast<char>(lrpc::GroupsKnown::none));
}

TEST(Binding, a_name_can_be_exported_once_and_again_after_its_server_is_gone) {
  World world;
  Process first = world.start_server({"single"});
  EXPECT_THROW((void)world.start_server({"single"}), std::runtime_error);
  first.kill_and_wait();
  EXPECT_TRUE(eventually([&] { return world.import("single").code() == Errc::name_unknown; }));
  const Process second = world.start_server({"single"});
  auto client = world.import("single", {.timeout = kPatience});
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(client->binding().server().pid, second.pid());
}

TEST(Binding, several_names_per_server_several_servers_and_clients_live_side_by_side) {
  World world;
  const Process one = world.start_server({"a", "b"});
  const Process two = world.start_server({"c"});
  std::vector<Conformance::Client> clients;
  for (const char* name : {"a", "b", "c", "a", "c"}) {
    auto client = world.import(name);
    ASSERT_TRUE(client) << client.error().message();
    clients.push_back(*std::move(client));
  }
  for (int i = 0; i < 100; ++i) {
    for (auto& client : clients) ASSERT_EQ(client.Add(i, 1).value(), i + 1);
  }
}

TEST(Binding, a_withdrawn_name_is_unknown_while_its_bindings_live_on) {
  LocalWorld world;
  auto id = Conformance::export_to(world.server, "brief", world.service);
  ASSERT_TRUE(id) << id.error().message();
  auto client = world.import("brief");
  ASSERT_TRUE(client) << client.error().message();
  ASSERT_TRUE(world.server.withdraw(*id));
  EXPECT_EQ(world.import("brief").code(), Errc::name_unknown);
  EXPECT_EQ(client->Add(1, 1).value(), 2);
}

TEST(Binding, bindings_outlive_the_nameserver) {
  World world;
  const Process server = world.start_server({"arith"});
  auto client = world.import("arith");
  ASSERT_TRUE(client);
  world.stop_nameserver();
  EXPECT_EQ(client->Add(20, 22).value(), 42);
}

TEST(Binding, a_private_binding_needs_no_nameserver_at_all) {
  PrivateServer server = start_private_server();
  auto client = Conformance::Client::import_over(std::move(server.socket));
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(client->Add(1, 2).value(), 3);
  EXPECT_EQ(client->binding().server().pid, server.process.pid());
  EXPECT_EQ(client->Caller().value().pid, getpid());
}

TEST(Binding, a_region_cannot_be_opened_again_through_proc) {
  World world;
  const Process server = world.start_server({"arith"});
  auto client = world.import("arith");
  ASSERT_TRUE(client && client->Null());
  const auto has_region = [](pid_t pid) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd"))
      if (std::filesystem::read_symlink(entry.path(), ignored).string().find("lrpc-region") != std::string::npos)
        return true;
    return false;
  };
  EXPECT_FALSE(has_region(server.pid()));
  EXPECT_TRUE(eventually([&] { return !has_region(getpid()); })) << "lrpcd is here, and closes its own after the reply";
}

TEST(Binding, destroying_a_binding_ends_it_at_the_server_and_runs_its_handles_down) {
  World world;
  const Process server = world.start_server({"arith"});
  auto watcher = world.import("arith");
  ASSERT_TRUE(watcher) << watcher.error().message();
  {
    auto client = world.import("arith");
    ASSERT_TRUE(client) << client.error().message();
    ASSERT_TRUE(client->Open(1));
    EXPECT_EQ(watcher->LiveObjects().value(), 1U);
    EXPECT_EQ(watcher->Statistics().value().bindings, 2U);
  }
  // The server first forgets the binding, then runs down its handles.
  EXPECT_TRUE(eventually([&] { return watcher->LiveObjects().value() == 0; }));
  EXPECT_EQ(watcher->Statistics().value().bindings, 1U);
}

}  // namespace
}  // namespace testing_lrpc
