// Group RPC in every legal composition, drawn at random, on wires that lose, duplicate and reorder, between hosts that
// crash and begin again: what each micro-protocol promises holds, and every call ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "length.h"
#include "netrpc/composite/test/several.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

struct Drawn {
  std::size_t members = 1;
  bool push = false;
  int accept = 0;  ///< One, all, most.
  bool number = false;
  bool unique = false;
  bool fifo = false;
  bool ack = false;
  bool membership = false;
  bool still_working = false;
  bool reply_order = false;
  int orphans = 0;  ///< No policy, AVOID_INTERFERENCE, TERMINATE_ORPHANS.
  bool atomic = false;
  bool crashes = false;

  explicit Drawn(std::mt19937_64& random) {
    const auto coin = [&] { return random() % 2 == 0; };
    members = 1 + random() % 5;
    push = coin();
    accept = static_cast<int>(random() % 3);
    number = coin();
    unique = number && coin();
    fifo = number && coin();
    ack = number && coin();
    membership = ack && coin();
    still_working = coin();
    reply_order = coin();
    orphans = static_cast<int>(random() % 3);
    atomic = coin();
    crashes = coin();
  }
  [[nodiscard]] std::vector<Part> parts() const {
    std::vector<Part> all{part(grpc_kind()), part(push ? async_kind() : sync_kind()),
                          part(accept == 0   ? one_accept_kind()
                               : accept == 1 ? all_accept_kind()
                                             : majority_kind()),
                          part(bounded_kind(), {{"limit", "60s"}})};
    if (number) all.push_back(part(number_kind()));
    if (unique) all.push_back(part(unique_kind()));
    // Longer than a server keeps a request: what has waited so long goes on out of order.
    if (fifo) all.push_back(part(fifo_kind(), {{"patience", ack ? "30s" : "3s"}}));
    if (ack) all.push_back(part(ack_kind(), {{"tries", "50"}}));
    if (still_working) all.push_back(part(still_working_kind()));
    if (reply_order) all.push_back(part(reply_order_kind()));
    if (orphans == 1) all.push_back(part(avoid_interference_kind()));
    if (orphans == 2) all.push_back(part(terminate_orphans_kind()));
    if (atomic) all.push_back(part(atomic_kind()));
    if (membership) all.push_back(part(membership_kind()));
    return all;
  }
  [[nodiscard]] std::string text() const {
    std::string all = std::to_string(members) + " members";
    for (const Part& one : parts()) all += " " + one.kind.name;
    return all + (crashes ? ", crashes" : "");
  }
  [[nodiscard]] std::size_t needed() const { return accept == 2 ? members / 2 + 1 : 1; }
};

