// A nameserver without memory: it begins nothing new, finishes what it has begun, and lives on.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "conformance_service.h"
#include "eventually.h"
#include "faulty_process.h"
#include "lrpc/server.h"
#include "refused_calls.h"
#include "slow_to_close.h"
#include "world.h"

namespace {

using namespace std::chrono_literals;
using namespace testing_lrpc;

class NameserverWithoutMemory : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] auto import(const std::string& name, std::chrono::milliseconds timeout = 0ms) const {
    return Conformance::Client::import(name, {.nameserver = socket_, .timeout = timeout});
  }
  /// Makes all kinds of requests: names that come and go, and imports that succeed, that wait, and that time out.
  void ask_for_everything() {
    ConformanceService service;
    lrpc::Server server({.nameserver = socket_});
    const auto exported = Conformance::export_to(server, "comes.and.goes", service);
    if (auto client = import("comes.and.goes")) (void)client->Null();
    if (auto client = import("stays")) (void)client->Null();
    (void)import("never.there", 5ms);
    list();
    if (exported) (void)server.withdraw(*exported);
  }

  void list() const {
    const auto socket = lrpc::shim::connect_nameserver(socket_);
    if (socket && lrpc::shim::send_message(socket->get(), {1, lrpc::shim::ListRequest{}, {}, {}}))
      (void)lrpc::shim::receive_message(socket->get(), kPatience);
  }

  TemporaryDirectory directory_;
  const std::string socket_ = (directory_.path() / "lrpcd.sock").string();
};

TEST_P(NameserverWithoutMemory, finishes_what_it_has_begun_and_lives) {
  FaultyProcess lrpcd({LRPC_TEST_LRPCD, "--socket", socket_, "--backend", GetParam(), "--log-level", "warning"});
  ConformanceService service;
  lrpc::Server server({.nameserver = socket_});
  ASSERT_TRUE(Conformance::export_to(server, "stays", service));
  const auto life = [&] { ask_for_everything(); };
  const auto well = [&] {
    return eventually([&] {
      auto client = import("stays");
      return client && client->Null();
    });
  };
  fail_each_and_leak_nothing(lrpcd, life, well, 12);
  if (long_tests()) fail_each_again_and_again(lrpcd, life);
}

/// Exports names whose list fills a message, over one connection.
lrpc::UniqueFd export_many(const std::string& path, const std::string& prefix) {
  auto socket = lrpc::shim::connect_nameserver(path);
  if (!socket) return {};
  const lrpc::shim::OwnedInterfaceId interface { std::string(200, 'i'), 1, 0, 0xf11e5 };
  for (int i = 0; i < 200; ++i) {
    const std::string name = prefix + std::string(200, 'n') + std::to_string(i);
    const lrpc::shim::ExportRequest request{name, interface, {{64, 0, 5}}, std::string(200, 't')};
    if (!lrpc::shim::send_message(socket->get(), {1, request, {}, {}})) return {};
    const auto answer = lrpc::shim::receive_message(socket->get(), kPatience);  // or the allocator's page
    if (!answer || !*answer || std::holds_alternative<lrpc::shim::Failed>((*answer)->body)) return {};
  }
  return *std::move(socket);
}

