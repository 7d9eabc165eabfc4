// How much of a server one client process and one user may hold. The test asks the domain directly, with clients that
// no test could be.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "clerk/domain.h"
#include "soft_limit.h"
#include "users.h"

namespace lrpc::server {
namespace {

/// A domain without a name. Its clients are only a pair of descriptors and a process number.
class DomainLimits : public testing::Test {
 protected:
  /// Makes one more binding of such a client, on the watcher's thread. Returns the clerk's answer.
  static Status bind(Domain& domain, const shim::Credentials& client, const Pdl& declared = kEmpty,
                     Gate gate = Gate::adaptive, const std::optional<shim::Principal>& principal = {}) {
    std::promise<Status> bound;
    const shim::Watcher::Task task([&] { bound.set_value(bind_here(domain, client, declared, gate, principal)); });
    return domain.watcher().post(task) ? bound.get_future().get() : Status(Errc::system_error);
  }
  /// The same for a caller on another host.
  static Status bind_from(Domain& domain, std::uint32_t host) {
    return bind(domain, kNobodyHere, kEmpty, Gate::adaptive, shim::Principal{.host = host});
  }
  static void unbind(Domain& domain, std::uint64_t binding) {
    std::promise<void> over;
    const shim::Watcher::Task task([&] {
      domain.bindings().end(binding);
      over.set_value();
    });
    if (domain.watcher().post(task)) over.get_future().get();
  }
  static shim::Credentials client(pid_t pid, uid_t user) { return {pid, user, user}; }

  /// The region bytes of each of these bindings.
  static std::uint64_t region_bytes() { return shim::RegionLayout::of({&kOne, 1})->size(); }

  static constexpr AStackClass kOne{64, 0, 1};
  static constexpr Pdl kEmpty{.interface = {.name = "Empty"}, .classes = {&kOne, 1}, .procedures = {}, .text = {}};
  static constexpr AStackClass kLarge{4096, 1 << 20, 4};
  static constexpr Pdl kCallback{.interface = {.name = "Back"}, .classes = {&kLarge, 1}, .procedures = {}, .text = {}};
  static constexpr Pdl kCalling{
      .interface = {.name = "Calling"}, .classes = {&kOne, 1}, .procedures = {}, .text = {}, .callback = &kCallback};

  static inline bool none_left_ = false;  ///< Whether add() finds no free descriptor.
  static inline pid_t told_ = 0;          ///< The client's number as lrpcd tells it.

