// Many hostile users at once, each with all that it can get. Root and honest users must be served at once. Needs root,
// to be several users.
#include <array>
#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "crowd.h"

namespace lrpc::nameserver::test {
namespace {

LRPC_ON_BOTH_BACKENDS(Crowd);

TEST_P(Crowd, that_takes_all_connections_leaves_some_to_others) {
  options_.limits.max_connections = 128;
  options_.limits.user.connections = 64;
  START_NAMESERVER();
  uid_t user = kHostile;
  for (const uid_t users : kCrowds) {
    for (; user < kHostile + users; ++user) {
      do peers_.push_back(connect(user));
      while (is_admitted(peers_.back()));
    }
    expect_that_others_are_served();
  }
  peers_.clear();
}

/// Each has four connections, and makes more imports than it reads answers.
TEST_P(Crowd, that_reads_no_replies_leaves_descriptors_in_flight_to_others) {
  START_NAMESERVER();
  TestPeer server(path());
  server.export_name("files");
  uid_t user = kHostile;
  for (const uid_t users : kCrowds) {
    for (; user < kHostile + users; ++user) {
      for (int connection = 0; connection < 4; ++connection) {
        TestPeer& client = peers_.emplace_back(connect(user));
        for (int i = 0; i < 32; ++i) {
          client.import("files");
          ASSERT_TRUE(server.answer_bind());
        }
      }
    }
    expect_that_others_are_served();
  }
  peers_.clear();
}

TEST_P(Crowd, of_servers_that_do_not_read_leaves_descriptors_in_flight_to_others) {
  START_NAMESERVER();
  uid_t user = kHostile;
  for (const uid_t users : kCrowds) {
    for (; user < kHostile + users; ++user) {
      TestPeer& client = peers_.emplace_back(connect(user));
      for (int connection = 0; connection < 4; ++connection) {
        TestPeer& server = peers_.emplace_back(connect(user));
        const std::string name = std::to_string(user) + "." + std::to_string(connection);
        server.export_name(name);
        for (int i = 0; i < 8; ++i) client.import(name, shim::ImportRequest::kForever);
      }
      ASSERT_TRUE(client.is_served()) << "all of its imports have been heard";
    }
    expect_that_others_are_served();
  }
  peers_.clear();
}

/// Hostile users who send all kinds of requests without end, and whose servers answer none. One thread plays several of
/// them in turns. Between two turns a user's connections stay open, with what they have sent. The first one stays open
/// always.
class HostileUsers {
 public:
  HostileUsers(std::string path, uid_t first, uid_t end)
      : path_(std::move(path)), first_(first), connections_(end - first), thread_([this] { live(); }) {}
  HostileUsers(const HostileUsers&) = delete;
  HostileUsers& operator=(const HostileUsers&) = delete;
  ~HostileUsers() {
    stop_ = true;
    thread_.join();
  }
  /// How often every user has had a turn.
  [[nodiscard]] std::uint64_t rounds() const { return rounds_.load(); }

