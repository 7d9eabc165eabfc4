// Helpers for tests of group RPC: a client, and a group of servers that may crash and boot.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "netrpc/composite/composite.h"
#include "netrpc/composite/suite/suite.h"
#include "netrpc/composite/test/two.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc::composite {

inline constexpr HostAddress kGroup{0xef000001};  // 239.0.0.1

/// Answers "host: request", or keeps the request if `keeps`.
class Server final : public Protocol {
 public:
  explicit Server(Host& host) : Protocol(host, "server") {}
  [[nodiscard]] Errc open_done(Session& /*lower*/, const ParticipantSet& /*participants*/) noexcept override {
    return Errc::ok;
  }
  void call_demux(Session& lower, Message request) noexcept override {
    if (!notes) return echo(lower, std::move(request), CallStyle::call);
    deepest = std::max(deepest, ++inside);
    execute(request);
    if (keeps) {
      kept.push_back({SessionRef(&lower), executed.back()});
      most_kept = std::max(most_kept, kept.size());
    } else {
      lower.reply(answer(executed.back()));
    }
    --inside;
  }
  void demux(Session& lower, Message request) noexcept override {
    if (!notes) return echo(lower, std::move(request), CallStyle::push);
    execute(request);
    pushed = lower.push(answer(executed.back()));
    pushed_again = lower.push(answer("again"));
  }
  [[nodiscard]] Errc control(control::Request& request) noexcept override {
    if (std::holds_alternative<control::Commit>(request)) {
      if (commits) ++committed;
      if (settles) settles(commits);
      return commits ? Errc::ok : Errc::system_error;
    }
    if (!std::holds_alternative<control::Rollback>(request)) return Protocol::control(request);
    ++rolled_back;
    if (settles) settles(false);
    return Errc::ok;
  }
  [[nodiscard]] Message answer(const std::string& text) {
    const std::string whole = to_string(host().address()) + ": " + text;
    return Message::copy_of(host().pool(), std::as_bytes(std::span(whole)));
  }
  std::vector<std::string> executed;
  std::function<void(const std::string&)> begins;  ///< Called with each request that the server gets,
  std::function<void(bool)> settles;               ///< and with whether its effects become permanent.
  bool notes = true;                               ///< False: the server echoes requests
  bool late = false;                               ///< and delays each echo until the next request.
  bool keeps = false;
  struct Kept {
    SessionRef session;
    std::string request;
  };
  std::vector<Kept> kept;
  std::size_t most_kept = 0;
  int inside = 0;   ///< Calls of call_demux() in progress,
  int deepest = 0;  ///< and the maximum of that.
  bool commits = true;
  int committed = 0;
  int rolled_back = 0;
  Errc pushed = Errc::ok;
  Errc pushed_again = Errc::ok;

 private:
  void execute(const Message& request) {
    executed.push_back(text_of(request));
    if (begins) begins(executed.back());
  }
  void echo(Session& lower, Message request, CallStyle style) {
    SessionRef session(&lower);
    if (late) {
      std::swap(session, later_);
      std::swap(request, later_request_);
    }
    if (!session) return;
    style == CallStyle::push ? (void)session->push(std::move(request)) : session->reply(std::move(request));
  }
  SessionRef later_;
  Message later_request_;
};

/// Records the outcomes of its pushes.
class Client final : public Protocol {
 public:
  explicit Client(Host& host) : Protocol(host, "client") {}
  [[nodiscard]] Errc open_done(Session& /*lower*/, const ParticipantSet& /*participants*/) noexcept override {
    return Errc::ok;
  }
  void demux(Session& lower, Message reply) noexcept override {
    ++replies;
    if (!notes) return;
    from.push_back(lower.peer());
    received.push_back(text_of(reply));
    received_at.push_back(host().now());
  }
  [[nodiscard]] Errc control(control::Request& request) noexcept override {
    if (auto* const one = std::get_if<control::PushFailed>(&request)) {
      failed.push_back(one->reason);
      failed_at.push_back(host().now());
      if (waits != Duration())
        (void)host().engine().wait(
            host(), [] { return false; }, host().now() + waits);
      return Errc::ok;
    }
    return Protocol::control(request);
  }
  void forget() {
    from.clear();
    received.clear();
    received_at.clear();
    failed.clear();
    failed_at.clear();
  }
  bool notes = true;
  Duration waits{};  ///< How long it waits in each notice of a failure, while other messages arrive.
  int replies = 0;
  std::vector<HostAddress> from;
  std::vector<std::string> received;
  std::vector<Time> received_at;
  std::vector<Errc> failed;
  std::vector<Time> failed_at;
};

inline std::string failure(Errc why) { return std::string(describe(why)); }