 private:
  static Status bind_here(Domain& domain, const shim::Credentials& client, const Pdl& declared, Gate gate,
                          const std::optional<shim::Principal>& principal) {
    auto interface = std::make_shared<ServedInterface>();
    interface->pdl = &declared;
    auto layout = shim::RegionLayout::of(declared.classes);
    if (!layout) return layout.error();
    if (Status room = domain.bindings().room_for(client, told_, *interface, gate); !room) return room;
    auto region = shim::Region::private_to_this_domain(*std::move(layout));
    auto bells = shim::make_socket_pair();
    auto process = shim::open_pidfd(::getpid());
    if (!region || !bells || !process) return Errc::limit_reached;
    ServedParts parts;
    parts.id = domain.bindings().next_id();
    parts.client = client;
    parts.told = told_;
    parts.principal = principal;
    parts.region = *std::move(region);
    parts.client_pidfd = *std::move(process);
    parts.bell = std::move(bells->first);
    parts.interface = std::move(interface);
    kept().push_back(std::move(bells->second));
    std::optional<testing_lrpc::SoftLimit> none;
    if (none_left_) none.emplace(0);
    return domain.bindings().add(std::move(parts));
  }
  /// The clients' ends: if they are closed, their bindings end.
  static std::vector<UniqueFd>& kept() {
    static std::vector<UniqueFd> ends;
    return ends;
  }
  void TearDown() override { kept().clear(); }
};

TEST_F(DomainLimits, durations_that_would_be_sleeps_without_a_bound_are_cut_to_what_they_can_mean) {
  using namespace std::chrono_literals;
  const Domain least({.estack_idle = -1ms, .poll_window = -5us});
  EXPECT_EQ(least.options().estack_idle, 1ms);
  EXPECT_EQ(least.options().poll_window, 0us);
  const Domain most({.estack_idle = std::chrono::milliseconds::max(), .poll_window = std::chrono::microseconds::max()});
  EXPECT_TRUE(most.options().estack_idle == kNoLimit);
  EXPECT_EQ(Domain({.estack_idle = std::chrono::milliseconds::max() - 1ms}).options().estack_idle, 24h);
  EXPECT_EQ(most.options().poll_window, 1s);
}

TEST_F(DomainLimits, a_process_has_as_many_bindings_as_one_may) {
  Domain domain({.max_bindings_per_client_process = 2});
  told_ = 7;
  for (const pid_t here : {7, 0}) {  // 0: only lrpcd has a number for it, and another process has the same one here
    EXPECT_TRUE(bind(domain, client(here, kAlice)));
    EXPECT_TRUE(bind(domain, client(here, kAlice)));
    EXPECT_EQ(bind(domain, client(here, kAlice)).code(), Errc::limit_reached) << here;
  }
  unbind(domain, 3);  // one of the latter
  EXPECT_TRUE(bind(domain, client(0, kAlice)));
  told_ = 0;
  EXPECT_TRUE(bind(domain, client(8, kAlice)));
}

TEST_F(DomainLimits, processes_without_a_number_here_are_not_taken_for_one) {
  Domain domain({.max_bindings_per_client_process = 2, .max_bindings_per_user = 4});
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(bind(domain, client(0, kAlice))) << i;
    EXPECT_TRUE(bind(domain, client(0, kBob))) << i;
  }
  const Status refused = bind(domain, client(0, kAlice));
  ASSERT_EQ(refused.code(), Errc::limit_reached) << "its user is limited all the same";
  EXPECT_NE(refused.error().text.find("(max_bindings_per_user)"), std::string::npos) << refused.error().text;
  EXPECT_EQ(domain.statistics().bindings, 8U);
}

/// A procedure that is running on a binding, and keeps it. A mere shared pointer stands for others that only keep it:
/// an E-stack that has not woken up yet, a poller in another binding's procedure.
struct Running {
  explicit Running(std::shared_ptr<ServedBinding> held) : binding(std::move(held)) {
    EXPECT_TRUE(binding->astacks()[0].linkage.claim(1));
  }
  std::shared_ptr<ServedBinding> binding;
};

TEST_F(DomainLimits, a_binding_that_has_ended_and_is_only_held_counts_no_longer) {
  Domain domain({.max_bindings = 2,
                 .max_bindings_per_user = 1,
                 .max_region_bytes_per_user = region_bytes(),
                 .max_descriptors_per_user = 2});
  std::vector<std::shared_ptr<ServedBinding>> held;
  for (std::uint64_t id = 1; id <= 5; ++id) {
    const Status bound = bind(domain, client(1, kAlice));
    ASSERT_TRUE(bound) << bound.error().message();
    held.push_back(domain.bindings().find(id));
    unbind(domain, id);
  }
}

TEST_F(DomainLimits, a_binding_that_has_ended_has_no_descriptors_unless_a_procedure_runs) {
  Domain domain({.max_descriptors_per_user = 4});
  ASSERT_TRUE(bind(domain, client(1, kAlice)));
  ASSERT_TRUE(bind(domain, client(1, kAlice)));
  const auto held = domain.bindings().find(1);
  const Running running(domain.bindings().find(2));
  unbind(domain, 1);
  unbind(domain, 2);
  EXPECT_EQ(held->bell(), -1);
  EXPECT_EQ(held->client_pidfd(), -1);
  EXPECT_TRUE(bind(domain, client(1, kAlice)));
  EXPECT_EQ(bind(domain, client(1, kAlice)).code(), Errc::limit_reached);
}

TEST_F(DomainLimits, a_binding_that_has_ended_counts_until_its_memory_is_unmapped_while_a_procedure_runs) {
  Domain domain({.max_bindings = 3, .max_bindings_per_client_process = 1, .max_bindings_per_user = 2});
  ASSERT_TRUE(bind(domain, client(1, kAlice)));
  ASSERT_TRUE(bind(domain, client(2, kAlice)));
  Running one(domain.bindings().find(1));
  Running other(domain.bindings().find(2));
  unbind(domain, 1);
  unbind(domain, 2);
  EXPECT_EQ(domain.statistics().bindings, 0U);
  const Status refused = bind(domain, client(1, kAlice));
  ASSERT_EQ(refused.code(), Errc::limit_reached);
  EXPECT_NE(refused.error().text.find("(max_bindings_per_user)"), std::string::npos) << refused.error().text;
  EXPECT_TRUE(bind(domain, client(1, kBob))) << "its number stands for nobody once it has ended";
  EXPECT_EQ(bind(domain, client(2, kBob)).code(), Errc::limit_reached) << "of all bindings, too";
  one.binding.reset();
  EXPECT_TRUE(bind(domain, client(2, kBob + 1)));
  EXPECT_EQ(bind(domain, client(3, kAlice)).code(), Errc::limit_reached);
}

TEST_F(DomainLimits, a_call_that_was_claimed_when_its_binding_ended_counts_no_longer_once_it_is_over) {
  Domain domain({.max_bindings_per_user = 1, .max_descriptors_per_user = 2});
  ASSERT_TRUE(bind(domain, client(1, kAlice)));
  const Running running(domain.bindings().find(1));
  unbind(domain, 1);
  ASSERT_EQ(bind(domain, client(1, kAlice)).code(), Errc::limit_reached);
  running.binding->astacks()[0].linkage.release(1);  // the procedure has ended; the binding is still kept
  EXPECT_TRUE(bind(domain, client(1, kAlice)));
  EXPECT_EQ(running.binding->bell(), -1);
  EXPECT_EQ(bind(domain, client(1, kAlice)).code(), Errc::limit_reached);
}

TEST_F(DomainLimits, bytes_of_a_region_count_until_it_is_unmapped) {
  Domain domain({.max_region_bytes_per_user = 2 * region_bytes()});
  ASSERT_TRUE(bind(domain, client(1, kAlice)));
  ASSERT_TRUE(bind(domain, client(2, kAlice)));
  Running running(domain.bindings().find(1));
  unbind(domain, 1);
  const Status refused = bind(domain, client(3, kAlice));
  ASSERT_EQ(refused.code(), Errc::limit_reached);
  EXPECT_NE(refused.error().text.find("(max_region_bytes_per_user)"), std::string::npos) << refused.error().text;
  running.binding.reset();
  EXPECT_TRUE(bind(domain, client(3, kAlice)));
}

TEST_F(DomainLimits, the_region_through_which_a_client_is_called_back_counts_for_it) {
  const std::uint64_t both = region_bytes() + shim::RegionLayout::of({&kLarge, 1})->size();
  Domain little({.max_region_bytes_per_user = both - 1});
  EXPECT_TRUE(bind(little, client(1, kAlice)));
  EXPECT_EQ(bind(little, client(2, kBob), kCalling).code(), Errc::limit_reached);
  Domain enough({.max_region_bytes_per_user = both});
  EXPECT_TRUE(bind(enough, client(1, kAlice), kCalling));
  EXPECT_EQ(bind(enough, client(1, kAlice)).code(), Errc::limit_reached);
}

TEST_F(DomainLimits, a_client_that_may_be_called_back_is_refused_if_no_thread_can_let_go_of_its_stub) {
  Domain domain({});
  ASSERT_TRUE(bind(domain, client(1, kAlice))) << "the clerk's thread has what it needs";
  none_left_ = true;
  EXPECT_TRUE(bind(domain, client(1, kAlice)));
  EXPECT_EQ(bind(domain, client(1, kAlice), kCalling).code(), Errc::limit_reached);
  none_left_ = false;
  EXPECT_EQ(domain.statistics().bindings, 2U);
  EXPECT_TRUE(bind(domain, client(1, kAlice), kCalling));
}

TEST_F(DomainLimits, one_user_has_at_most_half_of_the_descriptors) {
  const testing_lrpc::SoftLimit limit(200);
  Domain domain({});
  int bound = 0;
  Status refused;
  while (refused && bound < 100) {
    refused = bind(domain, client(100 + bound, kAlice));
    if (refused) ++bound;
  }
  EXPECT_EQ(bound, 50) << "two each";
  ASSERT_EQ(refused.code(), Errc::limit_reached);
  EXPECT_NE(refused.error().text.find("user 1 has 100 of the server's file descriptors"), std::string::npos)
      << refused.error().text;
  EXPECT_NE(refused.error().text.find("(max_descriptors_per_user)"), std::string::npos) << refused.error().text;
  EXPECT_TRUE(UniqueFd(::dup(0))) << "the program opens what it needs";
  unbind(domain, 1);
  EXPECT_TRUE(bind(domain, client(100, kAlice))) << "what is given back may be had again";
  EXPECT_TRUE(bind(domain, client(1, kBob)));
  unbind(domain, 2);
  EXPECT_EQ(bind(domain, client(101, kAlice)).code(), Errc::limit_reached) << "beside others: no more than its share";
}

TEST_F(DomainLimits, a_server_says_how_many_descriptors_a_user_may_have) {
  Domain domain({.max_descriptors_per_user = 5});
  EXPECT_TRUE(bind(domain, client(1, kAlice)));
  EXPECT_TRUE(bind(domain, client(2, kAlice)));
  EXPECT_EQ(bind(domain, client(3, kAlice)).code(), Errc::limit_reached);
  const testing_lrpc::SoftLimit limit(200);
  Domain boundless({.max_descriptors_per_user = kNoLimit});
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(bind(boundless, client(1, kAlice)));
}

/// Grants handles in a binding's table until it is full, at most `most`.
std::vector<std::uint64_t> grant_all(HandleTable& table, std::size_t most) {
  std::vector<std::uint64_t> granted;
  while (granted.size() < most) {
    const std::uint64_t value = table.grant(1, typeid(int), std::make_shared<int>(0));
    if (value == 0) break;
    granted.push_back(value);
  }
  return granted;
}

TEST_F(DomainLimits, handles_are_counted_over_all_bindings_of_a_user) {
  Domain domain({.max_handles_per_user = 10});
  for (const uid_t user : {kAlice, kAlice, kBob}) ASSERT_TRUE(bind(domain, client(1, user)));
  HandleTable& one = domain.bindings().find(1)->handles();
  HandleTable& other = domain.bindings().find(2)->handles();
  const auto first = grant_all(one, 7);
  ASSERT_EQ(first.size(), 7U);
  EXPECT_EQ(grant_all(other, 100).size(), 3U);
  EXPECT_EQ(grant_all(domain.bindings().find(3)->handles(), 100).size(), 10U) << "another user has its own";
  EXPECT_NE(one.close(first.front(), 1, typeid(int)), nullptr);
  EXPECT_EQ(one.close(first.front(), 1, typeid(int)), nullptr) << "which gives nothing back";
  EXPECT_EQ(grant_all(other, 100).size(), 1U);
  unbind(domain, 1);
  EXPECT_EQ(grant_all(other, 100).size(), 6U) << "the rundown gives back what was open";
}

TEST_F(DomainLimits, handles_are_counted_over_all_bindings_of_a_host_which_leaves_some_to_other_hosts) {
  Domain domain({.max_handles_per_user = 16});
  for (const std::uint32_t host : {1U, 1U, 2U}) ASSERT_TRUE(bind_from(domain, host));
  ASSERT_TRUE(bind(domain, client(1, kAlice)));
  HandleTable& one = domain.bindings().find(1)->handles();
  HandleTable& other = domain.bindings().find(2)->handles();
  const auto first = grant_all(one, 4);
  ASSERT_EQ(first.size(), 4U);
  EXPECT_EQ(grant_all(other, 100).size(), 3U) << "7 are half of what leaves an eighth";
  EXPECT_EQ(grant_all(domain.bindings().find(3)->handles(), 100).size(), 3U) << "half of what the first host has left";
  EXPECT_EQ(grant_all(domain.bindings().find(4)->handles(), 100).size(), 16U) << "a user here has its own";
  EXPECT_NE(one.close(first.front(), 1, typeid(int)), nullptr);
  EXPECT_EQ(grant_all(other, 100).size(), 0U) << "beside another host its share is 5";
  unbind(domain, 3);
  EXPECT_EQ(grant_all(other, 100).size(), 1U) << "the rundown gives back what was open";
  unbind(domain, 1);
  EXPECT_EQ(grant_all(other, 100).size(), 3U) << "which leaves the host those of its other binding";
}

TEST(Handles, of_some_hosts_leave_one_to_each_host_that_comes_later_while_there_is_any) {
  constexpr std::size_t kMost = 1024;
  const auto user = std::make_shared<HandleCount>(kMost);
  std::vector<std::shared_ptr<HandleCount>> hosts;
  while (user->open() != kMost) {  // one host after another takes all that it may have
    hosts.push_back(std::make_shared<HandleCount>(user));
    while (hosts.back()->take()) {
    }
    ASSERT_NE(hosts.back()->open(), 0U) << "host " << hosts.size();
  }
  EXPECT_EQ(hosts.front()->open(), 448U);
  EXPECT_GT(hosts.size(), kMost / 8);
  HandleCount next(user);
  EXPECT_FALSE(next.take());
  hosts.back()->give(1);
  EXPECT_FALSE(hosts.front()->take()) << "it has many";
  EXPECT_TRUE(next.take());
  EXPECT_EQ(user->open(), kMost);
}

TEST(Handles, of_one_host_stay_within_its_share_when_threads_take_and_return_them_at_once) {
  constexpr std::size_t kMost = 1024;
  const auto user = std::make_shared<HandleCount>(kMost);
  const auto host = std::make_shared<HandleCount>(user);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (std::size_t n = 0; n < kMost; ++n)
        if (host->take() && n % 2 == 0) host->give(1);
    });
  for (std::thread& thread : threads) thread.join();
  while (host->take()) {
  }
  EXPECT_EQ(host->open(), 448U);
  EXPECT_EQ(user->open(), 448U);
}

