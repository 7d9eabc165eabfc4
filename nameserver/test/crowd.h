// Users who connect to one nameserver, and helpers for tests with many of them.
#pragma once

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <list>
#include <string>
#include <string_view>

#include "test_peer.h"

namespace lrpc::nameserver::test {

inline constexpr uid_t kHonestServer = 40'001;
inline constexpr uid_t kHonestClient = 40'002;
inline constexpr uid_t kHostile = 41'000;

/// Changes the user of this thread alone, so that its connections count as that user's.
class AsUser {
 public:
  explicit AsUser(uid_t user) { (void)::syscall(SYS_setresuid, -1, user, -1); }
  ~AsUser() { (void)::syscall(SYS_setresuid, -1, 0, -1); }
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;
};

/// The numbers of hostile users, one crowd after another. Smaller for ThreadSanitizer, to which more users show nothing
/// new.
#ifdef __SANITIZE_THREAD__
inline constexpr std::array<uid_t, 2> kCrowds{2, 10};
#else
inline constexpr std::array<uid_t, 3> kCrowds{2, 10, 40};
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
  /// Succeeds even if others keep the socket's queue full.
  TestPeer connect(uid_t user) {
    const AsUser as(user);
    Result<UniqueFd> socket = Errc::no_nameserver;
    EXPECT_TRUE(eventually([&] { return (socket = shim::connect_nameserver(path())).code() != Errc::no_nameserver; }));
    EXPECT_TRUE(socket) << socket.error().message();
    return TestPeer(socket ? std::move(*socket) : UniqueFd());
  }
  /// New connections: root lists names, and one user imports what another one exports.
  void expect_that_others_are_served() {
    TestPeer root = connect(0);
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
/// Whether the nameserver answers. False: it refused the peer.
inline bool is_admitted(TestPeer& peer) {
  (void)shim::send_message(peer.fd(), {1, shim::ListRequest{}, {}, {}});
  const auto answer = shim::receive_message(peer.fd(), kPatience);
  return answer && *answer && std::holds_alternative<shim::Listed>((*answer)->body);
}

inline constexpr std::string_view kFlood = "flood";
inline constexpr std::string_view kHold = "hold";
inline constexpr std::size_t kMostHostile = kCrowds.back();

/// Allows everything but the export of the flood's name. Counts each hostile user's attempts, and how many each had
/// made when the honest client's import was handled. The export of kHold blocks the nameserver until go_on().
class CountingPolicy final : public Policy {
 public:
  using Counts = std::array<std::atomic<std::uint64_t>, kMostHostile>;

  Status may_export(const Peer& server, std::string_view name) override {
    if (name == kHold) {
      held = true;
      held.wait(true);
      return Errc::not_permitted;
    }
    if (name != kFlood) return {};
    if (server.uid >= kHostile) ++floods.at(server.uid - kHostile);
    return Errc::not_permitted;
  }
  Status may_import(const Peer& client, std::string_view name, const shim::Credentials* /*server*/) override {
    if (client.uid == kHonestClient && name == "long.lived" && watched.exchange(false))
      for (std::size_t i = 0; i < kMostHostile; ++i) floods_before[i] = floods[i].load();
    return {};
  }

  /// Unblocks the nameserver.
  void go_on() {
    held = false;
    held.notify_all();
  }

  Counts floods{};
  Counts floods_before{};
  std::atomic<bool> watched{false};
  std::atomic<bool> held{false};
};

/// Blocks the nameserver until policy.go_on().
inline void hold(TestPeer& holder, const CountingPolicy& policy) {
  holder.ask(shim::ExportRequest{std::string(kHold), kFiles, kClasses, "interface"});
  ASSERT_TRUE(eventually([&] { return policy.held.load(); }));
}

}  // namespace lrpc::nameserver::test
