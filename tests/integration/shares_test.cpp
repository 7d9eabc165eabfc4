// How much of a server one user may hold: bindings, region bytes, E-stacks. Other users still get theirs.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "early_child.h"
#include "gated_service.h"
#include "length.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using namespace std::chrono_literals;

constexpr uid_t kOtherUser = 54'321;  // needs no entry in /etc/passwd
constexpr uid_t kThirdUser = 54'322;

bool is_root() { return ::geteuid() == 0; }

/// Options for a nameserver that other users can reach, too.
lrpc::nameserver::NameserverOptions for_everybody() {
  lrpc::nameserver::NameserverOptions options;
  options.mode = 0666;
  return options;
}
void open_to_everybody(const World& world) {
  ASSERT_EQ(::chmod(std::filesystem::path(world.nameserver()).parent_path().c_str(), 0755), 0);
}

lrpc::Result<Conformance::Client> import_from(const std::string& nameserver, const std::string& name,
                                              lrpc::ImportOptions options = {}) {
  options.nameserver = nameserver;
  return Conformance::Client::import(name, options);
}

/// How many bindings of `name` a process gets, up to `most`. 100 or more: a call failed, or another error than `why`
/// came.
int bind_until_refused(const std::string& nameserver, const std::string& name, int most, const std::string& why) {
  std::vector<Conformance::Client> clients;
  for (int i = 0; i < most; ++i) {
    auto client = import_from(nameserver, name);
    if (!client) {
      const bool as_expected =
          client.code() == Errc::limit_reached && client.error().text.find(why) != std::string::npos;
      if (!as_expected) std::fprintf(stderr, "refused: %s\n", client.error().message().c_str());
      return as_expected ? i : 100 + i;
    }
    if (!client->Null()) return 200;
    clients.push_back(*std::move(client));
  }
  return most;
}

TEST(Shares, bindings_that_are_let_go_beside_long_procedures_stay_within_the_quota) {
  World world;
  Gated service;
  lrpc::Server server({.nameserver = world.nameserver(), .max_bindings_per_user = 2});
  ASSERT_TRUE(Conformance::export_to(server, "long", service));
  for (int i = 1; i <= 2; ++i) {
    auto client = world.import("long");
    ASSERT_TRUE(client) << client.error().message();
    lrpc::Cancellation cancellation;
    std::thread canceller([&] {
      EXPECT_TRUE(service.wait_inside(i));
      cancellation.cancel();
    });
    {
      const lrpc::CallScope scope(cancellation);
      EXPECT_EQ(client->SleepFor(0).code(), Errc::call_cancelled);
    }
    canceller.join();
  }
  ASSERT_TRUE(eventually([&] { return server.statistics().bindings == 0; }));
  EXPECT_EQ(service.inside_now(), 2) << "and each has its region";
  EXPECT_EQ(world.import("long").code(), Errc::limit_reached);
  service.let_all_go();
  EXPECT_TRUE(eventually([&] { return bool(world.import("long")); }));
}

TEST(Shares, bindings_are_limited_for_all_processes_of_a_user_together) {
  EarlyChild other(::geteuid(), [](const std::string& nameserver) {
    return bind_until_refused(nameserver, "limited", 5, "(max_bindings_per_user)");
  });
  World world;
  const Process server = world.start_server({"limited"}, {"--max-bindings-per-user", "3"});
  auto own = world.import("limited");
  ASSERT_TRUE(own) << own.error().message();
  other.begin(world.nameserver());
  EXPECT_EQ(other.wait(), 2);
  // The other process's share was given back: the server has noticed its end, and none of its procedures runs.
  EXPECT_TRUE(own->Null());
  EXPECT_EQ(bind_until_refused(world.nameserver(), "limited", 5, "(max_bindings_per_user)"), 2);
}