TEST(Handles, a_host_that_asks_in_vain_keeps_no_other_host_from_the_last_one) {
  constexpr std::size_t kTries = 1000;
  const auto user = std::make_shared<HandleCount>(8);
  HandleCount greedy(user);
  while (greedy.take()) {
  }
  std::vector<std::shared_ptr<HandleCount>> others;
  while (user->open() != 7) {
    others.push_back(std::make_shared<HandleCount>(user));
    ASSERT_TRUE(others.back()->take());
  }
  std::atomic<std::size_t> in_vain = 0;
  std::atomic<bool> over = false;
  std::thread asks([&] {
    while (!over) in_vain += greedy.take() ? 0 : 1;
  });
  HandleCount last(user);
  std::size_t taken = 0;
  for (std::size_t i = 0; i < kTries || in_vain < kTries; ++i) {
    if (!last.take()) break;
    ++taken;
    last.give(1);
  }
  over = true;
  asks.join();
  EXPECT_GE(taken, kTries);
  EXPECT_EQ(greedy.open(), 3U);
}

TEST(Handles, that_are_closed_together_are_given_back_all_or_none) {
  HandleTable table(std::make_shared<HandleCount>(3));
  const auto granted = grant_all(table, 10);
  ASSERT_EQ(granted.size(), 3U);
  EXPECT_FALSE(table.close_together(std::array{granted[0], granted[0]})) << "one is there twice";
  EXPECT_FALSE(table.close_together(std::array{granted[0], std::uint64_t{0}}));
  EXPECT_EQ(table.size(), 3U);
  EXPECT_TRUE(table.close_together(std::array{granted[0], granted[2]}));
  EXPECT_FALSE(table.close_together(std::array{granted[1], granted[2]})) << "one is closed";
  EXPECT_EQ(table.size(), 1U);
  EXPECT_EQ(grant_all(table, 10).size(), 2U);
}

TEST_F(DomainLimits, handles_of_a_binding_that_has_ended_count_for_nobody) {
  Domain domain({.max_handles_per_user = 2});
  ASSERT_TRUE(bind(domain, client(1, kAlice)));
  ASSERT_TRUE(bind(domain, client(2, kAlice)));
  const auto ended = domain.bindings().find(1);
  unbind(domain, 1);
  EXPECT_EQ(grant_all(ended->handles(), 5).size(), 5U) << "a procedure that still runs";
  EXPECT_EQ(ended->handles().size(), 0U);
  EXPECT_EQ(grant_all(domain.bindings().find(2)->handles(), 5).size(), 2U);
}

}  // namespace
}  // namespace lrpc::server