/// A call to a group, and the answer of each member.
class GroupOutcome final : public TestCall {
 public:
  GroupOutcome() { outcome = Errc::bad_message; }  // as no call ends
  void completed(Errc errc, Message answer) noexcept override {
    TestCall::completed(errc, std::move(answer));
    static int ends = 0;
    when = ++ends;
    if (world != nullptr) ended = world->now();
  }
  void collated(HostAddress member, Errc errc, Message answer) noexcept override {
    EXPECT_EQ(completions, 0);
    EXPECT_TRUE(said.emplace(to_string(member), errc == Errc::ok ? text_of(answer) : failure(errc)).second);
  }
  [[nodiscard]] bool counts(const Message& answer) noexcept override {
    return refused.empty() || text_of(answer).find(refused) == std::string::npos;
  }
  int when = 0;  ///< Numbers the ends of all calls, in order.
  const SimWorld* world = nullptr;
  Time begun{};
  Time ended{};
  std::map<std::string, std::string> said;
  std::string refused;  ///< Answers that contain this text do not count. Empty: all count.
};

using PartsOf = std::function<std::vector<Part>()>;
/// Makes the protocol below a host's composite protocol. Null: IP.
using BelowOf = std::function<Protocol&(SimHost&)>;

/// A client, 10.0.0.1, and `count` servers. A crashed server may boot again.
struct Several {
  Several(std::size_t count, PartsOf parts, SimOptions options = {}, std::size_t handler_threads = 0,
          BelowOf stands_on = nullptr)
      : net(count + 1, 1, options),
        parts_of(std::move(parts)),
        threads(handler_threads),
        below_of(std::move(stands_on)) {
    layers.resize(count + 1);
    servers.resize(count + 1);
    for (std::size_t i = 1; i <= count; ++i) net[i].on_boot([this, i](SimHost& host) { boot(i, host); });
    net[0].on_boot([this](SimHost& host) { boot_client(host); });
  }
  ~Several() {
    session = {};
    for (std::size_t i = 1; i < servers.size(); ++i)
      if (net[i].up()) let_go(i);
  }
  void compose(std::size_t at, SimHost& host) {
    Protocol& below = below_of ? below_of(host) : host.ip();
    auto made = Framework::make(host.host(), "cp", below, parts_of(), threads);
    ASSERT_TRUE(made) << made.error().message();
    layers[at] = made->get();
    host.own(*std::move(made));
  }
  void boot(std::size_t at, SimHost& host) {
    compose(at, host);
    servers[at] = &host.add<Server>();
    EXPECT_TRUE(layers[at]->open_enable(*servers[at], SimHosts::anyone()));
  }
  void boot_client(SimHost& host) {
    compose(0, host);
    client = &host.add<Client>();
    std::vector<HostAddress> members;
    for (std::size_t i = 1; i < servers.size(); ++i) members.push_back(net.address(i));
    EXPECT_TRUE(host.host().groups().set(kGroup, members));
    session = *layers[0]->open(*client, to_group());
  }
  /// The client crashes and boots again.
  void next_life() {
    session = {};
    net[0].crash();
    net[0].boot();
  }
  [[nodiscard]] static ParticipantSet to_group() {
    ParticipantSet participants = SimHosts::anyone();
    participants.remote.host = kGroup;
    return participants;
  }
  void call(std::string_view text, GroupOutcome& one, Duration timeout = kNoLimit) {
    const Shepherd inside(net[0].monitor());
    one.world = &net.world;
    one.begun = net.world.now();
    session->call(net.message(0, text), one, timeout);
  }
  Errc push(std::string_view text) {
    const Shepherd inside(net[0].monitor());
    return session->push(net.message(0, text));
  }
  void run(Duration how_long = std::chrono::milliseconds(100)) { net.world.run_for(how_long); }
  void answer(std::size_t server) {
    const Shepherd inside(net[server].monitor());
    for (const Server::Kept& one : std::exchange(servers[server]->kept, {}))
      one.session->reply(servers[server]->answer(one.request));
  }
  /// Drops the kept requests without an answer. Later requests are answered.
  void let_go(std::size_t server) {
    const Shepherd inside(net[server].monitor());
    servers[server]->keeps = false;
    std::exchange(servers[server]->kept, {}).clear();
  }
  [[nodiscard]] control::Statistics statistics(std::size_t host) {
    const Shepherd inside(net[host].monitor());
    return test::asked<control::Statistics>(*layers[host]);
  }
  [[nodiscard]] std::size_t state(std::size_t host) { return statistics(host).state; }

  SimHosts net;
  const PartsOf parts_of;
  const std::size_t threads;
  const BelowOf below_of;
  std::vector<Framework*> layers;
  std::vector<Server*> servers;
  Client* client = nullptr;
  SessionRef session;
};

}  // namespace lrpc::netrpc::composite