class Storm {
 public:
  explicit Storm(std::uint64_t seed)
      : random_(seed), drawn_(random_), link_(draw_link()), options_{seed, link_, {}, 1us} {
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + drawn_.text());
    Several group(
        drawn_.members,
        [this] {
          std::vector<Part> parts = drawn_.parts();
          std::ranges::shuffle(parts, random_);
          return parts;
        },
        options_, random_() % 4 == 0 ? 3 : 0);
    run(group);
    check(group);
  }

 private:
  static constexpr int kCalls = 60;

  SimLink draw_link() {
    const auto rate = [&](double most) { return most * static_cast<double>(random_() % 100) / 100; };
    return {.loss = rate(0.3), .duplicate = rate(0.2), .reorder = rate(0.5)};
  }

  void run(Several& group) {
    for (int i = 0; i < kCalls; ++i) {
      if (drawn_.crashes && random_() % 10 == 0) {
        const std::size_t who = 1 + random_() % drawn_.members;
        if (group.net[who].up()) {
          remember(group, who);
          group.net[who].crash();
          ++crashed_;
        } else {
          group.net[who].boot();
        }
      }
      if (random_() % 5 == 0) {
        const std::size_t who = 1 + random_() % drawn_.members;
        if (group.net[who].up() && !(group.servers[who]->keeps = !group.servers[who]->keeps)) group.answer(who);
      }
      // Without a policy for orphans, requests of two lives may mix.
      if (drawn_.crashes && drawn_.orphans != 0 && !drawn_.push && random_() % 20 == 0) {
        group.next_life();
        ++crashed_;
        for (std::size_t one = lost_.size(); one < calls_.size(); ++one) lost_.push_back(!calls_[one].done());
      }
      if (drawn_.push) {
        EXPECT_EQ(group.push(std::to_string(i)), Errc::ok);
      } else {
        group.call(std::to_string(i), calls_.emplace_back());
      }
      group.run(Duration(random_() % 20'000'000));
    }
    lost_.resize(calls_.size());
    for (int more = 0; more < 2; ++more) {
      for (std::size_t i = 1; i <= drawn_.members; ++i) {
        if (!group.net[i].up()) continue;
        group.servers[i]->keeps = false;
        group.answer(i);
      }
      group.run(1s);
    }
    group.run(3000s);  // FIFO may do without many that are missing, one after the other
    for (std::size_t i = 1; i <= drawn_.members; ++i)
      if (group.net[i].up()) remember(group, i);
  }

  /// What one life of a server has executed.
  void remember(Several& group, std::size_t who) {
    Server& server = *group.servers[who];
    if (drawn_.atomic) {
      EXPECT_LE(server.deepest, 1);
      EXPECT_LE(server.most_kept, 1U);
    }
    group.let_go(who);
    lives_.push_back(std::move(server.executed));
    group.servers[who]->executed.clear();
  }

  void check(Several& group) {
    std::map<std::string, int> executed;
    for (const std::vector<std::string>& life : lives_) {
      std::vector<int> numbers;
      for (const std::string& one : life) {
        numbers.push_back(std::stoi(one));
        ++executed[one];
      }
      if (drawn_.fifo) {
        EXPECT_TRUE(std::ranges::is_sorted(numbers));
      }
      if (drawn_.unique || drawn_.fifo) {
        EXPECT_EQ(std::set(numbers.begin(), numbers.end()).size(), numbers.size());
      }
    }
    int succeeded = 0;
    std::vector<int> order;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const GroupOutcome& one = calls_[i];
      EXPECT_EQ(one.completions, lost_[i] ? 0 : 1) << i;
      if (one.outcome != Errc::ok) continue;
      ++succeeded;
      order.push_back(one.when);
      EXPECT_TRUE(one.reply.ends_with(": " + std::to_string(i)));
      std::size_t answers = 0;
      for (const auto& [member, said] : one.said) answers += said == member + ": " + std::to_string(i) ? 1U : 0U;
      EXPECT_GE(answers, drawn_.needed());
      EXPECT_LE(one.said.size(), drawn_.members);
      if (drawn_.accept == 1) {
        EXPECT_EQ(one.said.size(), drawn_.members);
      }
      EXPECT_GE(executed[std::to_string(i)], static_cast<int>(answers));
    }
    if (drawn_.reply_order) {
      EXPECT_TRUE(std::ranges::is_sorted(order));
    }
    // Nothing that comes twice.
    std::map<std::pair<std::string, std::uint32_t>, int> replies;
    for (std::size_t i = 0; i < group.client->received.size(); ++i)
      EXPECT_EQ(++replies[std::pair(group.client->received[i], group.client->from[i].value)], 1);
    if (drawn_.push) {
      EXPECT_LE(group.client->failed.size(), static_cast<std::size_t>(kCalls));
    }
    if (drawn_.ack && crashed_ == 0) {
      if (!drawn_.push) {
        EXPECT_EQ(succeeded, kCalls);
      }
      if (drawn_.push) {
        EXPECT_TRUE(group.client->failed.empty());
      }
    }
    for (std::size_t i = 0; i <= drawn_.members; ++i) {
      if (!group.net[i].up()) continue;
      EXPECT_EQ(group.state(i), 0U) << i;
      EXPECT_EQ(group.layers[i]->events().timers(), 0U) << i;
    }
  }

  std::mt19937_64 random_;
  const Drawn drawn_;
  const SimLink link_;
  const SimOptions options_;
  std::deque<GroupOutcome> calls_;
  std::vector<std::vector<std::string>> lives_;
  std::vector<bool> lost_;  ///< Calls of a client that has crashed before they ended.
  int crashed_ = 0;
};

TEST(GroupStorm, every_composition_keeps_its_promises) {
  std::mt19937_64 seeds(testing_lrpc::test_seed());
  for (int round = 0; round < testing_lrpc::rounds(60) && !HasFailure(); ++round) const Storm storm(seeds());
}

}  // namespace
}  // namespace lrpc::netrpc::composite