 private:
  void live() {
    for (; !stop_; ++rounds_) {
      for (uid_t i = 0; i < connections_.size() && !stop_; ++i) {
        const AsUser as(first_ + i);
        take_turn(connections_[i], "of." + std::to_string(first_ + i));
      }
    }
  }
  void take_turn(std::vector<UniqueFd>& connections, const std::string& own) {
    connections.resize(std::min<std::size_t>(connections.size(), 1));
    if (!connections.empty()) {
      while (read(connections[0])) continue;
      pollfd entry{connections[0].get(), POLLRDHUP, 0};
      if (::poll(&entry, 1, 0) == 1) connections.clear();
    }
    for (int i = 0; i < 5; ++i)  // one more than it may have
      if (auto made = shim::connect_nameserver(path_, false)) connections.push_back(std::move(*made));
    if (connections.size() < 4) return;
    for (int i = 0; i < 60; ++i) {
      send(connections[0], shim::ExportRequest{std::string(kFlood), kFiles, kClasses, "interface"});
      if (i % 10 != 0) continue;
      send(connections[1], shim::ExportRequest{own, kFiles, kClasses, "interface"});
      send(connections[1], shim::WithdrawRequest{1});
      send(connections[2], shim::ImportRequest{own, kFiles, 0, shim::Gate::handoff});
      send(connections[2], shim::ImportRequest{"nobody", kFiles, kWaits, shim::Gate::handoff});
      send(connections[2], shim::ListRequest{});
    }
    (void)::send(connections[3].get(), "garbage", 7, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  void send(const UniqueFd& to, shim::BinderBody body) {
    (void)shim::send_message(to.get(), {++request_, std::move(body), {}, {}}, kDoNotWait);
  }
  static bool read(const UniqueFd& from) {
    const auto message = shim::receive_message(from.get(), milliseconds(0));
    return message && message->has_value();
  }

  const std::string path_;
  const uid_t first_;
  std::vector<std::vector<UniqueFd>> connections_;
  std::uint32_t request_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> rounds_{0};
  std::thread thread_;
};

/// The fair share of a connection between another one's request and the answer: one request in the current round of the
/// event loop, and one in the next. The same again for a connection that replaces it.
constexpr std::uint64_t kFairShare = 2 * 2;

TEST_P(Crowd, that_is_never_quiet_gets_its_share_and_others_are_answered) {
  options_.limits.user.connections = 4;
  const auto policy = std::make_shared<CountingPolicy>();
  options_.policy = policy;
  START_NAMESERVER();
  TestPeer root = connect(0);
  TestPeer holder = connect(0);
  TestPeer server = connect(kHonestServer);
  TestPeer client = connect(kHonestClient);
  ASSERT_NE(server.export_name("long.lived"), 0U);
  for (const uid_t users : kCrowds) {
    const HostileUsers some(path(), kHostile, kHostile + users / 2);
    const HostileUsers more(path(), kHostile + users / 2, kHostile + users);
    const auto pass_a_round = [&] {
      const std::uint64_t by_some = some.rounds() + 2;
      const std::uint64_t by_more = more.rounds() + 2;
      ASSERT_TRUE(eventually([&] { return some.rounds() >= by_some && more.rounds() >= by_more; }));
    };
    pass_a_round();
    if (HasFatalFailure()) return;
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(root.is_served());
      hold(holder, *policy);
      pass_a_round();  // each has sent more than its share
      if (HasFatalFailure()) return policy->go_on();
      policy->watched = true;
      client.import("long.lived");
      std::array<std::uint64_t, kMostHostile> before{};
      for (std::size_t one = 0; one < kMostHostile; ++one) before.at(one) = policy->floods.at(one).load();
      policy->go_on();
      EXPECT_EQ(holder.next_failure(), Errc::not_permitted);
      ASSERT_TRUE(server.answer_bind());
      ASSERT_TRUE(client.next_as<shim::Bound>());
      ASSERT_FALSE(policy->watched);
      for (std::size_t one = 0; one < kMostHostile; ++one)
        EXPECT_LE(policy->floods_before.at(one).load(), before.at(one) + kFairShare)
            << "user " << one << " of " << users;
    }
    expect_that_others_are_served();
  }
}

TEST_P(Crowd, with_many_connections_has_no_more_turns_before_others) {
  const auto policy = std::make_shared<CountingPolicy>();
  options_.policy = policy;
  START_NAMESERVER();
  TestPeer holder = connect(0);
  TestPeer server = connect(kHonestServer);
  TestPeer client = connect(kHonestClient);
  ASSERT_NE(server.export_name("long.lived"), 0U);
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(is_admitted(peers_.emplace_back(connect(kHostile))));
  hold(holder, *policy);
  for (TestPeer& one : peers_) one.ask(shim::ExportRequest{std::string(kFlood), kFiles, kClasses, "interface"});
  policy->watched = true;
  client.import("long.lived");
  policy->go_on();
  EXPECT_EQ(holder.next_failure(), Errc::not_permitted);
  ASSERT_TRUE(server.answer_bind());
  ASSERT_TRUE(client.next_as<shim::Bound>());
  EXPECT_LE(policy->floods_before.at(0).load(), 2U);
  peers_.clear();
}

TEST_P(Crowd, with_many_imports_of_a_server_delays_those_of_others_by_one) {
  constexpr std::size_t kMany = 32;
  options_.limits.max_binds_per_server = 1;
  START_NAMESERVER();
  TestPeer server = connect(kHonestServer);
  server.export_name("asked");
  TestPeer greedy = connect(kHostile);
  for (std::size_t i = 0; i < kMany; ++i) greedy.import("asked", kWaits);
  ASSERT_TRUE(greedy.is_served()) << "all of its imports have been heard";
  TestPeer client = connect(kHonestClient);
  client.import("asked", kWaits);
  ASSERT_TRUE(client.is_served());
  std::size_t before = 0;
  for (; before <= kMany; ++before) {
    const auto asked = server.answer_bind(Errc::not_permitted);
    ASSERT_TRUE(asked);
    if (asked->client.uid == kHonestClient) break;
  }
  EXPECT_LE(before, 2U) << "the one about which it was asked already, and at most one more";
}

/// The most connections that may wait to be accepted.
int longest_queue() {
  int longest = 0;
  std::ifstream("/proc/sys/net/core/somaxconn") >> longest;
  return longest;
}

TEST_P(Crowd, that_waits_to_be_accepted_keeps_others_waiting_for_few_turns) {
  constexpr int kQueue = 500;
  if (longest_queue() < kQueue + 10) GTEST_SKIP() << "net.core.somaxconn lets too few wait";
  options_.limits.user.connections = 4;
  const auto policy = std::make_shared<CountingPolicy>();
  options_.policy = policy;
  START_NAMESERVER();
  TestPeer asking = connect(kHonestServer);
  TestPeer holder = connect(0);
  hold(holder, *policy);
  constexpr int kTurns = 20;
  for (int i = 0; i < kTurns; ++i) asking.ask(shim::ListRequest{});
  for (int i = 0; i < kQueue; ++i) peers_.push_back(connect(kHostile));
  TestPeer newcomer = connect(kHonestClient);
  newcomer.ask(shim::ExportRequest{"newcomer's", kFiles, kClasses, "interface"});
  policy->go_on();
  ASSERT_TRUE(newcomer.next_as<shim::Exported>());
  int turns_before = 0;  // one request is answered per turn
  for (int i = 0; i < kTurns; ++i) {
    const auto listed = asking.next_as<shim::Listed>();
    ASSERT_TRUE(listed);
    if (listed->names.empty()) ++turns_before;
  }
  constexpr int kAcceptedPerTurn = 64;  // at least
  EXPECT_LE(turns_before, 2 + kQueue / kAcceptedPerTurn);
  peers_.clear();
}

TEST_P(Crowd, of_users_beyond_their_share_loses_idle_connections_first) {
  options_.limits.max_connections = 16;
  START_NAMESERVER();
  TestPeer server = connect(kHostile);
  server.export_name("kept");
  for (int i = 0; i < 14; ++i) ASSERT_TRUE(is_admitted(peers_.emplace_back(connect(kHostile))));
  TestPeer newcomer = connect(kHonestClient);
  EXPECT_TRUE(newcomer.is_served());
  EXPECT_TRUE(peers_.back().hung_up_on()) << "the youngest";
  EXPECT_TRUE(peers_.front().is_served());
  EXPECT_TRUE(server.is_served());
  peers_.clear();
}

TEST_P(Crowd, counts_who_has_read_its_answers_late_as_idle) {
  options_.limits.max_connections = 16;
  options_.unread_timeout = kNoLimit;
  START_NAMESERVER();
  for (int i = 0; i < 15; ++i) ASSERT_TRUE(is_admitted(peers_.emplace_back(connect(kHostile))));
  peers_.front().ask(shim::ListRequest{});
  std::this_thread::sleep_for(milliseconds(1100));  // until a check has seen its unread answer
  ASSERT_TRUE(peers_.front().next_as<shim::Listed>());
  TestPeer newcomer = connect(kHonestClient);
  EXPECT_TRUE(newcomer.is_served());
  EXPECT_TRUE(peers_.front().is_served());
  EXPECT_TRUE(peers_.back().hung_up_on());
  peers_.clear();
}

using UnreadReplies = WithNameserver;
LRPC_ON_BOTH_BACKENDS(UnreadReplies);

TEST_P(UnreadReplies, end_a_connection_after_a_while) {
  options_.unread_timeout = milliseconds(20);
  START_NAMESERVER();
  TestPeer deaf(path());
  deaf.ask(shim::ListRequest{});
  pollfd entry{deaf.fd(), POLLRDHUP, 0};
  EXPECT_EQ(::poll(&entry, 1, static_cast<int>(kPatience.count())), 1);
  TestPeer other(path());
  EXPECT_TRUE(other.is_served());
}

/// The kernel counts descriptors until they are read or the socket that holds them is closed, even if the connection
/// has ended. So connecting again must not give a user more.
TEST_P(UnreadReplies, count_after_their_connection_has_ended) {
  options_.limits.user.descriptors_in_flight = 3;
  options_.allocator_tick = kNoLimit;
  START_NAMESERVER();
  TestPeer server(path());
  server.export_name("files");
  TestPeer deaf(path());
  deaf.import("files");
  ASSERT_TRUE(server.answer_bind());
  pollfd entry{deaf.fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&entry, 1, static_cast<int>(kPatience.count())), 1);
  const char nonsense[] = "nonsense";
  ASSERT_EQ(::send(deaf.fd(), nonsense, sizeof nonsense, 0), static_cast<ssize_t>(sizeof nonsense));
  entry.events = POLLRDHUP;
  ASSERT_EQ(::poll(&entry, 1, static_cast<int>(kPatience.count())), 1);
  TestPeer client(path());
  client.import("files", kWaits);
  EXPECT_TRUE(server.quiet()) << "its user has three that it has not read";
  deaf.hang_up();
  EXPECT_TRUE(server.answer_bind());
  EXPECT_TRUE(client.next_as<shim::Bound>());
}

}  // namespace
}  // namespace lrpc::nameserver::test
