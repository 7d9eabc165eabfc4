// The micro-protocols for datagrams in every legal composition, drawn at random, on wires that lose, duplicate and
// reorder, between two hosts that are partitioned, crash and reboot: each micro-protocol keeps its promise, whatever
// other ones are there.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "length.h"
#include "netrpc/composite/suite/suite.h"
#include "netrpc/composite/test/two.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

/// The sender's life, and the number of the push in the storm.
using Pushed = std::pair<int, int>;

/// Records the messages that it receives.
class Receiver final : public Protocol {
 public:
  Receiver(Host& host, std::vector<Pushed>& into) : Protocol(host, "receiver"), into_(into) {}
  [[nodiscard]] Errc open_done(Session& /*lower*/, const ParticipantSet& /*participants*/) noexcept override {
    return Errc::ok;
  }
  void demux(Session& /*lower*/, Message message) noexcept override {
    const std::string text = text_of(message);
    into_.emplace_back(std::stoi(text), std::stoi(text.substr(text.find(' '))));
  }

 private:
  std::vector<Pushed>& into_;
};

/// The first host pushes to the second one.
class SuiteStorm {
 public:
  explicit SuiteStorm(std::uint64_t seed) : random_(seed), options_{seed, draw_link(), {}, 1us}, net_(2, 1, options_) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ":" + text());
    for (std::size_t i = 0; i < 2; ++i) net_[i].on_boot([this, i](SimHost& host) { boot(i, host); });
    for (int i = 0; i < kPushes; ++i) {
      trouble();
      push(i);
      net_.world.run_for(Duration(random_() % 1'000'000));
    }
    calm_down();
    check();
  }

 private:
  // Fewer than FIFO's `hold`: beyond it, a flow starts at the first number that is heard.
  static constexpr int kPushes = 200;

  SimLink draw_link() {
    const auto rate = [&](double most) { return most * static_cast<double>(random_() % 100) / 100; };
    return {.loss = rate(0.3), .duplicate = rate(0.2), .reorder = rate(0.5)};
  }
  [[nodiscard]] bool coin() { return random_() % 2 == 0; }
  [[nodiscard]] bool once_in(std::uint64_t times) { return random_() % times == 0; }
  [[nodiscard]] Duration patience() const { return ack_ ? 30s : 50ms; }  // as long as ACK may take

  std::vector<Part> parts() {
    std::vector<Part> all{part(number_kind())};
    if (unique_) all.push_back(part(unique_kind()));
    if (fifo_) all.push_back(part(fifo_kind(), {{"patience", std::to_string(patience() / 1ms) + "ms"}}));
    if (ack_) all.push_back(part(ack_kind(), {{"tries", "50"}}));
    if (membership_) all.push_back(part(membership_kind()));
    std::ranges::shuffle(all, random_);
    return all;
  }
  [[nodiscard]] std::string text() const {
    return std::string(unique_ ? " UNIQUE" : "") + (fifo_ ? " FIFO" : "") + (ack_ ? " ACK" : "") +
           (membership_ ? " MEMBERSHIP" : "") + (crashes_ ? ", crashes" : "") + (partitions_ ? ", partitions" : "") +
           (threads_ != 0 ? ", threads" : "");
  }

  void boot(std::size_t at, SimHost& host) {
    auto made = Framework::make(host.host(), "cp", host.ip(), parts(), threads_);
    ASSERT_TRUE(made) << made.error().message();
    layers_[at] = made->get();
    host.own(*std::move(made));
    if (at == 1) received_.emplace(received_.size(), std::vector<Pushed>());
    Receiver& top = host.add<Receiver>(at == 1 ? received_.rbegin()->second : nothing_);
    ASSERT_TRUE(layers_[at]->open_enable(top, SimHosts::anyone()));
    if (at == 1) return;
    ++life_;
    session_ = *layers_[0]->open(top, net_.to(1));
  }

  void trouble() {
    if (crashes_ && once_in(20)) {
      const std::size_t who = random_() % 2;
      if (who == 0) session_ = {};
      due_.clear();  // a crash also loses what the receiver has acknowledged
      net_[who].crash();
      if (coin()) net_.world.run_for(Duration(random_() % 500'000'000));
      net_[who].boot();
    }
    if (partitions_ && once_in(10)) {
      parted_ ? net_.world.heal() : net_.world.set_group(net_[0], 1);
      parted_ = !parted_;
      // Long enough for FIFO to skip messages, but both times together shorter than ACK's tries.
      if (parted_ && once_in(4) && seconds_apart_++ < 2) net_.world.run_for(6s);
    }
  }

  void push(int number) {
    const std::string text = std::to_string(life_) + " " + std::to_string(number);
    for (int tries = 0; tries < 50; ++tries) {
      Errc outcome = Errc::ok;
      {
        const Shepherd inside(net_[0].monitor());
        outcome = session_->push(net_.message(0, text));
      }
      if (outcome == Errc::ok) {
        due_.emplace(life_, number);
        return;
      }
      ASSERT_EQ(outcome, Errc::limit_reached);  // too many messages wait for acknowledgement
      net_.world.run_for(1ms);
    }
  }

  /// Waits until everything that waits has arrived or is given up. Then one more push must arrive.
  void calm_down() {
    net_.world.heal();
    net_.world.run_for(kPushes * patience() + 60s);  // FIFO may skip many missing messages, one after the other
    net_.world.set_links({});
    const std::set<Pushed> before = std::exchange(due_, {});
    push(kPushes);
    net_.world.run_for(patience() + 1s);
    const std::vector<Pushed>& last = received_.rbegin()->second;
    EXPECT_TRUE(std::ranges::count(last, Pushed(life_, kPushes)) == 1) << "the last one has not arrived once";
    if (!ack_) return;
    const auto arrived = [&](const Pushed& one) { return std::ranges::count(last, one) != 0; };
    EXPECT_TRUE(std::ranges::all_of(before, arrived)) << "ACK has brought not all of " << before.size();
  }

  void check() {
    for (const auto& [life, all] : received_) {
      std::map<int, std::vector<int>> numbers;  // by life of the sender
      for (const auto& [of, number] : all)
        if (number != kPushes) numbers[of].push_back(number);
      for (const auto& [of, one] : numbers) {
        EXPECT_TRUE(!fifo_ || std::ranges::is_sorted(one)) << testing::PrintToString(one);
        EXPECT_TRUE((!unique_ && !fifo_) || std::set(one.begin(), one.end()).size() == one.size());
      }
    }
    for (Framework* const one : layers_) {
      EXPECT_EQ(one->bag().count(), 0U);
      EXPECT_EQ(one->events().timers(), 0U);
    }
    session_ = {};
  }

  std::mt19937_64 random_;
  const bool unique_ = coin();
  const bool fifo_ = coin();
  const bool ack_ = coin();
  const bool membership_ = ack_ && coin();
  const bool crashes_ = coin();
  const bool partitions_ = coin();
  const std::size_t threads_ = once_in(4) ? 3 : 0;
  const SimOptions options_;
  std::map<std::size_t, std::vector<Pushed>> received_;  ///< By life of the receiver.
  std::vector<Pushed> nothing_;
  std::set<Pushed> due_;  ///< Pushed since the last crash of either: ACK must deliver these.
  SimHosts net_;
  Framework* layers_[2] = {};
  SessionRef session_;
  int life_ = 0;
  int seconds_apart_ = 0;
  bool parted_ = false;
};

TEST(SuiteStorm, every_composition_keeps_its_promises) {
  std::mt19937_64 seeds(testing_lrpc::test_seed());
  for (int round = 0; round < testing_lrpc::rounds(60) && !testing::Test::HasFailure(); ++round)
    const SuiteStorm storm(seeds());
}

}  // namespace
}  // namespace lrpc::netrpc::composite
