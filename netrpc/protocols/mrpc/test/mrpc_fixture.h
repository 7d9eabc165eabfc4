// Two hosts on a simulated Ethernet with M_RPC over a tap on each: a client on the first, a server on the second.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "netrpc/protocols/mrpc/protocol.h"
#include "netrpc/protocols/mrpc/test/tap.h"
#include "netrpc/sim/test_hosts.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc::mrpc {

using namespace std::chrono_literals;

/// Counts executions by request; answers at once, later, or never.
class TestServer final : public Protocol {
 public:
  explicit TestServer(Host& host) : Protocol(host, "server") {}
  void call_demux(Session& lower, Message request) noexcept override {
    const std::string text = text_of(request);
    ++executions[text];
    ++executed;
    command = lower.participants().local.command;
    if (silent) return;
    if (slow) {
      pending.emplace_back(&lower);
      return;
    }
    answer(lower, std::move(request));
  }
  void answer_pending() {
    std::vector<SessionRef> now;
    now.swap(pending);
    for (const SessionRef& session : now)
      session->reply(Message::copy_of(host().pool(), std::as_bytes(std::span("late", 4))));
  }

  bool slow = false;                          ///< Keeps the session and does not answer.
  bool silent = false;                        ///< Releases the session without an answer.
  std::size_t answer_size = ~std::size_t{0};  ///< The default: echo.
  std::vector<SessionRef> pending;
  std::map<std::string, int> executions;
  int executed = 0;
  std::uint16_t command = 0;

 private:
  void answer(Session& lower, Message request) {
    if (answer_size == ~std::size_t{0}) return lower.reply(std::move(request));
    Message reply = Message::make(host().pool(), answer_size);
    for (std::size_t i = 0; i < answer_size; ++i) reply.bytes()[i] = static_cast<std::byte>(i * 7 + i / 251);
    lower.reply(std::move(reply));
  }
};

/// Bytes that depend on their position.
inline std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 + i / 251);
  return text;
}

class MrpcTest : public testing::Test {
 protected:
  static constexpr std::uint16_t kCommand = 7;

  explicit MrpcTest(Settings settings = {}) : settings_(settings) {
    for (std::size_t i = 0; i < 2; ++i) net[i].on_boot([this, i](SimHost& host) { compose(host, i); });
  }
  ~MrpcTest() override {
    for (std::size_t i = 0; i < 2; ++i)
      if (net[i].up()) {
        const Shepherd inside(net[i].monitor());
        if (i == 0) session = hostile = {};
        if (i == 1) server->pending.clear();
      }
  }
  void compose(SimHost& host, std::size_t i) {
    tap[i] = &host.add<Tap>(host.ethernet());
    mrpc[i] = &host.add<Monolithic>("mrpc", *tap[i], settings_);
    if (i == 0) {
      user = &host.add<SinkProtocol>("user");
      session = *mrpc[0]->open(*user, to_server());
    } else {
      server = &host.add<TestServer>();
      ParticipantSet enabled;
      enabled.local.command = kCommand;
      EXPECT_TRUE(mrpc[1]->open_enable(*server, enabled));
    }
  }
  /// Crashes host `i`, and drops what the test holds of that life.
  void crash(std::size_t i) {
    if (i == 0) {
      const Shepherd inside(net[0].monitor());
      session = hostile = {};
    } else {
      const Shepherd inside(net[1].monitor());
      server->pending.clear();
    }
    net[i].crash();
  }
  ParticipantSet to_server(std::uint16_t command = kCommand) {
    ParticipantSet participants = net.to(1);
    participants.remote.command = command;
    return participants;
  }
  void start(TestCall& call, std::string_view request, Duration timeout = kNoLimit) {
    const Shepherd inside(net[0].monitor());
    session->call(net.message(0, request), call, timeout);
  }
  void cancel(TestCall& call) {
    const Shepherd inside(net[0].monitor());
    session->cancel(call);
  }
  /// Makes a call, and runs the simulation until it ends.
  Errc call(std::string_view request, std::string& reply, Duration timeout = kNoLimit) {
    TestCall one;
    start(one, request, timeout);
    EXPECT_TRUE(net.world.run_until([&] { return one.done(); }, 10min));
    EXPECT_EQ(one.completions, 1);
    reply = one.reply;
    return one.outcome;
  }
  /// Makes a call that succeeds, so that boot identifiers are known, and clears the taps.
  void warm_up() {
    std::string reply;
    ASSERT_EQ(call("warm", reply), Errc::ok);
    net.world.run_for(30ms);
    tap[0]->sent.clear();
    tap[1]->sent.clear();
    server->executions.clear();
    server->executed = 0;
  }
  control::Statistics statistics(std::size_t i) { return test::asked<control::Statistics>(*mrpc[i]); }
  /// Loses the `nth` packet (from 1) among those of host `i` that match `which`.
  void lose(std::size_t i, int nth, std::function<bool(const Header&)> which) {
    tap[i]->judge = [nth, which = std::move(which), seen = 0](const Header& header) mutable {
      return which(header) && ++seen == nth ? Tap::Fate::lose : Tap::Fate::send;
    };
  }
  static bool is_request(const Header& header) { return header.type == Type::request; }
  static bool is_reply(const Header& header) { return header.type == Type::reply; }
  /// Sends a forged packet from host `from`.
  void inject(std::size_t from, const Header& header, std::string_view data = {}) {
    const Shepherd inside(net[from].monitor());
    if (!hostile) hostile = *net[from].ethernet().open(*tap[from], net.to(1 - from, protocol_numbers::kMonolithic));
    Message message = net.message(from, data);
    header.encode(message.push(Header::kSize));
    (void)hostile->push(std::move(message));
  }
  /// A request header as the client's next request would have.
  Header request(std::uint32_t sequence, std::uint16_t channel = 0) {
    Header header;
    header.client = net.address(0);
    header.server = net.address(1);
    header.channel = channel;
    header.sequence = sequence;
    header.command = kCommand;
    header.boot_id = net[0].host().boot_id();
    header.peer_boot_id = net[1].host().boot_id();
    return header;
  }

  Settings settings_;
  SimHosts net{2};
  Tap* tap[2] = {};
  Monolithic* mrpc[2] = {};
  SinkProtocol* user = nullptr;
  TestServer* server = nullptr;
  SessionRef session;
  SessionRef hostile;
};

}  // namespace lrpc::netrpc::mrpc
