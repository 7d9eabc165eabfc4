// At-most-once execution, counted: many calls over wires that lose, duplicate and reorder, with hosts that reboot.
#include <gtest/gtest.h>

#include <unordered_map>

#include "length.h"
#include "netrpc/protocols/channel/channel.h"
#include "netrpc/sim/test_hosts.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

/// How often each request has been executed, over all lives of the servers.
using Executions = std::unordered_map<std::string, int>;

class CountingServer final : public Protocol {
 public:
  CountingServer(Host& host, Executions& executions) : Protocol(host, "server"), executions_(executions) {}
  void call_demux(Session& lower, Message request) noexcept override {
    ++executions_[text_of(request)];
    if (host().random() % 4 != 0) return lower.reply(std::move(request));
    auto later = std::make_unique<Later>(*this, lower, std::move(request));
    host().events().schedule(later->event, Duration(host().random() % 20'000'000));
    later_.push_back(std::move(later));
    if (later_.size() > 64)
      later_.erase(std::remove_if(later_.begin(), later_.end(), [](auto& l) { return l->done; }), later_.end());
  }

 private:
  struct Later {
    Later(CountingServer& /*server*/, Session& to, Message message)
        : session(&to), request(std::move(message)), event([this] {
            done = true;
            session->reply(std::move(request));
            session = {};
          }) {}
    SessionRef session;
    Message request;
    bool done = false;
    Event event;
  };
  Executions& executions_;
  std::vector<std::unique_ptr<Later>> later_;
};

class Caller final : public Transaction {
 public:
  Caller(Host& host, SessionRef session, std::string name, int calls, Executions& outcomes, int& left)
      : host_(host),
        session_(std::move(session)),
        name_(std::move(name)),
        calls_(calls),
        outcomes_(outcomes),
        left_(left) {}
  void next() {
    if (done_ == calls_) return;
    text_ = name_ + "." + std::to_string(done_);
    const bool hurried = host_.random() % 10 == 0;
    session_->call(Message::copy_of(host_.pool(), std::as_bytes(std::span(text_))), *this,
                   hurried ? Duration(5ms) : Duration(kNoLimit));
  }
  void completed(Errc outcome, Message reply) noexcept override {
    if (outcome == Errc::limit_reached) {  // an aborted call still occupies the channel
      host_.events().schedule(retry_, 1ms);
      return;
    }
    if (outcome == Errc::ok) {
      EXPECT_EQ(text_of(reply), text_);
      ++outcomes_[text_];
    }
    ++done_;
    --left_;
    next();
  }

 private:
  Host& host_;
  SessionRef session_;
  const std::string name_;
  const int calls_;
  Executions& outcomes_;
  int& left_;
  int done_ = 0;
  std::string text_;
  Event retry_{[this] { next(); }};
};

struct Storm {
  explicit Storm(std::uint64_t seed, bool reboots) : net(2, 1, {.seed = seed, .link = {}, .routers = {}}) {
    SimLink& wire = net.world.link(0);
    wire.loss = 0.05;
    wire.duplicate = 0.05;
    wire.reorder = 0.1;
    wire.reorder_delay = 3ms;
    constexpr int kChannels = 20;
    const int calls = testing_lrpc::long_tests() ? 1000 : 250;
    all = left = kChannels * calls;
    net[1].on_boot([this](SimHost& machine) {
      auto channel = std::shared_ptr<Protocol>(make_channel(machine.host(), "channel", machine.ethernet()));
      machine.own(channel);
      auto& server = machine.add<CountingServer>(executions);
      EXPECT_TRUE(channel->open_enable(server, SimHosts::anyone()));
    });
    client = make_channel(net[0].host(), "channel", net[0].ethernet());
    auto& high = net[0].add<SinkProtocol>();
    {
      const Shepherd inside(net[0].monitor());
      for (int i = 0; i < kChannels; ++i) {
        callers.push_back(std::make_unique<Caller>(net[0].host(), *client->open(high, net.to(1)), std::to_string(i),
                                                   calls, outcomes, left));
        callers.back()->next();
      }
    }
    while (left > 0 && net.world.now() < 2h) {
      net.world.run_for(500ms);
      if (reboots && net.world.random() % 8 == 0) {
        net[1].crash();
        net.world.run_for(50ms);
        net[1].boot();
      }
    }
    EXPECT_EQ(left, 0);
    for (const auto& [text, count] : executions) EXPECT_EQ(count, 1) << text << " was executed " << count << " times";
    for (const auto& [text, count] : outcomes) {
      EXPECT_EQ(count, 1) << text;
      EXPECT_EQ(executions.count(text), 1U) << text << " was answered but not executed";
    }
    callers.clear();
  }
  SimHosts net;
  Executions executions;
  Executions outcomes;
  int all = 0;
  int left = 0;
  std::unique_ptr<Protocol> client;
  std::vector<std::unique_ptr<Caller>> callers;
};

/// In a long run `seed`, else the seed of this process.
std::uint64_t seed_or(std::uint64_t seed) { return testing_lrpc::long_tests() ? seed : testing_lrpc::test_seed(); }

TEST(ChannelStormTest, calls_over_a_bad_wire_are_each_executed_at_most_once) {
  const std::uint64_t seed = seed_or(3);
  SCOPED_TRACE("LRPC_TEST_SEED=" + std::to_string(seed));
  const Storm storm(seed, false);
  EXPECT_GT(storm.outcomes.size(), static_cast<std::size_t>(storm.all) * 85 / 100);
}

TEST(ChannelStormTest, at_most_once_holds_while_the_server_reboots_again_and_again) {
  const std::uint64_t seed = seed_or(11);
  SCOPED_TRACE("LRPC_TEST_SEED=" + std::to_string(seed));
  const Storm storm(seed, true);
  EXPECT_GT(storm.outcomes.size(), static_cast<std::size_t>(storm.all) * 3 / 4);
}

}  // namespace
}  // namespace lrpc::netrpc
