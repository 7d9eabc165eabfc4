// What lrpc-netd says without a network.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "lrpc/netrpc/address.h"
#include "lrpc/shim/system/fd.h"
#include "run.h"
#include "world.h"

namespace lrpc::netd::test {
namespace {

const std::string kNetd = LRPC_NETD;

TEST(NetdCommandLine, makes_keys) {
  const Ran first = run(kNetd + " --generate-key");
  EXPECT_EQ(first.status, 0);
  EXPECT_EQ(first.output.size(), 45U);
  EXPECT_NE(first.output, run(kNetd + " --generate-key").output);
}

TEST(NetdCommandLine, checks_and_draws_graphs) {
  const testing_lrpc::TemporaryDirectory directory;
  const std::string file = (directory.path() / "graph").string();
  std::ofstream(file)
      << "eth = ETH;\nfragment = FRAGMENT over eth;\nchannel = CHANNEL over fragment;\nselect = SELECT over channel;\n";
  const Ran good = run(kNetd + " --check --graph " + file);
  EXPECT_EQ(good.status, 0) << good.output;
  EXPECT_NE(run(kNetd + " --picture text --graph " + file).output.find("| FRAGMENT |"), std::string::npos);
  EXPECT_NE(run(kNetd + " --picture svg --graph " + file).output.find("<svg"), std::string::npos);
  std::ofstream(file) << "eth = ETH;\nchannel = CHANEL over eth;\n";
  const Ran bad = run(kNetd + " --check --graph " + file);
  EXPECT_EQ(bad.status, 1);
  EXPECT_NE(bad.output.find(file + ":2: "), std::string::npos) << bad.output;
}

TEST(NetdCommandLine, refuses_a_graph_whose_peers_may_have_any_port) {
  const testing_lrpc::TemporaryDirectory directory;
  const std::string file = (directory.path() / "graph").string();
  std::ofstream(file) << "udp = UDP(peer_ports = any);\npaired = PAIRED over udp;\nselect = SELECT over paired;\n";
  EXPECT_EQ(run(kNetd + " --check --graph " + file).status, 0);  // others may use it
  const Ran ran = run(kNetd + " --graph " + file);
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.output.find("'select' has peers at any port"), std::string::npos) << ran.output;
}

TEST(NetdCommandLine, its_own_graphs_are_right) {
  for (const std::string options :
       {"--interface lo --insecure", "--interface lo --keys /nonexistent", "--udp --address 127.0.0.1"})
    EXPECT_EQ(run(kNetd + " --check " + options).status, 0) << options;
}

TEST(NetdCommandLine, its_own_graphs_give_a_silent_host_as_long_in_a_call_as_between_calls) {
  const Ran ran = run(kNetd + " --check --udp --address 127.0.0.1 --insecure");
  EXPECT_NE(ran.output.find("CHANNEL(give_up = 30s, reply_life = 40s)"), std::string::npos) << ran.output;
}

TEST(NetdCommandLine, does_not_start_without_keys_unless_told_to) {
  const Ran ran = run(kNetd + " --interface lo");
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.output.find("say --keys FILE"), std::string::npos) << ran.output;
}

TEST(NetdCommandLine, says_which_user_or_group_it_does_not_know) {
  const std::string start = kNetd + " --udp --address 127.0.0.1 --insecure";
  const Ran user = run(start + " --allow-user no-such-user");
  EXPECT_EQ(user.status, 1);
  EXPECT_NE(user.output.find("there is no user 'no-such-user'"), std::string::npos) << user.output;
  const Ran group = run(start + " --allow-group no-such-group");
  EXPECT_EQ(group.status, 1);
  EXPECT_NE(group.output.find("there is no group 'no-such-group'"), std::string::npos) << group.output;
}

TEST(NetdCommandLine, says_that_there_is_no_ipv6_where_an_address_of_it_is_given) {
  const testing_lrpc::TemporaryDirectory directory;
  const auto told = [](const std::string& command) {
    const Ran ran = run(command);
    EXPECT_EQ(ran.status, 1);
    EXPECT_NE(ran.output.find("looks like an IPv6 address, and there is IPv4 only"), std::string::npos) << ran.output;
  };
  told(kNetd + " --udp --insecure --address fe80::1");
  const std::string keys = (directory.path() / "keys").string();
  std::ofstream(keys) << "2001:db8::/32 " << run(kNetd + " --generate-key").output;
  ASSERT_EQ(::chmod(keys.c_str(), 0600), 0);
  told(kNetd + " --udp --address 127.0.0.1 --keys " + keys);
  const std::string graph = (directory.path() / "graph").string();
  for (const std::string address : {"::1", "[::1]"}) {
    std::ofstream(graph) << "udp = UDP(address = \"" << address
                         << "\"); channel = CHANNEL over udp; select = SELECT over channel;\n";
    told(kNetd + " --sandbox off --graph " + graph);
  }
}

/// A socket at a UDP port of the loopback interface.
UniqueFd bound_to(const char* address, std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = ::inet_addr(address);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0) << std::strerror(errno);
  return socket;
}

TEST(NetdCommandLine, waits_for_its_port_as_long_as_one_that_has_just_ended_may_have_it) {
  constexpr std::uint16_t kPort = 24000 + netrpc::protocol_numbers::kFragment;
  const std::string start = kNetd + " --udp --insecure --nameserver /nonexistent --address ";
  UniqueFd held = bound_to("127.0.0.9", kPort);
  std::thread lets_go([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    held.reset();
  });
  const Ran soon_free = run(start + "127.0.0.9");
  lets_go.join();
  EXPECT_NE(soon_free.output.find("no nameserver answers"), std::string::npos) << soon_free.output;
  held = bound_to("127.0.0.10", kPort);
  const Ran never_free = run(start + "127.0.0.10");
  EXPECT_NE(never_free.output.find("port 24201 is in use"), std::string::npos) << never_free.output;
}

TEST(NetdCommandLine, refuses_keys_that_others_can_read) {
  const testing_lrpc::TemporaryDirectory directory;
  const std::string file = (directory.path() / "keys").string();
  std::ofstream(file) << "* " << run(kNetd + " --generate-key").output;
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  const Ran ran = run(kNetd + " --udp --address 127.0.0.1 --keys " + file);
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.output.find("chmod 600 " + file), std::string::npos) << ran.output;
}

/// This process and its children have no io_uring from here on. False: that cannot be had.
bool refuse_io_uring() {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{program.size(), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

TEST(NetdCommandLine, says_that_io_uring_is_refused) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!refuse_io_uring()) ::_exit(77);
    const Ran ran = run(kNetd + " --udp --address 127.0.0.1 --insecure --backend io_uring");
    const bool good = ran.status == 1 && ran.output.find("io_uring is not available") != std::string::npos;
    if (!good) std::fprintf(stderr, "status %d: %s\n", ran.status, ran.output.c_str());
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "this process may not install a seccomp filter";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace lrpc::netd::test
