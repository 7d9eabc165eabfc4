// Servers that know nothing of Sun RPC, called from another machine by a program that rpcgen generated from their
// interface.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "two_machines.h"

namespace lrpc::netd::test {
namespace {

#ifndef LRPC_SUN_CLIENT
TEST(SunRpcPrograms, are_served) {
  GTEST_SKIP() << "rpcsvc-proto or libtirpc-dev was not installed when this was built";
}
#else

constexpr const char* kProgram = "conformance=0x20000098/2";

/// The output after the pid, which differs each time.
constexpr const char* kAnswers =
    "null: done\n"
    "add: -42\n"
    "big: 199 0\n"
    "integers: -128 255 -32768 65535 -2147483648 4294967295 -5000000000 18446744073709551615\n"
    "floats: 1.25 -1e+300\n"
    "flip: 0\n"
    "colour: 4\n"
    "halve: 45 10\n"
    "mirror: triangle 4 -1 2.5 2 1 100 3\n"
    "greet: hello, you\n"
    "concatenate: 3999 ab\n"
    "sum: 36000\n"
    "sum of none: 0\n"
    "fill: 12000 7\n"
    "reverse: 12000 9\n"
    "check 50: 100\n"
    "check 101: TooBig 100 value\n"
    "check 13: Refused unlucky\n"
    "pid: one\n"
    "Sun RPC's own: RPC: Success\n"
    "no procedure: RPC: Procedure unavailable\n"
    "a procedure with a handle: RPC: Procedure unavailable\n"
    "no arguments: RPC: Server can't decode arguments\n"
    "no colour: RPC: Server can't decode arguments\n"
    "beyond a range: RPC: Server can't decode arguments\n"
    "wider than int8: RPC: Server can't decode arguments\n"
    "an exception: RPC: Remote system error\n"
    "a value that breaks its type: RPC: Remote system error\n"
    "a death: RPC: Remote system error\n"
    "another version: RPC: Program/version mismatch\n";

/// The answers for Shop, which has types that Conformance lacks.
constexpr const char* kShopAnswers =
    "null: done\n"
    "reals: -1.25 1e+300 1 248\n"
    "reals: -1.25 1e+300 1 0\n"
    "turn: 'hgfedcba' 4 (2 -1.5) (-1 -0.5) 0 1 0 255 4 3 2 1 70 18446744073709551615\n"
    "turn: '' 4 (2 -1.5) (-1 -0.5) 0 1 0 255 4 3 2 1 70 1\n"
    "join: 'abc'\n"
    "join: ''\n"
    "reverse: 0 ''\n"
    "reverse: 1 'a'\n"
    "reverse: 2 'ba'\n"
    "reverse: 3 'cba'\n"
    "reverse: 4 'dcba'\n"
    "reverse: 5 'edcba'\n"
    "fill: 5999 9\n"
    "fill: 0 0\n"
    "buy 100: 300\n"
    "buy 101: TooMuch 100 bread\n"
    "buy 13: Closed\n"
    "note: 4711\n"
    "no byte: RPC: Server can't decode arguments\n"
    "no value of a wide enum: RPC: Server can't decode arguments\n"
    "a result beyond its range: RPC: Remote system error\n";

class SunRpcPrograms : public TwoMachines {
 protected:
  void start(const char* program = kProgram) {
    share_key();
    there->start_with_keys({"--sun", program});
  }
  [[nodiscard]] std::string answers(const std::string& transport = {}, const std::string& port = "24211") const {
    return run_here(LRPC_SUN_CLIENT " 10.7.0.2 " + port + " " + transport).output;
  }
  [[nodiscard]] Ran run_here(const std::string& command) const {
    Ran ran;
    here->in([&] { ran = run(command); });
    return ran;
  }
};

TEST_F(SunRpcPrograms, are_called_by_what_rpcgen_makes_of_their_interface) {
  start();
  const Process server = start_server();
  EXPECT_EQ(answers(), kAnswers);
}

TEST_F(SunRpcPrograms, are_called_over_tcp) {
  start();
  const Process server = start_server();
  EXPECT_EQ(answers("tcp"), kAnswers);
}

/// Types: a byte, an enum of 64 bits, bool[3], padded opaque data, an error without fields, a procedure without reply.
TEST_F(SunRpcPrograms, are_called_with_every_type_by_udp_and_tcp) {
  start("shop=0x20000097/3");
  const Process server = there->start({LRPC_SHOP, there->socket(), "shop"});
  for (const char* const transport : {"", "tcp"})
    EXPECT_EQ(run_here(std::string(LRPC_SUN_SHOP_CLIENT " 10.7.0.2 24211 ") + transport).output, kShopAnswers);
}

TEST_F(SunRpcPrograms, are_called_again_when_their_servers_have_died) {
  start();
  for (int lives = 0; lives < 2; ++lives) {
    const Process server = start_server();
    EXPECT_EQ(answers(), kAnswers);
  }
}

TEST_F(SunRpcPrograms, are_not_there_while_nobody_exports_them) {
  start();
  const std::string said = answers();
  expect_said(said, "null: failed\n");
  expect_said(said, "no arguments: RPC: Program unavailable\n");
  expect_said(said, "Sun RPC's own: RPC: Success\n");
}

TEST_F(SunRpcPrograms, are_not_called_under_a_version_that_is_not_their_interface_s) {
  start("conformance=0x20000098/7");
  const Process server = start_server();
  const std::string said = answers();
  expect_said(said, "no arguments: RPC: Program/version mismatch\n");
  expect_said(said, "another version: RPC: Remote system error\n");
  expect_logged(*there, "its interface has version 2, and the Sun RPC program version 7");
}

/// The test has its own /run, so that its rpcbind is not the system's.
class SunRpcProgramsAndRpcbind : public SunRpcPrograms {
 protected:
  void SetUp() override {
    SunRpcPrograms::SetUp();
    if (IsSkipped()) return;
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", "/run", "tmpfs", 0, nullptr) != 0)
      GTEST_SKIP() << "no mount namespace can be made: " << std::strerror(errno);
  }
  /// Starts an rpcbind on the server's machine. It ends with the returned process.
  [[nodiscard]] Process start_rpcbind() const {
    const std::string script =
        LRPC_RPCBIND " -f & until " LRPC_RPCINFO " -T udp 127.0.0.1 100000 4; do sleep 0.05; done 2>/dev/null; wait";
    return there->start({"/usr/bin/unshare", "--pid", "--fork", "--kill-child", "/bin/sh", "-c", script});
  }
};

TEST_F(SunRpcProgramsAndRpcbind, are_found_without_a_port_until_the_daemon_ends) {
  if (::access(LRPC_RPCBIND, X_OK) != 0 || ::access(LRPC_RPCINFO, X_OK) != 0)
    GTEST_SKIP() << "rpcbind is not installed";
  const Process rpcbind = start_rpcbind();
  const std::string list = LRPC_RPCINFO " -p 10.7.0.2";
  const auto is_listed = [&](const std::string& transport) {
    return run_here(list).output.find("536871064    2   " + transport + "  24211") != std::string::npos;
  };
  // lrpc-netd asks rpcbind once when it starts and once when it ends, and waits for 5 s each time.
  ASSERT_TRUE(eventually([&] {
    there->netd() = {};
    start();
    return is_listed("udp") && is_listed("tcp");
  })) << run_here(list).output;
  for (const std::string transport : {"udp", "tcp"}) {
    const Process server = start_server();  // the client's last calls end this server
    const Ran question = run_here(LRPC_RPCINFO " -T " + transport + " 10.7.0.2 536871064 2");
    EXPECT_EQ(question.status, 0) << question.output;
    expect_said(question.output, "ready and waiting");
    EXPECT_EQ(answers(transport == "tcp" ? transport : "", "0"), kAnswers) << "its client asks rpcbind for the port";
  }
  EXPECT_TRUE(eventually([&] {
    there->netd().kill_and_wait(SIGTERM);
    const Ran after = run_here(list);
    EXPECT_EQ(after.status, 0) << after.output;
    if (after.output.find("536871064") == std::string::npos) return true;
    start();
    return false;
  }));
}

TEST_F(SunRpcProgramsAndRpcbind, are_served_without_one_and_the_log_says_that_clients_need_the_port) {
  start();
  const Process server = start_server();
  expect_logged(*there, "rpcbind does not tell clients of 'conformance'");
  expect_said(answers(), "add: -42\n");
}

#endif

}  // namespace
}  // namespace lrpc::netd::test
