// Our Sun RPC and that of rpcgen's programs, over UDP on loopback: each calls the other.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "eventually.h"
#include "lrpc/netrpc/all_kinds.h"
#include "lrpc/netrpc/blocking_call.h"
#include "lrpc/netrpc/session_cache.h"
#include "netrpc/devices/engine/uring_engine.h"
#include "netrpc/src/xdr.h"

namespace lrpc::netrpc {
namespace {

constexpr std::uint32_t kCalc = 0x20000099;
constexpr HostAddress kLoopback{0x7f000001};

/// calc.x's server, in lrpc.
class Calc final : public Protocol {
 public:
  explicit Calc(Host& host) : Protocol(host, "calc") {}
  void call_demux(Session& lower, Message request) noexcept override {
    std::vector<std::byte> bytes(request.size());
    request.copy_to(bytes);
    XdrReader in(bytes);
    XdrWriter out;
    switch (lower.participants().local.procedure) {
      case 1: {
        const std::uint32_t a = in.word();
        out.word(a + in.word());
        break;
      }
      case 2: {
        const std::string_view line = in.text(100);
        const std::string_view opaque = in.text(9000);
        const std::uint64_t number = in.hyper();
        const std::uint32_t flag = in.word();
        const double real = std::bit_cast<double>(in.hyper());
        out.text(std::string(line.rbegin(), line.rend())).text(std::string(opaque.rbegin(), opaque.rend()));
        out.hyper(-number).word(1 - flag).hyper(std::bit_cast<std::uint64_t>(2 * real));
        break;
      }
      case 3: {
        control::ClaimedUser user;
        (void)control::ask(lower, user);
        out.word(user.uid);
        break;
      }
      default: return refuse(lower, Errc::bad_procedure);
    }
    if (!in.at_end()) return refuse(lower, Errc::argument_out_of_range);
    lower.reply(Message::copy_of(host().pool(), out.bytes()));
  }

 private:
  static void refuse(Session& lower, Errc reason) {
    control::Request request = control::Refuse{reason};
    EXPECT_EQ(lower.control(request), Errc::ok);
  }
};

/// A host of ours with Sun RPC over UDP.
class SunHost {
 public:
  /// `udp`: options of UDP.
  explicit SunHost(const std::string& udp) {
    auto engine = UringEngine::make();
    if (!engine) throw std::runtime_error(engine.error().message());
    engine_ = std::move(*engine);
    host_.emplace(HostOptions{.name = "ours", .address = kLoopback}, clock_, *engine_);
    calc_.emplace(*host_);
    const ProtocolKinds kinds = all_kinds();
    const auto description = GraphDescription::parse(
        "udp = UDP(" + udp +
            "); pairs = REQUEST_REPLY(give_up = 240s) over udp; call = SUN_CALL over pairs;"
            "auth = AUTH_SYS(machine = ours, uid = 4711) over call; sun = SUN_SELECT over auth;",
        kinds);
    if (!description) throw std::runtime_error(description.error().message());
    const Shepherd inside(host_->monitor());
    auto graph = Graph::compose(*host_, *description, kinds);
    if (!graph) throw std::runtime_error(graph.error().message());
    graph_.emplace(std::move(*graph));
  }
  SunHost(const SunHost&) = delete;
  SunHost& operator=(const SunHost&) = delete;
  ~SunHost() {
    engine_->stop();
    const Shepherd inside(host_->monitor());
    graph_.reset();
  }
  /// False: its port is in use.
  [[nodiscard]] bool serve() {
    {
      const Shepherd inside(host_->monitor());
      ParticipantSet participants;
      participants.local.program = kCalc;
      participants.local.version = 1;
      if (!graph_->find("sun")->open_enable(*calc_, participants)) return false;
    }
    EXPECT_TRUE(engine_->start(*host_, 1));
    return true;
  }
  Errc call(std::uint16_t port, std::uint32_t program, std::uint32_t version, std::uint32_t procedure,
            std::span<const std::byte> arguments, std::vector<std::byte>* results = nullptr) {
    const Shepherd inside(host_->monitor());
    ParticipantSet participants;
    participants.remote.host = kLoopback;
    participants.remote.port = port;
    participants.remote.program = program;
    participants.remote.version = version;
    participants.remote.procedure = procedure;
    const Result<SessionRef> session = graph_->find("sun")->open(*calc_, participants);
    if (!session) return session.code();
    Message reply;
    const Errc outcome = call_and_wait_inside(**session, Message::copy_of(host_->pool(), arguments), reply, {});
    if (results != nullptr) {
      results->resize(reply.size());
      reply.copy_to(*results);
    }
    return outcome;
  }

