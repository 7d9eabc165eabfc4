// A server in a sandbox: all of libserver works, and what the sandbox forbids does not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <thread>

#include "attempts.h"
#include "chatter_service.h"
#include "conformance_service.h"
#include "eventually.h"
#include "lrpc/sandbox.h"
#include "lrpc/sealed.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Gate;
using namespace std::chrono_literals;
namespace sandbox = lrpc::sandbox;
namespace attempts = lrpc::sandbox::test;

/// Checks that clients cannot make: runs in the server at its end, and reports what it found.
using Epilogue = std::function<std::string()>;

/// A server process in its sandbox that exports "host" and "chatter". end() returns "" if all was well.
class SandboxedServer {
 public:
  SandboxedServer(const std::string& nameserver, const sandbox::Options& options, const Epilogue& epilogue) {
    EXPECT_EQ(::pipe2(ready_, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(go_, O_CLOEXEC), 0);
    // A thread forks the child, and then waits for its report.
    waiter_ = std::thread([this, &nameserver, &options, &epilogue] {
      said_ = attempts::in_a_child([&] { return serve(nameserver, options, epilogue); });
      const char over = 'e';
      (void)!::write(ready_[1], &over, 1);
    });
    char byte = 0;
    serves_ = ::read(ready_[0], &byte, 1) == 1 && byte == 'r';
  }
  ~SandboxedServer() {
    (void)end();
    for (const int fd : {ready_[0], ready_[1], go_[0], go_[1]}) ::close(fd);
  }
  SandboxedServer(const SandboxedServer&) = delete;
  SandboxedServer& operator=(const SandboxedServer&) = delete;

  [[nodiscard]] bool serves() const { return serves_; }
  std::string end() {
    if (waiter_.joinable()) {
      (void)!::write(go_[1], "g", 1);
      waiter_.join();
    }
    return said_;
  }

 private:
  std::string serve(const std::string& nameserver, const sandbox::Options& options, const Epilogue& epilogue) {
    const auto entered = sandbox::enter(options);
    if (!entered) return entered.error().message();
    lrpc::Server server({.nameserver = nameserver});
    ConformanceService service(&server, nameserver);
    ChatterService chatter;
    if (auto exported = Conformance::export_to(server, "host", service); !exported) return exported.error().message();
    if (auto exported = Chatter::export_to(server, "chatter", chatter); !exported) return exported.error().message();
    if (::write(ready_[1], "r", 1) != 1) return "write";
    char byte = 0;
    if (::read(go_[0], &byte, 1) != 1) return "read";
    return epilogue();
  }

  int ready_[2]{-1, -1};
  int go_[2]{-1, -1};
  bool serves_ = false;
  std::string said_;
  std::thread waiter_;
};

class SandboxedServers : public testing::Test {
 protected:
  // Before World starts threads: forking beside a thread that allocates breaks a sanitizer's allocator.
  static void SetUpTestSuite() {
    why_not_ = attempts::in_a_child([]() -> std::string {
      sandbox::Options options;
      options.required = true;
      const auto entered = sandbox::enter(options);
      return entered ? "" : entered.error().message();
    });
  }
  void SetUp() override {
    if (!why_not_.empty()) GTEST_SKIP() << why_not_;
    options_.required = true;
  }

