// What lrpc-netd can no longer do in its sandbox: a process enters the same sandbox and tries, also through the rings
// of its engine. And what can be seen of a running lrpc-netd from outside.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "attempts.h"
#include "daemon_sandbox.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/restricted_ring.h"
#include "netrpc/devices/engine/uring_engine.h"
#include "two_machines.h"

namespace lrpc::netd::test {
namespace {

using sandbox::test::in_a_child;
using sandbox::test::not_refused;
using sandbox::test::opening;
using sandbox::test::RingIntruder;
using sandbox::test::socket_of;
using sandbox::test::Victim;

class NetdSandbox : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = shut_in([] { return std::string(); });
    if (!why.empty()) GTEST_SKIP() << why;
  }
  std::string shut_in(const std::function<std::string()>& body) {
    return in_a_child([&]() -> std::string {
      sandbox::Options options = sandbox_of_daemon({(directory_.path() / "keys").string()}, state_file_, tcp_ports_);
      options.required = true;
      const auto entered = sandbox::enter(options);
      return entered ? body() : entered.error().message();
    });
  }

  testing_lrpc::TemporaryDirectory directory_;
  std::string state_file_;
  std::vector<std::uint16_t> tcp_ports_;
};

TEST_F(NetdSandbox, leaves_no_files_no_processes_and_no_sockets_but_unix_and_udp) {
  const Victim victim;
  EXPECT_EQ(shut_in([&] { return not_refused(sandbox::test::forbidden_to_all(victim.pid())); }), "");
  EXPECT_EQ(shut_in([&]() -> std::string {
              // UDP is left, to ask for routes and to make the kernel resolve a neighbour.
              if (const int err = socket_of("UDP", AF_INET, SOCK_DGRAM).act(); err != 0) return std::strerror(err);
              const int err = socket_of("Unix", AF_UNIX, SOCK_SEQPACKET).act();
              return err != 0 ? std::strerror(err) : "";
            }),
            "");
}

