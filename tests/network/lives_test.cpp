// Servers that disappear or restart while calls are under way.
#include <functional>

#include "callers.h"
#include "eventually.h"

namespace testing_wires {
namespace {

constexpr int kCallers = 4;

class Lives : public OnWires {
 protected:
  void SetUp() override {
    OnWires::SetUp();
    if (IsSkipped()) return;
    for (auto* const place : {&client_, &server_, &other_}) place->emplace();
    bridge_.emplace();
    bridge_->plug(*client_, "wire", text(kClient));
    bridge_->plug(*server_, "wire", text(kServer));
    bridge_->plug(*other_, "wire", text(kOther));
  }
  /// Four threads call the server. After some hundred calls `event` happens; then each thread goes on while `more`.
  template <class More>
  static std::vector<Answer> call_through(WireHost& client, const std::function<void()>& event, More more) {
    std::atomic<std::size_t> made = 0;
    std::atomic<bool> over = false;
    std::atomic<bool> happened = false;
    std::thread breaker([&] {
      while (made < 500 && !over) std::this_thread::yield();
      event();
      happened = true;
    });
    // The event can take a minute on a busy machine. So callers slow down, to have calls left after it.
    std::vector<Answer> answers = call_from_threads(client, kServer, kCallers, kCalls, made, [&](const Answer& answer) {
      if (made > kCalls / 2 && !happened) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return more(answer);
    });
    over = true;
    breaker.join();
    return answers;
  }
  /// More than a test ever makes.
  static constexpr std::size_t kCalls = 1'000'000;
  std::optional<Namespace> client_;
  std::optional<Namespace> server_;
  std::optional<Namespace> other_;
  std::optional<Bridge> bridge_;
};

/// Whether a call may end in this way if its server is gone.
bool lost(Errc outcome) { return outcome == Errc::call_failed || outcome == Errc::host_unreachable; }

TEST_P(Lives, OfAServerWhoseLinkIsCutEndWithItsCallsAndNotWithTheClients) {
  Ledger ledger(kCalls);
  WireHost server(*server_, kServer, stack(), {.ledger = &ledger});
  WireHost other(*other_, kOther, stack());
  // A call that is not given up ends with call_aborted after 10 minutes. A call that is given up because the machine
  // stood still ends its caller, too, as a cut link does.
  WireHost client(*client_, kClient, stack(), {.give_up = "500ms"});
  client.open(kServer);
  client.open(kOther);
  const std::vector<Answer> answers = call_through(
      client, [&] { server_->ip("link delete wire"); },
      [](const Answer& answer) { return answer.outcome == Errc::ok; });
  int failed = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_TRUE(answers[i].right || lost(answers[i].outcome)) << i << ": " << static_cast<int>(answers[i].outcome);
    EXPECT_LE(ledger.executed(i), 1) << "call " << i;
    if (!answers[i].right) ++failed;
  }
  EXPECT_EQ(failed, kCallers);  // the last call of each caller
  EXPECT_TRUE(lost(client.call(kServer, 16, kCalls).outcome));
  EXPECT_TRUE(testing_lrpc::eventually([&] { return client.call(kOther, 16'000, 1).right; }));
}

TEST_P(Lives, OfAServerThatStartsAgainDoNotExecuteACallTwice) {
  Ledger ledger(kCalls);
  std::optional<WireHost> server;
  server.emplace(*server_, kServer, stack(), WireHostOptions{.ledger = &ledger});
  WireHost client(*client_, kClient, stack());
  client.open(kServer);
  std::atomic<int> left = 1000;  // calls in the server's second life
  std::atomic<bool> restarted = false;
  const std::vector<Answer> answers = call_through(
      client,
      [&] {
        server.reset();
        server.emplace(*server_, kServer, stack(), WireHostOptions{.ledger = &ledger});
        restarted = true;
      },
      [&](const Answer&) { return !restarted || --left > 0; });
  std::size_t failed = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_TRUE(answers[i].right || answers[i].outcome == Errc::call_failed)
        << i << ": " << static_cast<int>(answers[i].outcome);
    EXPECT_LE(ledger.executed(i), 1) << "call " << i;
    if (answers[i].right) {
      EXPECT_EQ(ledger.executed(i), 1) << "call " << i;
    } else {
      ++failed;
    }
  }
  // Calls that were under way, and perhaps those by which the client learns of the new life.
  EXPECT_LE(failed, 2U * kCallers);
  EXPECT_TRUE(client.call(kServer, 16'000, kCalls).right);
}

INSTANTIATE_TEST_SUITE_P(Stacks, Lives, ::testing::Values(&kLayered, &kSizes, &kMonolithic), name_of);

}  // namespace
}  // namespace testing_wires
