// A whole stack, bare and with a transparent layer over each of its protocols: both behave the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "netrpc/protocols/channel/channel.h"
#include "netrpc/protocols/fault/fault.h"
#include "netrpc/protocols/fragment/fragment.h"
#include "netrpc/protocols/mrpc/mrpc.h"
#include "netrpc/protocols/null/null.h"
#include "netrpc/protocols/select/select.h"
#include "netrpc/protocols/trace/trace.h"
#include "netrpc/protocols/user/user.h"
#include "netrpc/sim/test_hosts.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t kCommand = 7;

struct Stack {
  const char* name;
  std::vector<std::pair<const char*, const char*>> lines;  ///< Instance, definition; "~" before a lower instance.
};

std::vector<Stack> stacks() {
  return {{"select_channel_fragment_eth",
           {{"eth", "ETH"},
            {"fragment", "FRAGMENT over ~eth"},
            {"channel", "CHANNEL over ~fragment"},
            {"select", "SELECT over ~channel"}}},
          {"select_channel_ip", {{"ip", "IP"}, {"channel", "CHANNEL over ~ip"}, {"select", "SELECT over ~channel"}}},
          {"mrpc_eth", {{"eth", "ETH"}, {"select", "M_RPC over ~eth"}}}};
}

/// The graph's description, with `layer` over each instance (empty: bare). The top instance is called "top".
std::string describe(const Stack& stack, const std::string& layer) {
  std::string text;
  for (const auto& [name, definition] : stack.lines) {
    text += std::string(name) + " = ";
    for (const char* c = definition; *c != '\0'; ++c) {
      if (*c != '~')
        text += *c;
      else if (!layer.empty())
        text += "over_";
    }
    text += ";\n";
    if (!layer.empty()) text += std::string("over_") + name + " = " + layer + " over " + name + ";\n";
  }
  return text + "top = APP over " + (layer.empty() ? "" : "over_") + stack.lines.back().first + ";\n";
}

class LayeredStack : public ::testing::TestWithParam<std::tuple<std::size_t, const char*>> {
 protected:
  LayeredStack() {
    UserOperations server;
    server.largest = 16384;
    server.serve = [this](Session& from, Message request) {
      ++served_;
      from.reply(std::move(request));
    };
    kinds_.add(sim_ethernet_kind("ETH")).add(sim_ip_kind("IP")).add(fragment_kind());
    kinds_.add(channel_kind()).add(select_kind()).add(mrpc::mrpc_kind());
    kinds_.add(null_kind()).add(fault_kind()).add(trace_kind([this](std::string_view) { ++lines_; }));
    kinds_.add(user_kind("APP", Service::transaction, server));
    const std::string text = describe(stacks()[std::get<0>(GetParam())], std::get<1>(GetParam()));
    const Result<GraphDescription> description = GraphDescription::parse(text, kinds_);
    EXPECT_TRUE(description) << text << description.error().text;
    for (std::size_t i = 0; i < 2; ++i) {
      Result<Graph> graph = Graph::compose(net_[i].host(), *description, kinds_);
      EXPECT_TRUE(graph) << graph.error().text;
      auto made = std::make_shared<Graph>(std::move(graph).value());
      graphs_[i] = made.get();
      net_[i].own(std::move(made));  // destroyed at the end of the host's life
    }
    ParticipantSet participants;
    participants.local.command = kCommand;
    const Shepherd inside(net_[1].monitor());
    EXPECT_TRUE(top(1).enable_below(participants));
  }
  UserProtocol& top(std::size_t i) { return *static_cast<UserProtocol*>(graphs_[i]->find("top")); }
  SessionRef open() {
    ParticipantSet participants;
    participants.remote.host = net_.address(1);
    participants.remote.command = kCommand;
    const Shepherd inside(net_[0].monitor());
    Result<SessionRef> session = top(0).open_below(participants);
    EXPECT_TRUE(session) << session.error().message();
    return *session;
  }
  void call(Session& session, TestCall& call, const std::string& text, Duration timeout = kNoLimit) {
    const Shepherd inside(net_[0].monitor());
    session.call(net_.message(0, text), call, timeout);
  }