TEST(Shares, a_client_at_its_quota_that_lets_go_binds_anew_at_once) {
  auto pair = start_private_server({"--max-bindings-per-user", "1"});
  for (int i = 0; i < rounds(1000); ++i) {
    auto client = Conformance::Client::import_over(lrpc::UniqueFd(::dup(pair.socket.get())));
    ASSERT_TRUE(client) << i << ": " << client.error().message();
    ASSERT_TRUE(client->Null());
  }
}

TEST(Shares, bytes_of_regions_are_limited_for_each_user) {
  auto layout = lrpc::shim::RegionLayout::of(Conformance::kPdl.classes);
  ASSERT_TRUE(layout);
  World world;
  const Process server =
      world.start_server({"limited"}, {"--max-region-bytes-per-user", std::to_string(3 * layout->size() - 1)});
  EXPECT_EQ(bind_until_refused(world.nameserver(), "limited", 5, "(max_region_bytes_per_user)"), 2);
  const Process unlimited =
      world.start_server({"unlimited"}, {"--max-region-bytes-per-user", std::to_string(std::uint64_t{lrpc::kNoLimit})});
  EXPECT_EQ(bind_until_refused(world.nameserver(), "unlimited", 5, ""), 5);
}

TEST(Shares, private_bindings_count_as_well) {
  auto pair = start_private_server({"--max-bindings-per-user", "1"});
  auto client = Conformance::Client::import_over(lrpc::UniqueFd(::dup(pair.socket.get())));
  ASSERT_TRUE(client) << client.error().message();
  auto second = Conformance::Client::import_over(std::move(pair.socket));
  ASSERT_EQ(second.code(), Errc::limit_reached);
  EXPECT_NE(second.error().text.find("max_bindings_per_user"), std::string::npos) << second.error().text;
}

TEST(Shares, the_clerks_reason_reaches_a_private_client) {
  auto pair = start_private_server({"--refuse"});
  auto client = Conformance::Client::import_over(std::move(pair.socket));
  ASSERT_EQ(client.code(), Errc::not_permitted);
  EXPECT_NE(client.error().text.find("not today"), std::string::npos) << client.error().text;
}

TEST(Shares, one_user_at_its_limit_does_not_keep_another_from_binding) {
  if (!is_root()) GTEST_SKIP() << "only root can start a process of another user";
  EarlyChild other(kOtherUser, [](const std::string& nameserver) {
    return bind_until_refused(nameserver, "limited", 5, "user 54321 has 2 bindings");
  });
  World world(for_everybody());
  open_to_everybody(world);
  const Process server = world.start_server({"limited"}, {"--max-bindings-per-user", "2"});
  std::vector<Conformance::Client> own;
  for (int i = 0; i < 2; ++i) own.push_back(world.import("limited").value());
  EXPECT_EQ(world.import("limited").code(), Errc::limit_reached);
  other.begin(world.nameserver());
  EXPECT_EQ(other.wait(), 2);
}

/// Makes a call as a process of another user. Returns 0 if it succeeds. Writes to `told` when the call was rung.
int call_as_other(const std::string& nameserver, int told = -1) {
  auto client = import_from(nameserver, "gated", {.timeout = kPatience, .gate = lrpc::Gate::handoff});
  if (!client) return 1;
  auto adding = client->start().Add(40, 2);
  if (told >= 0 && ::write(told, "!", 1) != 1) return 3;
  const auto sum = adding.finish();
  return sum && *sum == 42 ? 0 : 2;
}

/// Makes four calls at once as a process of another user, which block until they are released. Writes to `told` when
/// all were rung. Returns 0 if they succeed.
int stay_as_other(const std::string& nameserver, int told = -1) {
  auto client = import_from(nameserver, "gated", {.timeout = kPatience, .gate = lrpc::Gate::handoff});
  if (!client) return 1;
  std::vector<decltype(client->start().SleepFor(0))> calls;
  for (int i = 0; i < 4; ++i) calls.push_back(client->start().SleepFor(0));
  if (told >= 0 && ::write(told, "!", 1) != 1) return 3;
  for (auto& call : calls) {
    if (!call.finish()) return 2;
  }
  return 0;
}

