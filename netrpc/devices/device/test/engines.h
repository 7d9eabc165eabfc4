// Two hosts on a wire, for tests of the engine: one calls, the other answers.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>

#include "device_addresses.h"
#include "netrpc/devices/udp/udp.h"
#include "netrpc/test_support/real_host.h"

namespace lrpc::netrpc::test {

/// Answers each message after having run a procedure outside the monitor, as a server's user code does.
class Server final : public Protocol {
 public:
  Server(Host& host, std::function<void()> procedure) : Protocol(host, "server"), procedure_(std::move(procedure)) {}
  void demux(Session& lower, Message message) noexcept override {
    const SessionRef keep(&lower);
    host().engine().outside(host(), procedure_);
    if (lower.push(std::move(message)) == Errc::ok) ++answered;
  }
  std::uint64_t answered = 0;

 private:
  const std::function<void()> procedure_;
};

class Engines : public testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override {
    if (const auto why = why_no_namespaces()) GTEST_SKIP() << *why;
    if (GetParam() == EngineKind::uring)
      if (auto engine = UringEngine::make(EngineKind::uring); !engine) GTEST_SKIP() << engine.error().message();
    pair_.emplace();
    a_ = std::make_unique<RealHost>(pair_->left, GetParam(), "a");
    b_ = std::make_unique<RealHost>(pair_->right, GetParam(), "b");
    b_->inside([&] {
      device_b_ = &b_->keep(make_udp(**b_, "udp", {}));
      server_ = &b_->keep(std::make_unique<Server>(**b_, [this] {
        if (procedure_) procedure_();
      }));
      ASSERT_TRUE(device_b_->open_enable(*server_, {kEcho, {}, {}}));
    });
    a_->inside([&] {
      device_a_ = &a_->keep(make_udp(**a_, "udp", {}));
      talker_ = &a_->keep(std::make_unique<Talker>(**a_, false));
      ParticipantSet participants{kEcho, {}, {}};
      participants.remote.host = {0x0a000002};
      auto opened = device_a_->open(*talker_, participants);
      if (!opened) throw std::runtime_error(opened.error().message());
      session_ = opened.value();
    });
  }
  void TearDown() override {
    if (a_) a_->inside([&] { session_ = {}; });
    a_.reset();
    b_.reset();
  }
  void push() {
    a_->inside([&] { EXPECT_EQ(session_->push(Message::make((*a_)->pool(), 32)), Errc::ok); });
  }
  bool round_trip(Duration patience = std::chrono::minutes(4)) {
    const Shepherd inside((*a_)->monitor());
    const std::uint64_t before = talker_->received;
    if (session_->push(Message::make((*a_)->pool(), 32)) != Errc::ok) return false;
    return a_->engine().wait(
        **a_, [&] { return talker_->received > before; }, (*a_)->now() + patience);
  }

  std::optional<JoinedPair> pair_;
  std::unique_ptr<RealHost> a_;
  std::unique_ptr<RealHost> b_;
  Protocol* device_a_ = nullptr;
  Protocol* device_b_ = nullptr;
  Server* server_ = nullptr;
  Talker* talker_ = nullptr;
  SessionRef session_;
  std::function<void()> procedure_;
};

}  // namespace lrpc::netrpc::test