/// A listening TCP socket on the loopback.
class Listening {
 public:
  Listening() {
    sockaddr_in address = at(0);
    socklen_t size = sizeof address;
    if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 || ::listen(fd_.get(), 8) != 0 ||
        ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("no port");
    port_ = ntohs(address.sin_port);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// 0, or the errno with which connecting a new socket to it fails.
  [[nodiscard]] int connect() const {
    const UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
    const sockaddr_in address = at(port_);
    const bool connected = fd && ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    return connected ? 0 : errno;
  }

 private:
  static sockaddr_in at(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  const UniqueFd fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::uint16_t port_ = 0;
};

TEST_F(NetdSandbox, connects_by_tcp_only_to_the_ports_of_imported_sun_rpc_programs) {
  const Listening program;
  const Listening other;
  EXPECT_EQ(shut_in([&] { return std::string(program.connect() == 0 ? "connects" : ""); }), "");
  if (sandbox::landlock_abi() < 4) GTEST_SKIP() << "Landlock does not know TCP on this kernel";
  tcp_ports_ = {program.port()};
  EXPECT_EQ(shut_in([&]() -> std::string {
              if (const int err = program.connect(); err != 0) return std::strerror(err);
              const UniqueFd from_here(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
              sockaddr_in any{};
              any.sin_family = AF_INET;
              any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
              if (::bind(from_here.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0)
                return std::string("cannot bind: ") + std::strerror(errno);
              return other.connect() == EACCES ? "" : "connects to another port";
            }),
            "");
}

TEST_F(NetdSandbox, reads_the_keys_again_that_were_put_in_the_others_place) {
  const std::string keys = (directory_.path() / "keys").string();
  std::ofstream(keys) << "old";
  EXPECT_EQ(shut_in([&]() -> std::string {
              if (const int err = opening(keys, O_RDONLY).act(); err != 0) return std::strerror(err);
              return not_refused({opening(keys, O_WRONLY), opening("/etc/shadow", O_RDONLY)});
            }),
            "");
}

TEST_F(NetdSandbox, reads_keys_again_to_which_a_link_leads) {
  const testing_lrpc::TemporaryDirectory elsewhere;
  const std::string keys = (elsewhere.path() / "keys").string();
  std::ofstream(keys) << "x";
  const std::string link = (directory_.path() / "keys").string();
  std::filesystem::create_symlink(keys, link);
  EXPECT_EQ(shut_in([&]() -> std::string {
              const int err = opening(link, O_RDONLY).act();
              return err != 0 ? std::strerror(err) : "";
            }),
            "");
}

TEST_F(NetdSandbox, writes_its_state_and_no_other_file) {
  state_file_ = (directory_.path() / "state").string();
  std::ofstream(state_file_) << "before";
  EXPECT_EQ(shut_in([&]() -> std::string {
              if (const int err = opening(state_file_, O_WRONLY | O_CREAT | O_TRUNC).act(); err != 0)
                return std::strerror(err);
              return not_refused({opening(state_file_ + ".new", O_WRONLY | O_CREAT), opening("/etc/hostname", O_RDONLY),
                                  opening("/etc/shadow", O_WRONLY)});
            }),
            "");
}

TEST_F(NetdSandbox, its_rings_send_receive_wait_and_nothing_else) {
  const std::string refused = in_a_child([]() -> std::string {
    auto engine = netrpc::UringEngine::make(netrpc::EngineKind::uring);
    if (!engine) return "no ring: " + engine.error().message();
    if (engine.value()->prepare_rings(3) != 3) return "fewer rings than wanted";
    const std::vector<int> rings = RingIntruder::rings();
    if (rings.size() != 3) return std::to_string(rings.size()) + " rings";
    constexpr unsigned kFlags =
        IORING_SETUP_R_DISABLED | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    RingIntruder intruder(rings.front(), 128, 1024, kFlags);
    if (!intruder.mapped()) return "the ring is not as it was";
    if (const auto entered = sandbox::enter(sandbox_of_daemon({}, {})); !entered) return entered.error().message();
    // As a thread of the engine does when it leads for the first time.
    if (const int err = shim::enable_ring(rings.front()); err != 0) return std::strerror(err);
    return intruder.not_refused({IORING_OP_RECVMSG, IORING_OP_SEND, IORING_OP_SENDMSG, IORING_OP_POLL_ADD,
                                 IORING_OP_TIMEOUT, IORING_OP_TIMEOUT_REMOVE, IORING_OP_ASYNC_CANCEL},
                                IORING_OP_LAST - 1);
  });
  if (refused.starts_with("no ring")) GTEST_SKIP() << refused;
  EXPECT_EQ(refused, "");
}

std::string status_of(pid_t pid, const std::string& field) {
  return run("grep -h '^" + field + ":' /proc/" + std::to_string(pid) + "/task/*/status | sort -u").output;
}

TEST_F(TwoMachines, netd_shuts_itself_in_with_all_its_threads_unless_it_is_told_not_to) {
  const Process server = start_exported_server({"--export", "conformance", "--sandbox", "off"});
  here->start_with_keys();
  auto client = import_patiently();
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(client->Add(1, 2).value(), 3);
  const pid_t pid = here->netd().pid();
  EXPECT_EQ(status_of(pid, "NoNewPrivs"), "NoNewPrivs:\t1\n");
  EXPECT_EQ(status_of(pid, "CapEff"), "CapEff:\t0000000000000000\n");
  EXPECT_EQ(status_of(there->netd().pid(), "CapEff"), "CapEff:\t0000000000002000\n");
  const bool filtered = in_a_child([] {
                          const auto entered = sandbox::enter(sandbox_of_daemon({}, {}));
                          return std::string(entered && entered->system_calls.holds ? "" : "no");
                        }).empty();
  EXPECT_EQ(status_of(pid, "Seccomp"), filtered ? "Seccomp:\t2\n" : status_of(::getpid(), "Seccomp"));
}

/// Unix datagram sockets of the process. The sandbox cannot keep one from sending to any other, by its path.
std::string unix_datagram_sockets(pid_t pid) {
  const std::string process = "/proc/" + std::to_string(pid);
  return run("{ awk '$5 == \"0002\" { print $7 }' " + process + "/net/unix; ls -l " + process +
             "/fd | sed -n 's/.*socket:.\\([0-9]*\\).*/\\1/p' | sort -u; } | sort | uniq -d")
      .output;
}

TEST_F(TwoMachines, netd_has_no_unix_datagram_sockets) {
  share_key();
  here->start_with_keys();
  there->start_with_keys({"--sun", "conformance=0x20000098/2"});  // creates its own TCP
  EXPECT_EQ(unix_datagram_sockets(here->netd().pid()), "");
  EXPECT_EQ(unix_datagram_sockets(there->netd().pid()), "");
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
  EXPECT_NE(unix_datagram_sockets(::getpid()), "") << "they are seen if there are some";
  for (const int end : ends) ::close(end);
}

/// Runs as an ordinary user, whom the kernel allows to trace the user's own processes.
int trace_own_netd(const std::string& directory) {
  constexpr uid_t kNobody = 54321;
  if (::geteuid() == 0) {
    if (::chown(directory.c_str(), kNobody, kNobody) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 ||
        ::setresuid(kNobody, kNobody, kNobody) != 0)
      return 2;
  }
  try {
    const Process lrpcd({LRPCD, "--socket", directory + "/s", "--log-level", "off"});
    const Process netd({LRPC_NETD, "--udp", "--address", "10.7.0.1", "--insecure", "--nameserver", directory + "/s",
                        "--log-level", "off"});
    if (::ptrace(PTRACE_SEIZE, netd.pid(), nullptr, nullptr) == 0 || errno != EPERM) return 3;
    const std::string memory = "/proc/" + std::to_string(netd.pid()) + "/mem";
    if (::open(memory.c_str(), O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES) return 4;
  } catch (const std::runtime_error&) {
    return 77;  // that user cannot execute the programs in their directory
  }
  return 0;
}

TEST_F(TwoMachines, netd_cannot_be_traced_by_its_own_user) {
  const testing_lrpc::TemporaryDirectory directory;
  int status = -1;
  here->in([&] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(trace_own_netd(directory.path().string()));
    ::waitpid(child, &status, 0);
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "another user cannot execute " << LRPC_NETD;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(TwoMachines, netd_writes_its_state_from_inside) {
  share_key();
  here->start_with_keys({"--state", here->file("state")});
  for (int i = 0; i < 2; ++i) {
    here->netd().send(SIGUSR1);
    std::string state;
    EXPECT_TRUE(eventually([&] {
      std::ifstream file(here->file("state"));
      state.assign(std::istreambuf_iterator<char>(file), {});
      return state.find("remote bindings") != std::string::npos;
    })) << state;
    std::ofstream(here->file("state"), std::ios::trunc) << "";
  }
}

TEST_F(TwoMachines, netd_says_that_there_is_no_room_for_its_state) {
  share_key();
  here->start_with_keys({"--state", "/dev/full"});
  here->netd().send(SIGUSR1);
  expect_logged(*here, "cannot write /dev/full: No space left on device");
}

TEST_F(TwoMachines, more_callers_than_there_are_rings_call_all_the_same) {
  const Process server = start_exported_server();
  here->start_with_keys();
  std::vector<std::thread> callers;
  std::atomic<int> calling{0};
  std::atomic<int> right{0};
  constexpr int kCallers = 80;
  auto clients = bind_and_stop(server, kCallers);
  for (Conformance::Client& client : clients) {
    callers.emplace_back([&] {
      const int i = ++calling;
      const auto sum = client.Add(i, i);
      if (sum && *sum == 2 * i) ++right;
    });
  }
  EXPECT_TRUE(eventually([&] { return calling == kCallers; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // by now most of them wait
  server.send(SIGCONT);
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(right, kCallers);
}

}  // namespace
}  // namespace lrpc::netd::test