/// Each list waits for a peer that does not read. All lists together are larger than the reserve.
TEST_P(NameserverWithoutMemory, outlives_peers_that_list_and_do_not_read) {
  FaultyProcess lrpcd({LRPC_TEST_LRPCD, "--socket", socket_, "--backend", GetParam(), "--log-level", "off"});
  const lrpc::UniqueFd first = export_many(socket_, "a");
  const lrpc::UniqueFd second = export_many(socket_, "b");
  ASSERT_TRUE(first && second);
  std::vector<lrpc::UniqueFd> peers;
  for (int i = 0; i < 20; ++i) {
    auto peer = lrpc::shim::connect_nameserver(socket_);
    ASSERT_TRUE(peer);
    // The answer shows that the connection was accepted.
    ASSERT_TRUE(lrpc::shim::send_message(peer->get(), {1, lrpc::shim::DescribeRequest{"none"}, {}, {}}));
    ASSERT_TRUE(lrpc::shim::receive_message(peer->get(), kPatience));
    peers.push_back(*std::move(peer));
  }
  auto bystander = lrpc::shim::connect_nameserver(socket_);
  ASSERT_TRUE(bystander);

  lrpcd.fail(1, UINT64_MAX);
  for (int round = 0; round < 8; ++round) {
    for (const lrpc::UniqueFd& peer : peers)
      (void)lrpc::shim::send_message(peer.get(), {1, lrpc::shim::ListRequest{}, {}, {}}, lrpc::kDoNotWait);
    // Waits for an answer or the end of the connection. By then lrpcd's loop has also handled the requests of the
    // others.
    if (lrpc::shim::send_message(bystander->get(), {1, lrpc::shim::WithdrawRequest{1}, {}, {}}))
      (void)lrpc::shim::receive_message(bystander->get(), kPatience);
  }
  EXPECT_TRUE(lrpcd.alive());
  EXPECT_GT(lrpcd.failed(), 0U);
  lrpcd.recover();
  peers.clear();
  EXPECT_TRUE(eventually([&] {
    const auto socket = lrpc::shim::connect_nameserver(socket_);
    if (!socket || !lrpc::shim::send_message(socket->get(), {1, lrpc::shim::ListRequest{}, {}, {}})) return false;
    const auto answer = lrpc::shim::receive_message(socket->get(), kPatience);
    return answer && *answer && std::holds_alternative<lrpc::shim::Listed>((*answer)->body);
  }));
  EXPECT_TRUE(lrpcd.alive());
}