/// A server in this process whose E-stacks are held by this process's own calls.
class Captured {
 public:
  explicit Captured(const lrpc::ServerOptions& options) : world(for_everybody()), server(with(options, world)) {
    open_to_everybody(world);
    exported = Conformance::export_to(server, "gated", service).has_value();
  }
  ~Captured() {
    service.let_all_go();
    for (auto& thread : callers_) thread.join();
    EXPECT_EQ(failed_, 0);
  }
  /// Makes calls that block until they are released; five per binding, one for each of its A-stacks.
  void call(int how_many) {
    for (int i = 0; i < how_many; ++i) {
      if (i % 5 == 0) {
        auto client = world.import("gated", {.gate = lrpc::Gate::handoff});
        ASSERT_TRUE(client) << client.error().message();
        clients_.push_back(std::make_unique<Conformance::Client>(*std::move(client)));
      }
      callers_.emplace_back([this, client = clients_.back().get()] {
        if (!client->SleepFor(0)) ++failed_;
      });
    }
  }

  World world;
  Gated service;
  lrpc::Server server;
  bool exported = false;

 private:
  static lrpc::ServerOptions with(lrpc::ServerOptions options, const World& world) {
    options.nameserver = world.nameserver();
    return options;
  }
  std::vector<std::unique_ptr<Conformance::Client>> clients_;
  std::vector<std::thread> callers_;
  std::atomic<int> failed_{0};
};

TEST(Shares, calls_of_one_user_have_so_many_estacks_at_a_time_and_all_get_their_turn) {
  Captured captured({.max_estacks = 8, .max_estacks_per_user = 2});
  ASSERT_TRUE(captured.exported);
  captured.call(10);
  ASSERT_TRUE(captured.service.wait_inside(2));
  for (int left = 0; left < 10; ++left) {
    ASSERT_TRUE(captured.service.wait_inside(std::min(2, 10 - left)));
    EXPECT_LE(captured.service.inside_now(), 2);
    captured.service.let_go(1);
    ASSERT_TRUE(captured.service.wait_left(left + 1));
    ASSERT_EQ(captured.service.left_so_far(), left + 1);
  }
  EXPECT_LE(captured.server.statistics().estacks, 8U);
}

TEST(Shares, without_a_limit_one_user_may_have_every_estack) {
  Captured captured({.max_estacks = 8, .max_estacks_per_user = lrpc::kNoLimit});
  ASSERT_TRUE(captured.exported);
  captured.call(10);
  EXPECT_TRUE(captured.service.wait_inside(8));
}

TEST(Shares, captured_calls_of_one_user_leave_estacks_for_another) {
  if (!is_root()) GTEST_SKIP() << "only root can start a process of another user";
  EarlyChild other(kOtherUser, [](const std::string& nameserver) { return call_as_other(nameserver); });
  Captured captured({.max_estacks = 8});
  ASSERT_TRUE(captured.exported);
  captured.call(20);
  ASSERT_TRUE(captured.service.wait_inside(7)) << "all but an eighth";
  other.begin(captured.world.nameserver());
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(captured.service.inside_now(), 7);
  EXPECT_EQ(captured.service.left_so_far(), 0) << "it did not need anybody to leave";
}