  static inline std::string why_not_;  ///< Why no sandbox is possible here; empty: one is.
  World world_;
  sandbox::Options options_;
};

TEST_F(SandboxedServers, serve_calls_through_every_gate) {
  SandboxedServer server(world_.nameserver(), options_, [] { return std::string(); });
  ASSERT_TRUE(server.serves()) << server.end();
  for (const Gate gate : {Gate::adaptive, Gate::exchange, Gate::handoff, Gate::sleep}) {
    auto client = world_.import("host", {.gate = gate});
    ASSERT_TRUE(client) << client.error().message();
    for (int i = 0; i < 500; ++i) ASSERT_EQ(client->Add(i, 1).value(), i + 1) << static_cast<int>(gate);
    std::vector<std::byte> large(100'000, std::byte{3});
    EXPECT_EQ(client->Sum(large).value(), 300'000U);
    EXPECT_EQ(client->Throw().code(), lrpc::Errc::exception_escaped);
  }
  EXPECT_EQ(server.end(), "");
}

TEST_F(SandboxedServers, serve_many_callers_at_once_with_estacks_of_their_own) {
  SandboxedServer server(world_.nameserver(), options_, [] { return std::string(); });
  ASSERT_TRUE(server.serves()) << server.end();
  std::vector<std::thread> callers;
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&, i] {
      auto client = world_.import("host");
      if (client && client->NapFor(50) && client->Add(i, i).value() == 2 * i) ++right;
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(right, 8);
  EXPECT_EQ(server.end(), "");
}

TEST_F(SandboxedServers, serve_sealed_clients) {
  SandboxedServer server(world_.nameserver(), options_, [] { return std::string(); });
  ASSERT_TRUE(server.serves()) << server.end();
  lrpc::SealedOptions sealed;
  sealed.name = "host";
  sealed.nameserver = world_.nameserver();
  auto domain = lrpc::SealedDomain::start({LRPC_TEST_SEALED, "call", "host"}, std::move(sealed));
  if (domain.code() == lrpc::Errc::not_supported) GTEST_SKIP() << domain.error().message();
  ASSERT_TRUE(domain) << domain.error().message();
  const int status = domain->wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(server.end(), "");
}

TEST_F(SandboxedServers, call_their_clients_back) {
  SandboxedServer server(world_.nameserver(), options_, [] { return std::string(); });
  ASSERT_TRUE(server.serves()) << server.end();
  auto client = Chatter::Client::import("chatter", {.nameserver = world_.nameserver()});
  ASSERT_TRUE(client) << client.error().message();
  ChatterListener listener;
  lrpc::Server own;
  ASSERT_TRUE(client->serve_callbacks(own, listener));
  EXPECT_EQ(client->Sum(100).value(), 9'900U);
  EXPECT_EQ(server.end(), "");
}

TEST_F(SandboxedServers, register_anew_when_the_nameserver_is_started_again) {
  SandboxedServer server(world_.nameserver(), options_, [] { return std::string(); });
  ASSERT_TRUE(server.serves()) << server.end();
  auto before = world_.import("host");
  ASSERT_TRUE(before);
  world_.stop_nameserver();
  EXPECT_EQ(before->Add(1, 2).value(), 3);
  world_.start_nameserver();
  auto after = world_.import("host", {.timeout = kPatience});  // waits until the name is exported again
  ASSERT_TRUE(after) << after.error().message();
  EXPECT_EQ(after->Add(2, 3).value(), 5);
  EXPECT_EQ(before->Add(3, 4).value(), 7);
  EXPECT_EQ(server.end(), "");
}

TEST_F(SandboxedServers, are_clients_of_other_servers) {
  const Process other = world_.start_server({"other"});
  SandboxedServer server(world_.nameserver(), options_, [&]() -> std::string {
    auto client = world_.import("other");
    if (!client) return client.error().message();
    return client->Add(20, 22).value() == 42 ? "" : "wrong";
  });
  ASSERT_TRUE(server.serves()) << server.end();
  EXPECT_EQ(server.end(), "");
}

TEST_F(SandboxedServers, can_get_hold_of_nothing_else_while_they_serve) {
  const attempts::Victim victim;
  const std::string allowed = world_.nameserver() + ".data";
  std::ofstream(allowed) << "text";
  options_.read_only = {allowed};
  SandboxedServer server(world_.nameserver(), options_, [&]() -> std::string {
    std::string refused = attempts::not_refused(attempts::forbidden_to_all(victim.pid()));
    // Threads that were started inside, such as E-stacks, are restricted as well.
    std::thread([&] { refused += attempts::not_refused(attempts::forbidden_to_all(victim.pid())); }).join();
    if (!refused.empty()) return refused;
    return attempts::opening(allowed, O_RDONLY).act() == 0 ? "" : "what it may read";
  });
  ASSERT_TRUE(server.serves()) << server.end();
  auto client = world_.import("host");
  ASSERT_TRUE(client);
  EXPECT_EQ(client->Add(1, 1).value(), 2);
  EXPECT_EQ(server.end(), "");
}

}  // namespace
}  // namespace testing_lrpc