TEST_P(NameserverWithoutMemory, says_of_an_export_and_an_import_that_a_limit_is_reached) {
  namespace shim = lrpc::shim;
  FaultyProcess lrpcd({LRPC_TEST_LRPCD, "--socket", socket_, "--backend", GetParam(), "--log-level", "warning"});
  ASSERT_TRUE(eventually([&] { return import("nobody").code() == lrpc::Errc::name_unknown; }));
  const auto socket = shim::connect_nameserver(socket_);
  ASSERT_TRUE(socket);
  std::uint32_t number = 0;
  /// Result ok: granted.
  const auto ask = [&](const shim::BinderBody& body) {
    EXPECT_TRUE(shim::send_message(socket->get(), {++number, body, {}, {}}));
    const auto answer = shim::receive_message(socket->get(), kPatience);
    if (!answer || !*answer) return lrpc::Error{lrpc::Errc::timed_out, {}};
    const auto* failed = std::get_if<shim::Failed>(&(*answer)->body);
    return failed == nullptr ? lrpc::Error{} : lrpc::Error{failed->code, failed->text};
  };
  shim::ExportRequest offer{.name = {},
                            .interface = {"Wordy", 1, 0, 0},
                            .classes = {Conformance::kPdl.classes.begin(), Conformance::kPdl.classes.end()},
                            .text = {},
                            .descriptors = {}};
  lrpcd.fail(1, UINT64_MAX);
  const auto for_want_of_memory = [](const lrpc::Error& refused) {
    return refused.code == lrpc::Errc::limit_reached && refused.text.find("short of memory") != std::string::npos;
  };
  // Until half of the reserve is used: first for names, then for connections.
  bool exported = true;
  bool imported = true;
  bool connected = true;
  std::vector<lrpc::UniqueFd> held;
  for (std::uint32_t i = 0; (exported || imported || connected) && i < 200; ++i) {
    offer.name = "wordy-" + std::to_string(i);
    offer.text.resize(exported ? 100'000 : 0);
    if (for_want_of_memory(ask(offer))) exported = false;
    if (for_want_of_memory(ask(shim::ImportRequest{
            .name = "wordy-0", .interface = {"Wordy", 1, 0, 0}, .timeout_ms = 0, .gate = {}, .principal = {}}))) {
      imported = false;
    }
    if (import("nobody").code() == lrpc::Errc::peer_gone) connected = false;
    if (auto another = shim::connect_nameserver(socket_)) held.push_back(*std::move(another));
  }
  EXPECT_FALSE(exported);
  EXPECT_FALSE(imported);
  EXPECT_FALSE(connected) << "it hangs up on whoever connects";
  lrpcd.recover();
}

/// Runs `body` in a thread in which kernels seem to lack SO_PASSRIGHTS, so that an lrpcd that it starts receives
/// descriptors from strangers. lrpcd ends with this thread.
template <class Body>
void where_descriptors_arrive(Body&& body) {
  bool can = false;
  std::thread thread([&] {
    can = forget_pass_rights();
    if (can) body();
  });
  thread.join();
  if (!can) GTEST_SKIP() << "seccomp filters cannot be installed here";
}

/// A connection that lrpcd has accepted; empty: it failed.
lrpc::UniqueFd accepted_connection(const std::string& path) {
  auto socket = lrpc::shim::connect_nameserver(path);
  if (!socket || !lrpc::shim::send_message(socket->get(), {1, lrpc::shim::ListRequest{}, {}, {}})) return {};
  const auto answer = lrpc::shim::receive_message(socket->get(), kPatience);
  return answer && *answer ? *std::move(socket) : lrpc::UniqueFd();
}

bool hangs_up(int socket) {
  pollfd entry{socket, 0, 0};
  return ::poll(&entry, 1, kPatienceMs) == 1;
}

TEST_P(NameserverWithoutMemory, closes_what_strangers_leave_when_it_can_have_a_thread_again) {
  where_descriptors_arrive([&] {
    FaultyProcess lrpcd({LRPC_TEST_LRPCD, "--socket", socket_, "--backend", GetParam(), "--log-level", "warning"});
    const auto bystander = accepted_connection(socket_);
    ASSERT_TRUE(bystander);
    const auto holdings = [&] { return Holdings::of(std::to_string(lrpcd.pid())); };
    const Holdings before = holdings();
    auto stranger = accepted_connection(socket_);
    const auto plain = lrpc::shim::make_socket_pair();
    ASSERT_TRUE(stranger && plain);
    lrpcd.fail(1, UINT64_MAX);
    ASSERT_TRUE(LadenSocket::send(stranger.get(), plain->first.get()));
    ASSERT_TRUE(hangs_up(stranger.get()));
    stranger.reset();
    EXPECT_FALSE(holdings().within(before)) << "there is no thread to close it";
    lrpcd.recover();
    EXPECT_TRUE(eventually([&] { return holdings().within(before); })) << "though nothing else comes";
  });
}

TEST_P(NameserverWithoutMemory, closes_what_waits_with_a_thread_that_it_has) {
  where_descriptors_arrive([&] {
    FaultyProcess lrpcd({LRPC_TEST_LRPCD, "--socket", socket_, "--backend", GetParam(), "--log-level", "warning"});
    const auto bystander = accepted_connection(socket_);
    ASSERT_TRUE(bystander);
    const auto descriptors = [&] {
      const std::filesystem::directory_iterator all("/proc/" + std::to_string(lrpcd.pid()) + "/fd");
      return std::distance(begin(all), end(all));
    };
    const auto before = descriptors();
    constexpr std::size_t kClosedAtOnce = 4;
    constexpr std::size_t kMoreThanAreClosedAtOnce = kClosedAtOnce + 3;
    std::vector<lrpc::UniqueFd> strangers;
    for (std::size_t i = 0; i < kMoreThanAreClosedAtOnce; ++i)
      ASSERT_TRUE(strangers.emplace_back(accepted_connection(socket_)));
    std::vector<std::unique_ptr<LingeringConnection>> slow;
    ::kill(lrpcd.pid(), SIGSTOP);  // until lrpcd's are the last copies
    ASSERT_EQ(::waitpid(lrpcd.pid(), nullptr, WUNTRACED), lrpcd.pid());
    for (const lrpc::UniqueFd& stranger : strangers) {
      auto& one = slow.emplace_back(std::make_unique<LingeringConnection>());
      ASSERT_TRUE(LadenSocket::send(stranger.get(), one->get()));
      one->give_away();
    }
    ::kill(lrpcd.pid(), SIGCONT);
    for (const lrpc::UniqueFd& stranger : strangers) ASSERT_TRUE(hangs_up(stranger.get()));
    strangers.clear();
    lrpcd.fail(1, UINT64_MAX);
    slow.resize(kClosedAtOnce);  // destroys those that wait for a thread: closing them no longer blocks
    slow.erase(slow.begin());    // and releases the thread that closes this one
    EXPECT_TRUE(eventually([&] { return descriptors() == before; })) << "closes them, too";
    lrpcd.recover();
  });
}

INSTANTIATE_TEST_SUITE_P(EveryBackend, NameserverWithoutMemory, testing::Values("io_uring", "epoll"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