 private:
  MonotonicClock clock_;
  std::unique_ptr<UringEngine> engine_;
  std::optional<Host> host_;
  std::optional<Calc> calc_;
  std::optional<Graph> graph_;
};

/// rpcgen's server, killed at the end.
class CalcServer {
 public:
  CalcServer() : output_(::popen("exec " LRPC_CALC_SERVER, "re")) {
    int port = 0;
    if (output_ != nullptr && std::fscanf(output_, "%d %d", &pid_, &port) == 2)
      port_ = static_cast<std::uint16_t>(port);
  }
  CalcServer(const CalcServer&) = delete;
  CalcServer& operator=(const CalcServer&) = delete;
  ~CalcServer() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (output_ != nullptr) ::pclose(output_);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }  ///< 0: it has not started.

 private:
  std::FILE* const output_;
  int pid_ = 0;
  std::uint16_t port_ = 0;
};

/// A UDP port that was free a moment ago.
std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(kLoopback.value);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(socket);
  return ntohs(address.sin_port);
}

TEST(SunRpcInteroperation, our_client_calls_a_server_of_rpcgens) {
  const CalcServer server;
  const std::uint16_t at = server.port();
  ASSERT_NE(at, 0);
  SunHost ours("address = \"127.0.0.1\", local_ports = 0, peer_ports = any");
  std::vector<std::byte> results;
  EXPECT_EQ(ours.call(at, kCalc, 1, 1, XdrWriter().word(40).word(2).bytes(), &results), Errc::ok);
  EXPECT_EQ(results, XdrWriter().word(42).bytes());

  const std::string bytes(5001, 'b');
  XdrWriter note;
  note.text("drawer").text("a" + bytes).hyper(5'000'000'000).word(0);
  note.hyper(std::bit_cast<std::uint64_t>(1.5));
  EXPECT_EQ(ours.call(at, kCalc, 1, 2, note.bytes(), &results), Errc::ok);
  XdrWriter turned;
  turned.text("reward").text(bytes + "a").hyper(static_cast<std::uint64_t>(-5'000'000'000)).word(1);
  turned.hyper(std::bit_cast<std::uint64_t>(3.0));
  EXPECT_EQ(results, turned.bytes());

  EXPECT_EQ(ours.call(at, kCalc, 1, 3, {}, &results), Errc::ok);
  EXPECT_EQ(results, XdrWriter().word(4711).bytes());
  EXPECT_EQ(ours.call(at, kCalc, 1, 0, {}), Errc::ok);
  EXPECT_EQ(ours.call(at, kCalc, 1, 99, {}), Errc::bad_procedure);
  EXPECT_EQ(ours.call(at, kCalc, 2, 1, {}), Errc::version_mismatch);
  EXPECT_EQ(ours.call(at, kCalc + 1, 1, 1, {}), Errc::name_unknown);
  // Too long a text. (What is missing libtirpc takes from what the buffer had before.)
  EXPECT_EQ(ours.call(at, kCalc, 1, 2, XdrWriter().text(std::string(101, 'x')).bytes()), Errc::argument_out_of_range);
}

TEST(SunRpcInteroperation, a_client_of_rpcgens_calls_our_server) {
  std::optional<SunHost> ours;
  std::uint16_t port = 0;
  bool serves = false;
  for (int tries = 0; !serves && tries < 20; ++tries) {
    port = free_port();
    const int first = port - static_cast<int>(protocol_numbers::kRequestReply);
    ours.emplace("address = \"127.0.0.1\", peer_ports = any, local_ports = " + std::to_string(first));
    serves = ours->serve();
  }
  ASSERT_TRUE(serves);
  std::FILE* const client = ::popen(("exec " LRPC_CALC_CLIENT " " + std::to_string(port)).c_str(), "re");
  ASSERT_NE(client, nullptr);
  std::string said;
  for (int c = std::fgetc(client); c != EOF; c = std::fgetc(client)) said.push_back(static_cast<char>(c));
  EXPECT_EQ(::pclose(client), 0);
  EXPECT_EQ(said,
            "add: -42\n"
            "turn: desserts right 5000000000 0 2.5\n"
            "who: 7\n"
            "nothing: RPC: Success\n"
            "no procedure: RPC: Procedure unavailable\n"
            "no arguments: RPC: Server can't decode arguments\n"
            "no version: RPC: Program/version mismatch\n"
            "no program: RPC: Program unavailable\n");
}

}  // namespace
}  // namespace lrpc::netrpc
