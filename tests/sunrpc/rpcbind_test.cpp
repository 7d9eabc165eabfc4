// Registers with rpcbind and asks it. In namespaces of the test, so that the machine's rpcbind is not used.
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <cstring>
#include <thread>

#include "eventually.h"
#include "lrpc/detail/shim/system/fd.h"
#include "netrpc/rpcbind/messages.h"
#include "netrpc/test_support/namespaces.h"
#include "sun_host.h"

namespace lrpc::netrpc::test {
namespace {

/// A network and a /run of its own, which is all that rpcbind sees. Each test runs in its own process.
class Rpcbind : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_namespaces()) GTEST_SKIP() << *why;
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", "/run", "tmpfs", 0, nullptr) != 0)
      GTEST_SKIP() << "no mount namespace can be made: " << std::strerror(errno);
    place_.emplace();
    place_->run([] {}, false);  // enters the namespace, and stays
  }
  void TearDown() override {
    if (rpcbind_ <= 0) return;
    ::kill(rpcbind_, SIGTERM);
    ::waitpid(rpcbind_, nullptr, 0);
  }
  /// Skips if rpcbind is not installed.
  void start_rpcbind() {
    if (::access(LRPC_RPCBIND, X_OK) != 0 || ::access(LRPC_RPCINFO, X_OK) != 0)
      GTEST_SKIP() << "rpcbind is not installed";
    rpcbind_ = ::fork();
    if (rpcbind_ == 0) {
      ::execlp("timeout", "timeout", "600", LRPC_RPCBIND, "-f", nullptr);  // ends rpcbind even if the test is killed
      ::_exit(1);
    }
    ASSERT_TRUE(testing_lrpc::eventually([] { return run(LRPC_RPCINFO " -T udp 127.0.0.1 100000 4").well; }))
        << "it does not start";
  }

  std::optional<Namespace> place_;
  pid_t rpcbind_ = 0;
};

/// Waits long: rpcbind may be slow on a busy machine.
const RpcbindOptions kPatient{.timeout = std::chrono::seconds(240)};

#define START_RPCBIND() \
  start_rpcbind();      \
  if (HasFatalFailure() || IsSkipped()) return

TEST_F(Rpcbind, shows_our_server_for_as_long_as_it_is_registered) {
  START_RPCBIND();
  std::optional<SunHost> ours;
  const std::uint16_t port = serve_calc(ours);
  ASSERT_NE(port, 0);
  const std::string question = LRPC_RPCINFO " -T udp 127.0.0.1 " + std::to_string(kCalc) + " 1";
  const std::string by_version_2 = LRPC_RPCINFO " -p 127.0.0.1";
  {
    Result<RpcbindRegistration> registered = RpcbindRegistration::make({kCalc, 1, port, kLoopback}, kPatient);
    ASSERT_TRUE(registered) << registered.error().message();
    const Said said = run(question);
    EXPECT_TRUE(said.well) << said.text;
    EXPECT_NE(said.text.find("ready and waiting"), std::string::npos) << said.text;
    EXPECT_NE(run(by_version_2).text.find(" " + std::to_string(port) + "\n"), std::string::npos);
    SunHost asks(kCallsOverUdp);
    for (const std::uint32_t version : {2U, 3U, 4U}) {
      std::vector<std::byte> results;
      EXPECT_EQ(asks.call(111, rpcbind::kProgram, version, 3, rpcbind::lookup(version, kCalc, 1), &results), Errc::ok);
      EXPECT_EQ(rpcbind::found(version, results), port) << version;
    }
    const Said client = run(LRPC_CALC_CLIENT);
    EXPECT_TRUE(client.well);
    EXPECT_EQ(client.text, "add: -42\n");
    EXPECT_EQ(
        RpcbindRegistration::make({kCalc, 1, 999, kLoopback}, {.timeout = kPatient.timeout, .replaces = false}).code(),
        Errc::name_taken);
    // The next server replaces the registration, and the first server's end does not remove the new one.
    std::optional<SunHost> next;
    const std::uint16_t next_port = serve_calc(next);
    Result<RpcbindRegistration> again = RpcbindRegistration::make({kCalc, 1, next_port, kLoopback}, kPatient);
    ASSERT_TRUE(again) << again.error().message();
    registered = Errc::ok;
    const Result<std::uint16_t> now = asks.find(kCalc, 1);
    ASSERT_TRUE(now) << now.error().message();
    EXPECT_EQ(*now, next_port);
  }
  EXPECT_FALSE(run(question).well);
}

TEST_F(Rpcbind, tells_our_client_the_port_of_a_server_of_rpcgens) {
  START_RPCBIND();
  const CalcServer server("register");
  ASSERT_NE(server.port(), 0);
  SunHost ours(kCallsOverUdp);
  const Result<std::uint16_t> port = ours.find(kCalc, 1);
  ASSERT_TRUE(port) << port.error().message();
  EXPECT_EQ(*port, server.port());
  EXPECT_EQ(ours.call(*port, kCalc, 1, 1, XdrWriter().word(1).word(2).bytes()), Errc::ok);
  EXPECT_EQ(ours.find(kCalc + 1, 1).code(), Errc::name_unknown);
}

/// A fake rpcbind at UDP port 111. It knows only version 2, and answers with `answers`, which is XDR.
class OldRpcbind {
 public:
  explicit OldRpcbind(std::vector<std::byte> answers) : answers_(std::move(answers)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(111);
    address.sin_addr.s_addr = htonl(kLoopback.value);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  ~OldRpcbind() {
    thread_.request_stop();
    ::shutdown(socket_.get(), SHUT_RDWR);
  }

 private:
  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::byte call[512];
      sockaddr_storage from{};
      socklen_t size = sizeof from;
      const ssize_t count = ::recvfrom(socket_.get(), call, sizeof call, 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (count < 24) continue;
      XdrReader reader({call, static_cast<std::size_t>(count)});
      XdrWriter reply;
      reply.word(reader.word()).word(1).word(0).hyper(0);
      reader.hyper();
      reader.word();
      std::vector<std::byte> whole;
      if (reader.word() == 2) {
        whole = reply.word(0).bytes();
        whole.insert(whole.end(), answers_.begin(), answers_.end());
      } else {
        whole = reply.word(2).word(2).word(2).bytes();
      }
      (void)!::sendto(socket_.get(), whole.data(), whole.size(), 0, reinterpret_cast<const sockaddr*>(&from), size);
    }
  }
  const std::vector<std::byte> answers_;
  const UniqueFd socket_{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  std::jthread thread_;
};

TEST_F(Rpcbind, of_version_2_is_asked_in_version_2) {
  const OldRpcbind rpcbind(XdrWriter().word(2049).bytes());
  SunHost ours(kCallsOverUdp);
  const Result<std::uint16_t> port = ours.find(kCalc, 1);
  ASSERT_TRUE(port) << port.error().message();
  EXPECT_EQ(*port, 2049);
}

TEST_F(Rpcbind, that_answers_nonsense_is_not_believed) {
  for (const std::vector<std::byte>& nonsense :
       {XdrWriter().word(65536).bytes(), XdrWriter().bytes(), XdrWriter().text(std::string(5000, 'x')).bytes()}) {
    const OldRpcbind rpcbind(nonsense);
    SunHost ours(kCallsOverUdp);
    EXPECT_EQ(ours.find(kCalc, 1).code(), Errc::bad_message);
  }
}

}  // namespace
}  // namespace lrpc::netrpc::test
