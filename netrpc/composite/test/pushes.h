// Records the outcome of a client's pushes with ASYNC, by lives of the client: each ends once, by replies or by a
// failure.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "netrpc/composite/test/several.h"

namespace lrpc::netrpc::composite {

class Pushes {
 public:
  void begun(int number, Time now) { lives_.back().begun.emplace(number, now); }
  /// Moves what the client has been told to the record of its current life.
  void take(Client& client) {
    Life& life = lives_.back();
    for (std::size_t i = 0; i < client.received.size(); ++i) {
      const std::string& reply = client.received[i];
      const std::string from = to_string(client.from[i]) + ": ";
      ASSERT_TRUE(reply.starts_with(from)) << reply;
      const int number = std::stoi(reply.substr(from.size()));
      EXPECT_TRUE(life.begun.contains(number)) << reply << ": to a push of another life";
      EXPECT_TRUE(replies_[number].insert(client.from[i].value).second) << reply << ": comes twice";
      if (life.answered.emplace(number, client.received_at[i]).second) life.order.push_back(number);
    }
    life.failed.insert(life.failed.end(), client.failed_at.begin(), client.failed_at.end());
    client.forget();
  }
  /// The client crashes: its next life begins.
  void next_life(Client& client, Time now) {
    take(client);
    lives_.back().over = now;
    lives_.emplace_back();
  }
  /// The members that have answered each push.
  [[nodiscard]] const std::map<int, std::set<std::uint32_t>>& replies() const { return replies_; }
  /// The number of outstanding pushes of the current life.
  [[nodiscard]] std::size_t pending() const { return lives_.back().begun.size() - lives_.back().ends().size(); }
  /// Answered pushes were answered in the order in which they were made.
  void expect_order() const {
    for (const Life& life : lives_)
      EXPECT_TRUE(std::ranges::is_sorted(life.order)) << testing::PrintToString(life.order);
  }
  /// No push has ended twice, nor later than `bound` after it was made.
  void expect_bound(Duration bound) const {
    for (const Life& life : lives_) {
      const std::vector<Time> ends = life.ends();
      ASSERT_LE(ends.size(), life.begun.size());
      for (const auto& [number, when] : life.answered) EXPECT_LE(when - life.begun.at(number), bound) << number;
      // A failure does not name its push: so the nth end must come in time for the nth push.
      std::size_t ended = 0;
      for (const auto& [number, begun] : life.begun) {
        const Time end = ended < ends.size() ? ends[ended++] : life.over;
        EXPECT_LE(end - begun, bound) << number << " has not ended in time";
      }
    }
  }
  void expect_ends_before(Time limit) const {
    EXPECT_EQ(pending(), 0U);
    for (const Time end : lives_.back().ends()) EXPECT_LE(end, limit);
  }

 private:
  struct Life {
    std::map<int, Time> begun{};     ///< By number, which is the order of the pushes.
    std::map<int, Time> answered{};  ///< By number.
    std::vector<int> order{};        ///< The numbers, in the order of their answers.
    std::vector<Time> failed{};
    Time over = Time::max();
    /// All ends, in order of time.
    [[nodiscard]] std::vector<Time> ends() const {
      std::vector<Time> all = failed;
      for (const auto& [number, when] : answered) all.push_back(when);
      std::ranges::sort(all);
      return all;
    }
  };
  std::vector<Life> lives_ = std::vector<Life>(1);
  std::map<int, std::set<std::uint32_t>> replies_;
};

}  // namespace lrpc::netrpc::composite
