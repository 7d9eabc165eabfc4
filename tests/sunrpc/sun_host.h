// The parties that speak Sun RPC in these tests: a host of ours that serves calc.x, and rpcgen's programs.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "lrpc/netrpc/all_kinds.h"
#include "lrpc/netrpc/blocking_call.h"
#include "lrpc/netrpc/rpcbind.h"
#include "lrpc/netrpc/session_cache.h"
#include "lrpc/netrpc/xdr.h"
#include "netrpc/devices/engine/uring_engine.h"

namespace lrpc::netrpc::test {

inline constexpr std::uint32_t kCalc = 0x20000099;
inline constexpr HostAddress kLoopback{0x7f000001};
/// Devices of hosts that only make calls.
inline constexpr const char* kCallsOverUdp = "UDP(address = \"127.0.0.1\", local_ports = 0, peer_ports = any)";
inline constexpr const char* kCallsOverTcp = "TCP(address = \"127.0.0.1\")";

/// The server of calc.x, implemented with lrpc.
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
        const bool flag = in.boolean();
        const double real = in.long_real();
        out.text(std::string(line.rbegin(), line.rend())).text(std::string(opaque.rbegin(), opaque.rend()));
        out.hyper(-number).boolean(!flag).real(2 * real);
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
  /// `device`: UDP or TCP, with its options.
  explicit SunHost(const std::string& device) {
    auto engine = UringEngine::make();
    if (!engine) throw std::runtime_error(engine.error().message());
    engine_ = std::move(*engine);
    host_.emplace(HostOptions{.name = "ours", .address = kLoopback}, clock_, *engine_);
    calc_.emplace(*host_);
    const ProtocolKinds kinds = all_kinds();
    const auto description = GraphDescription::parse(
        "device = " + device +
            "; pairs = REQUEST_REPLY(give_up = 240s) over device; call = SUN_CALL over pairs;"
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
  /// Asks rpcbind on this machine for the port of a program.
  [[nodiscard]] Result<std::uint16_t> find(std::uint32_t program, std::uint32_t version) {
    return rpcbind_port(*graph_->find("sun"), *calc_, kLoopback, program, version, std::chrono::seconds(240));
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
    const Errc outcome = call_and_wait_inside(**session, Message::copy_of(host_->pool(), arguments), reply, kNoLimit);
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

/// rpcgen's server; the destructor kills it.
class CalcServer {
 public:
  explicit CalcServer(const std::string& arguments = {})
      : output_(::popen(("exec " LRPC_CALC_SERVER " " + arguments).c_str(), "re")) {
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
inline std::uint16_t free_port() {
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

/// Serves calc.x at a port that was free. Returns the port; 0: none was free.
inline std::uint16_t serve_calc(std::optional<SunHost>& host, bool tcp = false) {
  const std::string device = tcp ? "TCP(address = " : "UDP(peer_ports = any, address = ";
  const std::string own_port = tcp ? "port" : "local_port";
  for (int tries = 0; tries < 20; ++tries) {
    const std::uint16_t port = free_port();
    host.emplace(device + "\"127.0.0.1\", " + own_port + " = " + std::to_string(port) + ")");
    if (host->serve()) return port;
  }
  return 0;
}

/// A program's output, and whether its exit status was 0.
struct Said {
  std::string text;
  bool well = false;
};
inline Said run(const std::string& command) {
  Said said;
  std::FILE* const output = ::popen(("exec " + command + " 2>&1").c_str(), "re");
  if (output == nullptr) return said;
  for (int c = std::fgetc(output); c != EOF; c = std::fgetc(output)) said.text.push_back(static_cast<char>(c));
  said.well = ::pclose(output) == 0;
  return said;
}

}  // namespace lrpc::netrpc::test
