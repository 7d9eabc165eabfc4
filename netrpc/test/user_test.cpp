// User-level protocols: at the top of a graph, in the middle, and with threads of their own.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "fake_calls.h"
#include "netrpc/protocols/user/user.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;
using test::FakeCalls;

TEST(UserProtocolTest, a_program_opens_enables_receives_and_pushes_with_procedures) {
  SimHosts net(2);
  std::vector<std::string> received;
  int opened = 0;
  UserOperations server;
  server.opened = [&](Session&, const ParticipantSet&) {
    ++opened;
    return Errc::ok;
  };
  server.receive = [&](Session& from, Message message) {
    received.push_back(text_of(message));
    EXPECT_EQ(from.push(std::move(message)), Errc::ok);
  };
  UserOperations client;
  client.receive = [&](Session&, Message message) { received.push_back("back " + text_of(message)); };
  auto& b = net[1].add<UserProtocol>("server", std::vector<Protocol*>{&net[1].ip()}, server);
  auto& a = net[0].add<UserProtocol>("client", std::vector<Protocol*>{&net[0].ip()}, client);
  {
    const Shepherd inside(net[1].monitor());
    ASSERT_TRUE(b.enable_below(SimHosts::anyone()));
  }
  {
    const Shepherd inside(net[0].monitor());
    ASSERT_TRUE(a.enable_below(SimHosts::anyone()));
    Result<SessionRef> session = a.open_below(net.to(1));
    ASSERT_TRUE(session);
    EXPECT_EQ(session.value()->push(net.message(0, "hello")), Errc::ok);
  }
  net.world.run_until_idle(1s);
  EXPECT_EQ(received, (std::vector<std::string>{"hello", "back hello"}));
  EXPECT_EQ(opened, 1);
  const Shepherd inside(net[1].monitor());
  b.disable_below(SimHosts::anyone());
}

TEST(UserProtocolTest, what_is_not_given_is_what_every_protocol_does) {
  SimHosts net(1);
  FakeCalls& calls = net[0].add<FakeCalls>();
  auto& user = net[0].add<UserProtocol>("user", std::vector<Protocol*>{&calls});
  ASSERT_TRUE(user.enable_below(SimHosts::anyone()));
  calls.arrive("nobody listens");
  EXPECT_EQ(calls.replies, std::vector<std::string>{""});
  EXPECT_EQ(test::asked<control::Statistics>(user).no_session, 1U);
  UserOperations operations;
  operations.largest = 16384;
  operations.control = [](control::Request& asked) {
    if (auto* const local = std::get_if<control::LocalHost>(&asked)) {
      local->host = {77};
      return Errc::ok;
    }
    return Errc::not_supported;
  };
  operations.serve = [](Session& from, Message message) { from.reply(std::move(message)); };
  user.set_operations(operations);
  EXPECT_EQ(test::asked<control::AdvertisedMaximum>(user).size, 16384U);
  EXPECT_EQ(test::asked<control::LocalHost>(user).host.value, 77U);
  calls.arrive("served");
  EXPECT_EQ(calls.replies.back(), "served");
}

TEST(UserLayerTest, a_program_puts_a_header_of_its_own_in_the_middle_of_a_graph) {
  SimHosts net(2);
  UserLayerOperations operations;
  operations.header = 1;
  operations.push = [](Session& lower, Message message) {
    std::byte* const header = message.push(1);
    if (header == nullptr) return Errc::limit_reached;
    *header = std::byte{'#'};
    return lower.push(std::move(message));
  };
  int dropped = 0;
  operations.demux = [&](Session& session, Protocol& high, Message message) {
    Message::Header<1> header;
    message.pop(header);
    if (!header || *header.bytes != std::byte{'#'}) {
      ++dropped;
      return;
    }
    high.demux(session, std::move(message));
  };
  UserOperations top;
  std::vector<std::string> received;
  top.receive = [&](Session&, Message message) { received.push_back(text_of(message)); };
  top.largest = 100;
  ProtocolKinds kinds;
  kinds.add(sim_ip_kind("IP")).add(user_layer_kind("MARK", operations));
  kinds.add(user_kind("APP", Service::datagram, top));
  const Result<GraphDescription> description =
      GraphDescription::parse("ip = IP; mark = MARK over ip; app = APP over mark;", kinds);
  ASSERT_TRUE(description) << description.error().text;
  std::shared_ptr<Graph> graphs[2];
  for (std::size_t i = 0; i < 2; ++i) {
    Result<Graph> graph = Graph::compose(net[i].host(), description.value(), kinds);
    ASSERT_TRUE(graph) << graph.error().text;
    graphs[i] = std::make_shared<Graph>(std::move(graph).value());
    net[i].own(graphs[i]);
    const Shepherd inside(net[i].monitor());
    ASSERT_TRUE(static_cast<UserProtocol*>(graphs[i]->find("app"))->enable_below(SimHosts::anyone()));
  }
  {
    const Shepherd inside(net[0].monitor());
    auto* const app = static_cast<UserProtocol*>(graphs[0]->find("app"));
    Result<SessionRef> session = app->open_below(net.to(1));
    ASSERT_TRUE(session);
    EXPECT_EQ(session.value()->push(net.message(0, "marked")), Errc::ok);
    // A size asked of the session excludes the header of "mark", a size asked of IP includes it.
    EXPECT_EQ(test::asked<control::MaximumMessage>(**session).size + 1,
              test::asked<control::MaximumMessage>(*graphs[0]->find("ip")).size);
    EXPECT_EQ(test::asked<control::AdvertisedMaximum>(*graphs[0]->find("mark")).size, 101U);
  }
  net.world.run_until_idle(1s);
  EXPECT_EQ(received, std::vector<std::string>{"marked"});
  EXPECT_EQ(dropped, 0);
}

