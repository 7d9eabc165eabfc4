// Many hostile users at once, each with all that it can get: root and honest users are served at once. Needs root, to
// be several users.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <list>
#include <thread>

#include "test_peer.h"

namespace lrpc::nameserver::test {
namespace {

constexpr uid_t kHonestServer = 40'001;
constexpr uid_t kHonestClient = 40'002;
constexpr uid_t kHostile = 41'000;

/// This thread, and no other, is another user for as long as it connects.
class AsUser {
 public:
  explicit AsUser(uid_t user) { (void)::syscall(SYS_setresuid, -1, user, -1); }
  ~AsUser() { (void)::syscall(SYS_setresuid, -1, 0, -1); }
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;
};

/// How many hostile users there are, one crowd after the other; few for ThreadSanitizer, which more show nothing new.
#ifdef __SANITIZE_THREAD__
constexpr std::array<uid_t, 2> kCrowds{2, 10};
#else
constexpr std::array<uid_t, 3> kCrowds{2, 10, 40};
#endif

class Crowd : public WithNameserver {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be several users";
    WithNameserver::SetUp();
    ::chmod((directory_ / ".").c_str(), 0711);
    options_.mode = 0666;
    options_.policy = default_policy(ExportRule::anyone);
    options_.allocator_tick = kNoLimit;  // its pages are descriptors, too
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  void TearDown() override {
    if (::geteuid() == 0) WithNameserver::TearDown();
  }
  TestPeer connect(uid_t user) {
    const AsUser as(user);
    return TestPeer(path());
  }
  /// Root lists names, and somebody imports what somebody else exports, all of them newly come.
  void expect_that_others_are_served() {
    TestPeer root(path());
    EXPECT_TRUE(root.is_served());
    TestPeer server = connect(kHonestServer);
    EXPECT_NE(server.export_name("honest"), 0U);
    TestPeer client = connect(kHonestClient);
    client.import("honest");
    EXPECT_TRUE(server.answer_bind());
    EXPECT_TRUE(client.next_as<shim::Bound>());
    EXPECT_EQ(client.fds.size(), 3U);
  }

  std::list<TestPeer> peers_;
};
LRPC_ON_BOTH_BACKENDS(Crowd);

/// True if the nameserver answers; false if it turned the peer away.
bool is_admitted(TestPeer& peer) {
  (void)shim::send_message(peer.fd(), {1, shim::ListRequest{}, {}, {}});
  const auto answer = shim::receive_message(peer.fd(), kPatience);
  return answer && *answer && std::holds_alternative<shim::Listed>((*answer)->body);
}

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

/// Each has four connections, and imports more than it reads.
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
  std::this_thread::sleep_for(milliseconds(1100));  // a look sees that it has not read; without one, nothing is tested
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

/// The kernel counts descriptors until they are read or the socket that has them is closed, whatever became of the
/// connection: to begin anew must not give a user more.
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
  client.import("files", 600'000);
  EXPECT_TRUE(server.quiet()) << "its user has three that it has not read";
  deaf.hang_up();
  EXPECT_TRUE(server.answer_bind());
  EXPECT_TRUE(client.next_as<shim::Bound>());
}

}  // namespace
}  // namespace lrpc::nameserver::test
