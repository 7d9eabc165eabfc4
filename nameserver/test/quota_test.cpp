// How much of a nameserver one user may hold over all its connections, and changes of the policy in force.
#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "soft_limit.h"
#include "test_peer.h"

namespace lrpc::nameserver::test {
namespace {

using Quotas = WithNameserver;
LRPC_ON_BOTH_BACKENDS(Quotas);

TEST_P(Quotas, names_are_counted_over_all_connections_of_a_user_and_come_back) {
  options_.limits.user.names = 2;
  START_NAMESERVER();
  TestPeer one(path());
  TestPeer other(path());
  const auto first = one.export_name("a");
  other.export_name("b");
  one.ask(shim::ExportRequest{"c", kFiles, kClasses, ""});
  EXPECT_EQ(one.next_failure(), Errc::limit_reached);
  EXPECT_NE(one.text.find("has 2 names exported; its quota is 2 (names)"), std::string::npos) << one.text;
  EXPECT_NE(one.text.find("user " + std::to_string(::getuid())), std::string::npos) << one.text;
  one.ask(shim::WithdrawRequest{first});
  EXPECT_TRUE(one.next_as<shim::Withdrawn>());
  EXPECT_NE(one.export_name("c"), 0U);
  other.hang_up();
  EXPECT_TRUE(eventually([&] {
    one.ask(shim::ExportRequest{"d", kFiles, kClasses, ""});
    const auto answer = one.next();
    return answer && std::holds_alternative<shim::Exported>(answer->body);
  }));
}

TEST_P(Quotas, a_restarted_server_gets_its_name_before_its_hang_up_is_handled_although_its_user_has_no_other) {
  options_.limits.user.names = 2;
  HeldUp held(options_);
  START_NAMESERVER();
  TestPeer first(path());
  first.export_name("a");
  TestPeer second(path());
  ASSERT_TRUE(second.is_served());
  TestPeer other(path());
  held.hold(other);
  second.ask(shim::ExportRequest{"a", kFiles, kClasses, ""});
  first.hang_up();
  held.let_go();
  EXPECT_TRUE(second.next_as<shim::Exported>());
}

/// Bytes that malloc(3) has given out. Not counted under AddressSanitizer and ThreadSanitizer.
std::size_t bytes_in_use() {
  const auto counted = ::mallinfo2();
  return counted.uordblks + counted.hblkhd;
}

TEST_P(Quotas, groups_of_clients_that_have_many_are_not_kept_for_each_connection) {
  START_NAMESERVER();
  constexpr std::size_t kConnections = 64;
  std::vector<gid_t> groups(65'536);
  std::iota(groups.begin(), groups.end(), 1);
  bool may = false;
  std::size_t taken = 0;
  std::thread([&] {  // the kernel keeps groups per thread
    may = ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
    if (!may) return;
    const std::size_t before = bytes_in_use();
    std::vector<TestPeer> clients;
    clients.reserve(kConnections);
    for (std::size_t i = 0; i < kConnections; ++i) {
      clients.emplace_back(path()).import("nobody's");
      EXPECT_EQ(clients.back().next_failure(), Errc::name_unknown);
    }
    taken = bytes_in_use() - before;
  })
      .join();
  if (!may) GTEST_SKIP() << "needs CAP_SETGID";
  EXPECT_LT(static_cast<std::ptrdiff_t>(taken), static_cast<std::ptrdiff_t>(kConnections * 32 * 1024));
}

TEST_P(Quotas, bytes_of_declarations_are_counted_over_all_connections_of_a_user) {
  options_.limits.user.declaration_bytes = 1000;
  START_NAMESERVER();
  TestPeer one(path());
  TestPeer other(path());
  one.ask(shim::ExportRequest{"a", kFiles, kClasses, std::string(600, 't'), std::string(100, 'd')});
  EXPECT_TRUE(one.next_as<shim::Exported>());
  other.ask(shim::ExportRequest{"b", kFiles, kClasses, std::string(301, 't')});
  EXPECT_EQ(other.next_failure(), Errc::limit_reached);
  EXPECT_NE(other.text.find("(declaration_bytes)"), std::string::npos) << other.text;
  other.ask(shim::ExportRequest{"b", kFiles, kClasses, std::string(300, 't')});
  EXPECT_TRUE(other.next_as<shim::Exported>());
}

TEST_P(Quotas, imports_that_wait_are_counted_over_all_connections_of_a_user_and_come_back) {
  options_.limits.user.imports = 3;
  START_NAMESERVER();
  TestPeer one(path());
  TestPeer other(path());
  one.import("later", kWaits);
  one.import("later", kWaits);
  EXPECT_TRUE(one.quiet(milliseconds(20)));
  other.import("later", kWaits);
  EXPECT_TRUE(other.quiet(milliseconds(20)));
  other.import("later", kWaits);
  EXPECT_EQ(other.next_failure(), Errc::limit_reached);
  EXPECT_NE(other.text.find("has 3 imports under way; its quota is 3 (imports)"), std::string::npos) << other.text;
  one.hang_up();
  EXPECT_TRUE(eventually([&] {
    other.import("nobody's");
    return other.next_failure() == Errc::name_unknown;
  }));
}

TEST_P(Quotas, regions_are_counted_until_they_are_handed_over) {
  auto layout = shim::RegionLayout::of(kClasses);
  ASSERT_TRUE(layout);
  options_.limits.user.region_bytes = 2 * layout->size() + 1;
  START_NAMESERVER();
  TestPeer server(path());
  server.export_name("files");
  TestPeer client(path());
  for (int i = 0; i < 2; ++i) client.import("files", kWaits);
  std::vector<shim::BindRequest> asked;
  for (int i = 0; i < 2; ++i) asked.push_back(server.next_as<shim::BindRequest>().value());
  client.import("files", kWaits);
  EXPECT_EQ(client.next_failure(), Errc::limit_reached);
  EXPECT_NE(client.text.find("(region_bytes)"), std::string::npos) << client.text;
  for (const auto& request : asked) server.ask(shim::BindReply{request.binding_id, Errc::ok, {}});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(client.next_as<shim::Bound>());
  client.import("files", kWaits);
  EXPECT_TRUE(server.answer_bind());
  EXPECT_TRUE(client.next_as<shim::Bound>());
}

TEST_P(Quotas, descriptors_that_a_user_does_not_read_are_counted_over_all_its_connections) {
  options_.limits.user.descriptors_in_flight = 6;
  options_.allocator_tick = kNoLimit;  // its pages are descriptors, too
  START_NAMESERVER();
  TestPeer one(path());
  TestPeer other(path());
  TestPeer third(path());
  one.export_name("one");
  other.export_name("other");
  third.export_name("third");
  TestPeer client(path());
  client.import("one", kWaits);
  client.import("other", kWaits);
  for (const TestPeer* server : {&one, &other}) {  // each has three descriptors to read
    pollfd asked{server->fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&asked, 1, static_cast<int>(kPatience.count())), 1);
  }
  client.import("third", kWaits);
  EXPECT_TRUE(third.quiet()) << "it has its turn when they have been read";
  EXPECT_TRUE(one.answer_bind(Errc::not_permitted));
  EXPECT_EQ(client.next_failure(), Errc::not_permitted);
  EXPECT_TRUE(third.next_as<shim::BindRequest>());
}

TEST_P(Quotas, connections_are_counted_and_the_refusal_names_the_quota) {
  options_.limits.user.connections = 2;
  START_NAMESERVER();
  TestPeer one(path());
  TestPeer other(path());
  EXPECT_TRUE(one.is_served() && other.is_served());
  TestPeer third(path());
  EXPECT_EQ(third.next_failure(), Errc::limit_reached);
  EXPECT_NE(third.text.find("its quota is 2 (connections)"), std::string::npos) << third.text;
}

TEST_P(Quotas, a_user_that_closes_a_connection_may_open_another_before_the_hang_up_is_handled) {
  options_.limits.user.connections = 3;
  HeldUp held(options_);
  START_NAMESERVER();
  TestPeer first(path());
  TestPeer second(path());
  TestPeer other(path());
  ASSERT_TRUE(first.is_served() && second.is_served());
  held.hold(other);
  TestPeer next(path());
  first.hang_up();
  held.let_go();
  EXPECT_TRUE(next.is_served()) << next.text;
}

/// Allows everything but one name, and sets the quota of names.
class OnePolicy final : public Policy {
 public:
  explicit OnePolicy(std::string denied, std::size_t names = kNoLimit) : denied_(std::move(denied)), names_(names) {}
  // NOLINTBEGIN(clang-analyzer-cplusplus.NewDeleteLeaks): it does not see that a Result owns its text
  Status may_export(const Peer&, std::string_view name) override { return may(name); }
  Status may_import(const Peer&, std::string_view name, const lrpc::shim::Credentials*) override { return may(name); }
  // NOLINTEND(clang-analyzer-cplusplus.NewDeleteLeaks)
  UserQuota quota(uid_t, const UserQuota& standard) override {
    UserQuota quota = standard;
    quota.names = names_;
    return quota;
  }