TEST(UserProgramTest, procedures_run_outside_the_monitor_and_may_come_back_into_it) {
  SimHosts net(1);
  FakeCalls& calls = net[0].add<FakeCalls>();
  auto& user = net[0].add<UserProtocol>("user", std::vector<Protocol*>{&calls});
  Host& host = net[0].host();
  std::string asked;
  UserProgram* self = nullptr;
  UserProgram program(user, {.receive = {},
                             .serve =
                                 [&](HostAddress, Message request) {
                                   EXPECT_FALSE(host.monitor().held());
                                   asked = text_of(request);
                                   Result<UserSession> session = self->open(net.to(0));
                                   EXPECT_TRUE(session);
                                   Message reply;
                                   EXPECT_EQ(session->call(self->message({}), reply, 1s), Errc::ok);
                                   return request;
                                 },
                             .largest = 3000});
  self = &program;
  ASSERT_TRUE(program.enable(SimHosts::anyone()));
  {
    const Shepherd inside(host.monitor());
    calls.arrive("question");
    EXPECT_TRUE(host.monitor().held());
  }
  EXPECT_EQ(asked, "question");
  EXPECT_EQ(calls.replies, std::vector<std::string>{"question"});
  program.disable(SimHosts::anyone());
}

TEST(UserProgramTest, a_message_of_any_size_is_made_and_errors_come_back) {
  SimHosts net(1);
  FakeCalls& calls = net[0].add<FakeCalls>();
  auto& user = net[0].add<UserProtocol>("user", std::vector<Protocol*>{&calls});
  UserProgram program(user, {});
  const std::string large(100000, 'l');
  Message message = program.message(std::as_bytes(std::span(large)));
  EXPECT_EQ(text_of(message), large);
  Result<UserSession> session = program.open(net.to(0));
  ASSERT_TRUE(session);
  EXPECT_EQ(session->push(std::move(message)), Errc::not_supported);
  Message reply;
  calls.outcome = Errc::call_failed;
  EXPECT_EQ(session->call(program.message({}), reply, kNoLimit), Errc::call_failed);
  EXPECT_FALSE(reply.allocated());
  control::Request request = control::PeerHost{};
  EXPECT_EQ(session->control(request), Errc::ok);
  UserSession other;
  EXPECT_FALSE(other);
  other = std::move(*session);
  EXPECT_TRUE(other);
}

TEST(UserProgramTest, threads_call_and_are_called_at_the_same_time) {
  SimHosts net(1);
  FakeCalls& calls = net[0].add<FakeCalls>();
  auto& user = net[0].add<UserProtocol>("user", std::vector<Protocol*>{&calls});
  std::atomic<int> served{0};
  {
    UserProgram program(user, {.receive = {},
                               .serve =
                                   [&](HostAddress, Message request) {
                                     ++served;
                                     return request;
                                   },
                               .largest = 1500});
    ASSERT_TRUE(program.enable(SimHosts::anyone()));
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        Result<UserSession> session = program.open(net.to(0));
        ASSERT_TRUE(session);
        for (int i = 0; i < 500; ++i) {
          const std::string text = "call " + std::to_string(i);
          Message reply;
          ASSERT_EQ(session->call(program.message(std::as_bytes(std::span(text))), reply, 1s), Errc::ok);
          ASSERT_EQ(text_of(reply), text);
        }
      });
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) {
          const Shepherd inside(net[0].monitor());
          calls.arrive("request");
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(served, 1000);
  const Shepherd inside(net[0].monitor());
  calls.arrive("after the end");
  EXPECT_EQ(served, 1000);
  EXPECT_EQ(calls.replies.size(), 1001U);
}

}  // namespace
}  // namespace lrpc::netrpc
