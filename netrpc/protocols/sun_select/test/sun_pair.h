// A client and a server of Sun RPC on a wire whose packets the test holds.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <vector>

#include "lrpc/netrpc/session_cache.h"
#include "netrpc/protocols/channel/channel.h"
#include "netrpc/protocols/channel/test/packet_wire.h"
#include "netrpc/protocols/request_reply/request_reply.h"
#include "netrpc/protocols/sun_auth/sun_auth.h"
#include "netrpc/protocols/sun_call/sun_call.h"
#include "netrpc/protocols/sun_select/sun_select.h"

namespace lrpc::netrpc::sun_test {

inline constexpr std::uint32_t kXid = 0x0a0b0c0d;
inline constexpr std::uint32_t kProgram = 0x20000099;
inline constexpr std::uint32_t kVersion = 3;

inline std::string words(std::initializer_list<std::uint32_t> all) {
  std::string bytes;
  for (const std::uint32_t word : all)
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(word >> shift));
  return bytes;
}

/// The server of a program: echoes, refuses, keeps or drops requests, and records its callers.
class SunServer final : public Protocol {
 public:
  explicit SunServer(Host& host) : Protocol(host, "server") {}
  void call_demux(Session& lower, Message request) noexcept override {
    called.push_back(lower.participants().local);
    user = {};
    user_known = control::ask(lower, user) == Errc::ok;
    if (drops) return;
    if (keeps || keeps_answered) kept.push_back(SessionRef(&lower));
    if (keeps) return;
    if (refuses == Errc::ok) return lower.reply(std::move(request));
    control::Request refuse = control::Refuse{refuses};
    EXPECT_EQ(lower.control(refuse), Errc::ok);
  }
  std::vector<Participant> called;
  control::ClaimedUser user;
  bool user_known = false;
  Errc refuses = Errc::ok;
  bool drops = false;
  bool keeps = false;           ///< Keeps the session and does not answer.
  bool keeps_answered = false;  ///< Keeps the session after the answer.
  std::vector<SessionRef> kept;
};

struct SunOptions {
  std::optional<AuthSysOptions> sys{};  ///< None: AUTH_NONE.
  bool over_channel = false;            ///< False: over REQUEST_REPLY.
  std::size_t channels = 8;
};

/// A client on host 0 and a server on host 1, each with all layers. The test may take the place of either.
struct SunPair {
  explicit SunPair(const SunOptions& options = {}) {
    for (std::size_t i = 0; i < 2; ++i) {
      Host& host = wire[i].host;
      if (options.over_channel)
        layers[i].push_back(make_channel(host, "channel", wire[i].end, {}));
      else
        layers[i].push_back(make_request_reply(host, "pairs", wire[i].end, {.first_xid = kXid}));
      layers[i].push_back(make_sun_call(host, "call", *layers[i].back(), {.channels = options.channels}));
      if (options.sys) {
        auto auth = make_auth_sys(host, "auth", *layers[i].back(), *options.sys);
        EXPECT_TRUE(auth) << auth.error().message();
        layers[i].push_back(std::move(auth).value());
      } else {
        layers[i].push_back(make_auth_none(host, "auth", *layers[i].back()));
      }
      layers[i].push_back(make_sun_select(host, "sun", *layers[i].back(), {.program = kProgram, .version = kVersion}));
    }
    high.emplace(wire[0].host);
    server.emplace(wire[1].host);
    enable(kVersion, 0);
  }
  ~SunPair() {
    session = {};
    server->kept.clear();
    for (auto& host : layers)
      while (!host.empty()) host.pop_back();
  }
  void enable(std::uint32_t version, std::uint32_t procedure, std::uint32_t program = kProgram) {
    ParticipantSet participants;
    participants.local.program = program;
    participants.local.version = version;
    participants.local.procedure = procedure;
    const Shepherd inside(wire[1].host.monitor());
    const Status enabled = layers[1].back()->open_enable(*server, participants);
    EXPECT_TRUE(enabled) << enabled.error().message();
  }
  void call(Transaction& one, std::string_view arguments, std::uint32_t procedure = 7, Duration timeout = kNoLimit) {
    const Shepherd inside(wire[0].host.monitor());
    ParticipantSet participants;
    participants.remote.host = PacketWire::address(1);
    participants.remote.program = kProgram;
    participants.remote.version = kVersion;
    participants.remote.procedure = procedure;
    Result<SessionRef> opened = layers[0].back()->open(*high, participants);
    ASSERT_TRUE(opened) << opened.error().message();
    session = *opened;
    session->call(Message::copy_of(wire[0].host.pool(), std::as_bytes(std::span(arguments))), one, timeout);
  }
  /// What the server's host answers to `request`; empty: nothing.
  std::string answer(const std::string& request) {
    wire.deliver({0, PacketWire::address(1), request});
    return wire.packets.empty() ? std::string() : wire.take().bytes;
  }
  /// The outcome of a client's call that gets the reply `reply`, which starts after xid and REPLY.
  Errc outcome(const std::string& reply, std::string* results = nullptr) {
    TestCall one;
    call(one, "arguments");
    const std::string xid = wire.take().bytes.substr(0, 4);
    wire.deliver({1, PacketWire::address(0), xid + words({1}) + reply});
    EXPECT_TRUE(one.done());
    if (results != nullptr) *results = one.reply;
    return one.outcome;
  }

  PacketWire wire;
  std::vector<std::unique_ptr<Protocol>> layers[2];  ///< The lowest layer first.
  std::optional<SinkProtocol> high;
  std::optional<SunServer> server;
  SessionRef session;
};

}  // namespace lrpc::netrpc::sun_test