 private:
  Status may(std::string_view name) const {
    return name == denied_ ? Status(Error{Errc::not_permitted, "not '" + denied_ + "'"}) : Status();
  }
  std::string denied_;
  std::size_t names_;
};

TEST_P(Quotas, a_policy_object_has_the_last_word_on_a_users_quota) {
  options_.limits.user.names = 1;
  options_.policy = std::make_shared<OnePolicy>("x", 2);
  START_NAMESERVER();
  TestPeer server(path());
  EXPECT_NE(server.export_name("a"), 0U);
  EXPECT_NE(server.export_name("b"), 0U);
  server.ask(shim::ExportRequest{"c", kFiles, kClasses, ""});
  EXPECT_EQ(server.next_failure(), Errc::limit_reached);
}

TEST_P(Quotas, a_new_policy_decides_also_about_imports_that_wait) {
  options_.policy = std::make_shared<OnePolicy>("a");
  START_NAMESERVER();
  TestPeer client(path());
  client.import("a", shim::ImportRequest::kForever);
  EXPECT_EQ(client.next_failure(), Errc::not_permitted) << "it need not wait to hear that";
  client.import("b", shim::ImportRequest::kForever);
  client.import("c", shim::ImportRequest::kForever);
  EXPECT_TRUE(client.quiet(milliseconds(20)));
  nameserver_->set_policy(std::make_shared<OnePolicy>("b"));
  EXPECT_EQ(client.next_failure(), Errc::not_permitted);
  EXPECT_EQ(client.text, "not 'b'");
  TestPeer server(path());
  server.export_name("c");
  EXPECT_TRUE(server.answer_bind());
  EXPECT_TRUE(client.next_as<shim::Bound>()) << "and the others wait on";
}

TEST_P(Quotas, what_a_former_policy_allowed_stays) {
  std::atomic<bool> told = false;
  options_.log = [&](LogLevel, std::string_view line) {
    if (line.find("exports 'a', which the policy would not allow now") != std::string_view::npos) told = true;
  };
  START_NAMESERVER();
  TestPeer server(path());
  server.export_name("a");
  TestPeer client(path());
  client.import("a");
  EXPECT_TRUE(server.answer_bind());
  ASSERT_TRUE(client.next_as<shim::Bound>());
  nameserver_->set_policy(std::make_shared<OnePolicy>("a"));
  EXPECT_TRUE(eventually([&] { return told.load(); }));
  client.import("a");
  EXPECT_EQ(client.next_failure(), Errc::not_permitted);
  EXPECT_TRUE(server.is_served());
  nameserver_->set_policy(nullptr);  // the default policy
  EXPECT_TRUE(eventually([&] {
    client.import("a");
    const auto asked = shim::receive_message(server.fd(), milliseconds(50));
    return asked && *asked && std::holds_alternative<shim::BindRequest>((*asked)->body);
  })) << "the name is still there";
}

TEST_P(Quotas, lines_of_the_log_about_one_user_are_limited) {
  const auto lines = std::make_shared<std::atomic<int>>(0);  // shared, because the nameserver outlives this scope
  options_.log = [lines](LogLevel, std::string_view) { ++*lines; };
  START_NAMESERVER();
  const auto began = std::chrono::steady_clock::now();
  TestPeer server(path());
  for (int i = 0; i < 300; ++i) {
    const auto id = server.export_name("a");
    server.ask(shim::WithdrawRequest{id});
    ASSERT_TRUE(server.next_as<shim::Withdrawn>());
  }
  EXPECT_GE(*lines, 200);
  // The lines that the budget regains in the meantime, and a notice whenever lines were left out.
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  EXPECT_LE(*lines, 200 + 2 * (10 * took.count() + 1));
}

TEST_P(Quotas, descriptors_of_the_embedding_program_are_watched_until_it_has_enough) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  std::atomic<int> heard = 0;
  options_.extra_watches.push_back({theirs.get(), [&] {
                                      char byte = 0;
                                      (void)!::read(theirs.get(), &byte, 1);
                                      return ++heard < 2;
                                    }});
  START_NAMESERVER();
  for (int i = 1; i <= 2; ++i) {
    ASSERT_EQ(::write(ours.get(), "x", 1), 1);
    ASSERT_TRUE(eventually([&] { return heard == i; }));
  }
  ASSERT_EQ(::write(ours.get(), "x", 1), 1);
  TestPeer client(path());
  EXPECT_TRUE(client.is_served());
  EXPECT_EQ(heard, 2);
  nameserver_.reset();
}

TEST_P(Quotas, a_system_call_that_fails_in_the_nameserver_or_in_the_server_is_a_limit_reached_and_says_where) {
  START_NAMESERVER();
  TestPeer server(path());
  server.export_name("files");
  ASSERT_TRUE(server.is_served());  // its page has been received
  TestPeer other(path());
  TestPeer client(path());
  ASSERT_TRUE(other.is_served() && client.is_served());
  std::optional<testing_lrpc::SoftLimit> few(std::in_place, 1);  // poll(2) looks at no more descriptors than that
  other.ask(shim::ExportRequest{"more", kFiles, kClasses, ""});
  EXPECT_EQ(other.next_failure(), Errc::limit_reached);
  EXPECT_NE(other.text.find("in the nameserver a system call failed"), std::string::npos) << other.text;
  client.import("files");
  EXPECT_EQ(client.next_failure(), Errc::limit_reached);
  EXPECT_NE(client.text.find("in the nameserver a system call failed: memfd_create"), std::string::npos) << client.text;
  few.reset();
  client.import("files");
  server.answer_bind(Errc::system_error, "mmap of a region");
  EXPECT_EQ(client.next_failure(), Errc::limit_reached);
  EXPECT_EQ(client.text, "the server of 'files' refused: mmap of a region");
  client.import("files");
  EXPECT_TRUE(server.answer_bind());
  EXPECT_TRUE(client.next_as<shim::Bound>());
}

}  // namespace
}  // namespace lrpc::nameserver::test