TEST(Shares, captured_calls_of_two_users_leave_an_estack_for_a_third) {
  if (!is_root()) GTEST_SKIP() << "only root can start a process of another user";
  int rung[2];
  ASSERT_EQ(::pipe(rung), 0);
  EarlyChild second(kOtherUser, [&](const std::string& nameserver) { return stay_as_other(nameserver, rung[1]); });
  EarlyChild third(kThirdUser, [](const std::string& nameserver) { return call_as_other(nameserver); });
  Captured captured({.max_estacks = 16});
  ASSERT_TRUE(captured.exported);
  captured.call(20);
  ASSERT_TRUE(captured.service.wait_inside(14)) << "all but an eighth";
  second.begin(captured.world.nameserver());
  char told = 0;
  ASSERT_EQ(::read(rung[0], &told, 1), 1);
  for (const int fd : rung) ::close(fd);
  ASSERT_TRUE(captured.service.wait_inside(15));
  // A clerk that answers has read the bells that were rung before.
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(captured.world.import("gated"));
  EXPECT_EQ(captured.service.inside_now(), 15) << "its fair share of the last two is one";
  third.begin(captured.world.nameserver());
  EXPECT_TRUE(eventually([&] { return third.ended(); }));
  EXPECT_EQ(captured.service.left_so_far(), 0) << "it did not need anybody to leave";
  captured.service.let_all_go();
  EXPECT_EQ(third.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
}

TEST(Shares, estacks_at_rest_of_one_user_are_there_for_several_calls_of_another) {
  if (!is_root()) GTEST_SKIP() << "only root can start a process of another user";
  EarlyChild other(kOtherUser, [](const std::string& nameserver) { return stay_as_other(nameserver); });
  Captured captured({.max_estacks = 16, .estack_idle = 1h});
  ASSERT_TRUE(captured.exported);
  captured.call(14);
  ASSERT_TRUE(captured.service.wait_inside(14));
  captured.service.let_go(14);
  ASSERT_TRUE(captured.service.wait_left(14));
  other.begin(captured.world.nameserver());
  EXPECT_TRUE(captured.service.wait_inside(4));
  captured.service.let_all_go();
  EXPECT_EQ(other.wait(), 0);
}

TEST(Shares, whoever_has_fewest_is_served_first_when_estacks_run_low) {
  if (!is_root()) GTEST_SKIP() << "only root can start a process of another user";
  constexpr int kCalls = 100;
  int rung[2];
  ASSERT_EQ(::pipe(rung), 0);
  EarlyChild other(kOtherUser, [&](const std::string& nameserver) { return call_as_other(nameserver, rung[1]); });
  Captured captured({.max_estacks = 2, .max_estacks_per_user = lrpc::kNoLimit});
  ASSERT_TRUE(captured.exported);
  captured.call(kCalls);
  ASSERT_TRUE(captured.service.wait_inside(2));
  // The other user's call comes after all of these, but its user holds no E-stack.
  other.begin(captured.world.nameserver());
  char told = 0;
  ASSERT_EQ(::read(rung[0], &told, 1), 1);
  for (const int fd : rung) ::close(fd);
  // A clerk that answers has read the bells that were rung before.
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(captured.world.import("gated"));
  constexpr int kLeave = 10;
  for (int left = 1; left <= kLeave; ++left) {
    captured.service.let_go(1);
    ASSERT_TRUE(captured.service.wait_left(left));
  }
  EXPECT_TRUE(eventually([&] { return other.ended(); }));
  EXPECT_EQ(captured.service.left_so_far(), kLeave) << "the others wait";
  captured.service.let_go(kCalls);
  EXPECT_EQ(other.wait(), 0);
}

TEST(Shares, calls_that_wait_for_an_estack_end_with_their_binding) {
  Captured captured({.max_estacks = 2, .max_estacks_per_user = 1});
  ASSERT_TRUE(captured.exported);
  captured.call(1);
  ASSERT_TRUE(captured.service.wait_inside(1));
  {
    auto waiting = captured.world.import("gated", {.gate = lrpc::Gate::handoff, .call_timeout = 200ms});
    ASSERT_TRUE(waiting) << waiting.error().message();
    EXPECT_EQ(waiting->SleepFor(0).code(), Errc::call_aborted);
  }
  EXPECT_TRUE(eventually([&] { return captured.server.statistics().bindings == 1; }));
  captured.service.let_go(1);
  ASSERT_TRUE(captured.service.wait_left(1));
  auto next = captured.world.import("gated", {.gate = lrpc::Gate::handoff});
  ASSERT_TRUE(next);
  EXPECT_EQ(next->Add(1, 2).value(), 3);
  EXPECT_EQ(captured.service.left_so_far(), 1) << "what nobody waits for any more is not executed";
}

}  // namespace
}  // namespace testing_lrpc
