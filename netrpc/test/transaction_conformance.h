// For transaction_conformance_test.cpp: a server that counts, and its clients, over any composition that gives the
// transaction service.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netrpc/sim/storm_stacks.h"
#include "netrpc/sim/test_hosts.h"

namespace lrpc::netrpc::test {

inline constexpr std::uint16_t kCommand = 7;
inline constexpr const char* kComposed = "select-composite-fragment-ip";

inline std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 + i / 251);
  return text;
}

/// Counts executions by request over all lives of the server. Echoes, answers with a given size, or answers later.
class ConformanceServer final : public Protocol {
 public:
  struct Record {
    std::map<std::string, int> executions;
    int executed = 0;
    std::size_t answer_size = 0;
    bool echo = true;
    bool slow = false;
    bool refuses = false;
  };
  ConformanceServer(Host& host, Record& record) : Protocol(host, "server"), record_(record) {}
  void call_demux(Session& lower, Message request) noexcept override {
    ++record_.executions[text_of(request)];
    ++record_.executed;
    if (record_.refuses) {
      control::Request refuse = control::Refuse{Errc::limit_reached};
      EXPECT_EQ(lower.control(refuse), Errc::ok);
      return;
    }
    if (record_.slow) return pending_.emplace_back(&lower), void();
    if (record_.echo) return lower.reply(std::move(request));
    const std::string answer = pattern(record_.answer_size);
    lower.reply(Message::copy_of(host().pool(), std::as_bytes(std::span(answer))));
  }
  void answer_pending() {
    std::vector<SessionRef> now;
    now.swap(pending_);
    for (const SessionRef& session : now)
      session->reply(Message::copy_of(host().pool(), std::as_bytes(std::span("late", 4))));
  }

 private:
  Record& record_;
  std::vector<SessionRef> pending_;
};

class TransactionConformanceTest : public testing::TestWithParam<NamedStack> {
 protected:
  static constexpr std::size_t kServer = 0;

  TransactionConformanceTest() {
    for (std::size_t i = 0; i < net.world.hosts(); ++i) net[i].on_boot([this, i](SimHost& host) { compose(host, i); });
  }
  ~TransactionConformanceTest() override {
    for (std::size_t i = 1; i < net.world.hosts(); ++i) let_go(i);
  }
  void compose(SimHost& host, std::size_t i) {
    const auto compose_stack = stack_of(GetParam().text, simulated_kinds());
    ASSERT_TRUE(compose_stack) << compose_stack.error().message();
    all[i].clear();
    top[i] = &(*compose_stack)(host, all[i]);
    if (i != kServer) {
      sessions[i] = open(i, kCommand);
      return;
    }
    server = &host.add<ConformanceServer>(record);
    ParticipantSet participants{protocol_numbers::kFirstOfTests, {}, {}};
    participants.local.command = kCommand;
    const auto enabled = top[i]->open_enable(*server, participants);
    ASSERT_TRUE(enabled) << enabled.error().message();
  }
  SessionRef open(std::size_t i, std::uint16_t command) {
    if (user[i] == nullptr || net[i].lives() != life[i]) {
      user[i] = &net[i].add<SinkProtocol>();
      life[i] = net[i].lives();
    }
    ParticipantSet participants = net.to(kServer);
    participants.remote.command = command;
    Result<SessionRef> session = top[i]->open(*user[i], participants);
    EXPECT_TRUE(session) << session.error().message();
    return session ? std::move(*session) : SessionRef();
  }
  /// A message of any length, in several buffers if needed.
  Message message(std::size_t i, std::string_view text) {
    Message whole(net[i].pool());
    do {
      EXPECT_TRUE(whole.append(net.message(i, text.substr(0, Message::kMaxContiguous))));
      text.remove_prefix(std::min(text.size(), Message::kMaxContiguous));
    } while (!text.empty());
    return whole;
  }
  void let_go(std::size_t i) {
    if (!net[i].up()) return;
    const Shepherd inside(net[i].monitor());
    sessions[i] = {};
  }
  void crash(std::size_t i) {
    let_go(i);
    net[i].crash();
  }
  void start(TestCall& call, std::string_view request, Duration timeout = kNoLimit, std::size_t from = 1) {
    const Shepherd inside(net[from].monitor());
    sessions[from]->call(message(from, request), call, timeout);
  }
  Errc call(std::string_view request, std::string& reply, Duration timeout = kNoLimit, std::size_t from = 1) {
    TestCall one;
    start(one, request, timeout, from);
    EXPECT_TRUE(net.world.run_until([&] { return one.done(); }, std::chrono::minutes(10)));
    EXPECT_EQ(one.completions, 1);
    reply = one.reply;
    return one.outcome;
  }
  /// In a composition of micro-protocols, a member without an answer that counts has failed, whatever the reason.
  [[nodiscard]] static bool is_composed() { return GetParam().name == kComposed; }
  void answer_pending() {
    const Shepherd inside(net[kServer].monitor());
    server->answer_pending();
  }

  ConformanceServer::Record record;
  SimHosts net{3};
  Protocol* top[3] = {};
  std::vector<Protocol*> all[3];
  SinkProtocol* user[3] = {};
  std::uint32_t life[3] = {};
  SessionRef sessions[3];
  ConformanceServer* server = nullptr;
};

}  // namespace lrpc::netrpc::test