  ProtocolKinds kinds_;
  int served_ = 0;
  int lines_ = 0;
  SimHosts net_{2};
  Graph* graphs_[2] = {};
};

TEST_P(LayeredStack, calls_and_leaves_nothing_behind) {
  {
    SessionRef session = open();
    for (const std::size_t size : {0U, 1U, 100U, 1400U}) {
      TestCall one;
      call(*session, one, std::string(size, 'q'));
      net_.world.run_until([&] { return one.done(); }, 10s);
      EXPECT_EQ(one.outcome, Errc::ok) << size;
      EXPECT_EQ(one.reply, std::string(size, 'q'));
    }
    std::deque<TestCall> many(6);
    for (TestCall& each : many) call(*session, each, "at once");
    net_.world.run_until([&] { return std::all_of(many.begin(), many.end(), [](auto& c) { return c.done(); }); }, 10s);
    for (const TestCall& each : many) EXPECT_EQ(each.reply, "at once");
    TestCall cancelled;
    call(*session, cancelled, "never mind");
    {
      const Shepherd inside(net_[0].monitor());
      session->cancel(cancelled);
    }
    net_.world.run_for(1s);
    EXPECT_FALSE(cancelled.done());
    EXPECT_GE(served_, 10);
    const Shepherd inside(net_[0].monitor());
    session = {};
  }
  net_.world.run_for(10min);
  // The layers may change how often idle state is swept: drop it all before comparing bare and layered stacks.
  for (std::size_t i = 0; i < 2; ++i) {
    for (const auto& protocol : graphs_[i]->protocols()) {
      const Shepherd inside(net_[i].monitor());
      control::Request request = control::DropIdle{};
      (void)protocol->control(request);
    }
    for (const auto& protocol : graphs_[i]->protocols()) {
      const Shepherd inside(net_[i].monitor());
      control::Request request = control::Statistics{};
      if (protocol->control(request) != Errc::ok) continue;
      EXPECT_EQ(std::get<control::Statistics>(request).malformed, 0U) << protocol->name();
      if (protocol->name().starts_with("over_")) {
        EXPECT_EQ(std::get<control::Statistics>(request).state, 0U) << protocol->name();
      }
    }
  }
}

TEST_P(LayeredStack, loss_of_a_whole_network_ends_calls_truthfully) {
  SessionRef session = open();
  TestCall first;
  call(*session, first, "first");
  net_.world.run_until([&] { return first.done(); }, 10s);
  ASSERT_EQ(first.outcome, Errc::ok);
  net_[1].crash();
  TestCall late;
  TestCall timed;
  call(*session, late, "nobody there");
  call(*session, timed, "nobody there", 100ms);
  net_.world.run_for(200ms);
  EXPECT_EQ(timed.outcome, Errc::call_aborted);
  net_.world.run_for(60s);
  EXPECT_TRUE(late.done());
  EXPECT_NE(late.outcome, Errc::ok);
  const Shepherd inside(net_[0].monitor());
  session = {};
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<std::size_t, const char*>>& info) {
  const std::string layer = std::get<1>(info.param);
  return std::string(stacks()[std::get<0>(info.param)].name) + "_" +
         (layer.empty()                   ? "bare"
          : layer.substr(0, 5) == "FAULT" ? "FAULT"
                                          : layer);
}
INSTANTIATE_TEST_SUITE_P(Stacks, LayeredStack,
                         ::testing::Combine(::testing::Values(0U, 1U, 2U),
                                            ::testing::Values("", "NULL", "TRACE", "FAULT(delay = 1us)")),
                         name_of);

}  // namespace
}  // namespace lrpc::netrpc
