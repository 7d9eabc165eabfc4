// A host in a namespace, with its engine, for tests of what lies on real sockets.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/protocol.h"
#include "netrpc/devices/engine/uring_engine.h"
#include "netrpc/test_support/asked.h"
#include "netrpc/test_support/namespaces.h"
#include "tests/support/eventually.h"

namespace lrpc::netrpc::test {

/// A host whose graph the test makes by inside(), in its namespace and its monitor. The service threads end first, then
/// the protocols, higher ones before lower ones, then the host.
class RealHost {
 public:
  RealHost(const Namespace& where, EngineKind kind, std::string name) : where_(where) {
    auto engine = UringEngine::make(kind);
    EXPECT_TRUE(engine) << engine.error().message();
    engine_ = std::move(engine).value();
    host_ = std::make_unique<Host>(HostOptions{.name = std::move(name), .address = {}}, clock_, *engine_);
  }
  ~RealHost() {
    engine_->stop();
    const Shepherd inside(host_->monitor());
    while (!protocols_.empty()) protocols_.pop_back();
  }

  Host& operator*() const { return *host_; }
  Host* operator->() const { return host_.get(); }
  UringEngine& engine() { return *engine_; }
  void start(unsigned threads) {
    where_.run([&] { ASSERT_TRUE(engine_->start(*host_, threads)); });
  }
  template <class Procedure>
  void inside(Procedure procedure) {
    where_.run([&] {
      const Shepherd held(host_->monitor());
      procedure();
    });
  }
  /// As test::asked(), inside.
  template <class Answer, class Asked>
  Answer asked(Asked& protocol_or_session, Answer question = {}) {
    inside([&] { question = test::asked<Answer>(protocol_or_session, question); });
    return question;
  }
  /// Takes over a protocol made in inside().
  template <class P>
  P& keep(std::unique_ptr<P> protocol) {
    P& kept = *protocol;
    protocols_.push_back(std::move(protocol));
    return kept;
  }
  Protocol& keep(Result<std::unique_ptr<Protocol>> protocol) {
    if (!protocol) {
      ADD_FAILURE() << protocol.error().message();
      throw std::runtime_error(protocol.error().message());
    }
    return keep(std::move(protocol).value());
  }
  /// Waits, outside the monitor, until `done`, which is evaluated inside; at most `patience`. If it is found true only
  /// at the deadline, the thread that changed it has not woken this one: a failure.
  bool wait(const std::function<bool()>& done, Duration patience = std::chrono::minutes(4)) {
    const Shepherd held(host_->monitor());
    const Time deadline = host_->now() + patience;
    const bool found = engine_->wait(*host_, done, deadline);
    EXPECT_TRUE(!found || host_->now() < deadline) << "nobody has woken who waits";
    return found;
  }
  /// Whether `done`, which is evaluated inside, becomes true as messages come. This thread receives if no other does.
  bool becomes(const std::function<bool()>& done) {
    return testing_lrpc::eventually([&] {
      wait([] { return false; }, std::chrono::milliseconds(10));
      bool yes = false;
      inside([&] { yes = done(); });
      return yes;
    });
  }

 private:
  const Namespace& where_;
  MonotonicClock clock_;
  std::unique_ptr<UringEngine> engine_;
  std::unique_ptr<Host> host_;
  std::vector<std::unique_ptr<Protocol>> protocols_;
};

/// The highest protocol of a test: echoes what arrives, or collects it. A test may wait for anything that it counts, so
/// it wakes the waiting thread: a service thread may be the one that receives.
class Talker final : public Protocol {
 public:
  Talker(Host& host, bool echoes) : Protocol(host, "talker"), echoes_(echoes) {}

  Errc open_done(Session& lower, const ParticipantSet& participants) noexcept override {
    (void)lower;
    announced.push_back(participants);
    host().engine().wake(host());
    return refuses ? Errc::limit_reached : Errc::ok;
  }
  void demux(Session& lower, Message message) noexcept override {
    ++received;
    bytes += message.size();
    if (echoes_) {
      if (lower.push(std::move(message)) != Errc::ok) ++failed;
    } else {
      last = std::move(message);
    }
    host().engine().wake(host());
  }

  bool refuses = false;
  std::uint64_t received = 0;
  std::uint64_t bytes = 0;
  std::uint64_t failed = 0;
  Message last;
  std::vector<ParticipantSet> announced;

 private:
  const bool echoes_;
};

}  // namespace lrpc::netrpc::test
