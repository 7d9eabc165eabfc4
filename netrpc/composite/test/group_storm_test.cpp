// Group RPC in every legal composition, drawn at random, on wires that lose, duplicate and reorder, in networks that
// partition, between hosts that pause, crash and reboot: each micro-protocol keeps its promise, and each call ends if
// some part of the composition promises that.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "length.h"
#include "lrpc/netrpc/session_cache.h"
#include "netrpc/composite/test/drawn_calls.h"
#include "netrpc/composite/test/pushes.h"
#include "netrpc/composite/test/several.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

/// The fate of each request of a server, as on its disk: it survives crashes.
struct Disk {
  std::set<std::string> done;
  std::string open;  ///< Neither committed nor rolled back yet.
};

class Storm {
 public:
  explicit Storm(std::uint64_t seed)
      : random_(seed),
        drawn_(random_),
        link_(draw_link()),
        options_{seed, link_, {}, 1us},
        disks_(drawn_.members + 1),
        paused_until_(drawn_.members + 1) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + drawn_.text());
    Several group(
        drawn_.members,
        [this] {
          std::vector<Part> parts = drawn_.parts();
          std::ranges::shuffle(parts, random_);
          return parts;
        },
        options_, drawn_.threads);
    for (std::size_t i = 1; i <= drawn_.members; ++i) watch(group, i);
    run(group);
    check(group);
  }

 private:
  static constexpr int kCalls = 60;
  static constexpr Duration kPause = 50ms;

  SimLink draw_link() {
    const auto rate = [&](double most) { return most * static_cast<double>(random_() % 100) / 100; };
    return {.loss = rate(0.3),
            .duplicate = rate(0.2),
            .reorder = rate(0.5),
            .reorder_delay = random_() % 2 == 0 ? 1ms : 40ms};
  }
  [[nodiscard]] bool once_in(std::uint64_t times) { return random_() % times == 0; }
  [[nodiscard]] std::size_t any_server() { return 1 + random_() % drawn_.members; }

  // ---- checks during the storm ----

  /// Observes a new life of a server.
  void watch(Several& group, std::size_t who) {
    Server& server = *group.servers[who];
    disks_[who].open.clear();
    server.begins = [this, &server, who](const std::string& request) { begins(server, disks_[who], request); };
    if (!drawn_.atomic) return;
    server.settles = [this, who](bool done) {
      Disk& disk = disks_[who];
      EXPECT_NE(disk.open, "") << "nothing is being executed";
      if (done) disk.done.insert(disk.open);
      disk.open.clear();
    };
  }
  void begins(Server& server, Disk& disk, const std::string& request) {
    if (drawn_.atomic) {
      EXPECT_EQ(disk.open, "") << "is neither done nor undone, and " << request << " begins";
      disk.open = request;
    }
    for (const Server::Kept& kept : server.kept) {
      if (life_of(kept.request) == life_of(request)) continue;
      EXPECT_NE(drawn_.orphans, Orphans::avoid_interference)
          << kept.request << " is an orphan, " << request << " begins";
      control::Wanted wanted;
      if (drawn_.orphans == Orphans::terminate) {
        EXPECT_EQ(control::ask(*kept.session, wanted), Errc::ok);
        EXPECT_FALSE(wanted.wanted) << kept.request << " is an orphan";
      }
    }
  }
  /// The client's life in which the request was made.
  [[nodiscard]] int life_of(const std::string& request) const { return lives_of_calls_.at(request); }

  // ---- the storm ----

  void run(Several& group) {
    for (int i = 0; i < kCalls; ++i) {
      trouble(group);
      const std::string text = std::to_string(i);
      lives_of_calls_[text] = client_life_;
      if (drawn_.push) {
        pushes_.begun(i, group.net.world.now());
        EXPECT_EQ(group.push(text), Errc::ok);
      } else {
        const bool short_of_time = drawn_.timeout != Duration() && once_in(4) == drawn_.ends();
        group.call(text, calls_.emplace_back(), short_of_time ? drawn_.timeout : kNoLimit);
        Duration bound = drawn_.bounded() ? drawn_.limit : Duration::max();
        if (short_of_time) bound = std::min(bound, drawn_.timeout);
        bounds_.push_back(bound);
      }
      group.run(Duration(random_() % 20'000'000));
    }
    group.net.world.heal();
    lost_.resize(calls_.size());
    for (int more = 0; more < 2; ++more) {
      for (std::size_t i = 1; i <= drawn_.members; ++i) {
        if (!group.net[i].up()) continue;
        group.servers[i]->keeps = false;
        group.servers[i]->commits = true;
        group.answer(i);
      }
      group.run(1s);
    }
    quiet_ = group.net.world.now();
    group.run(3000s);
    if (drawn_.push) pushes_.take(*group.client);
    if (!drawn_.push) afterwards(group);
    for (std::size_t i = 1; i <= drawn_.members; ++i)
      if (group.net[i].up()) remember(group, i);
  }

  void trouble(Several& group) {
    if (drawn_.crashes && once_in(10)) crash_or_boot(group, any_server());
    if (once_in(5)) {
      const std::size_t who = any_server();
      if (group.net[who].up() && !(group.servers[who]->keeps = !group.servers[who]->keeps)) group.answer(who);
    }
    if (drawn_.atomic && once_in(20)) {
      const std::size_t who = any_server();
      if (group.net[who].up()) group.servers[who]->commits = false, refused_ = true;
    }
    if (drawn_.crashes && once_in(20)) {
      if (drawn_.push) pushes_.next_life(*group.client, group.net.world.now());
      group.next_life();
      ++client_life_;
      ++crashed_;
      for (std::size_t one = lost_.size(); one < calls_.size(); ++one) lost_.push_back(!calls_[one].done());
    }
    if (drawn_.pauses && once_in(5)) pause(group, random_() % (drawn_.members + 1));
    if (drawn_.partitions != Partitions::none && once_in(10)) part_or_heal(group);
  }

  void crash_or_boot(Several& group, std::size_t who) {
    if (group.net[who].up()) {
      remember(group, who);
      group.net[who].crash();
      ++crashed_;
    } else {
      group.net[who].boot();
      watch(group, who);
    }
  }

  /// A pause delays whatever is due by kPause at most: a paused host is not paused again.
  void pause(Several& group, std::size_t who) {
    const Time now = group.net.world.now();
    if (now <= paused_until_[who]) return;
    group.net[who].pause(kPause);
    paused_until_[who] = now + kPause;
  }

  void part_or_heal(Several& group) {
    if (parted_) {
      group.net.world.heal();
    } else {
      for (std::size_t i = 0; i <= drawn_.members; ++i)
        group.net.world.set_group(group.net[i], static_cast<std::uint32_t>(random_() % 2));
      // Long enough for one host to declare another dead, but not for FIFO to skip what is missing.
      if (drawn_.partitions == Partitions::of_seconds && seconds_apart_++ < 3) group.run(6s);
    }
    parted_ = !parted_;
  }

  /// Calls on a network without faults, to the members that are up.
  void afterwards(Several& group) {
    group.net.world.set_links({});
    std::vector<std::size_t> up;
    for (std::size_t i = 1; i <= drawn_.members; ++i)
      if (group.net[i].up()) up.push_back(i);
    if (up.size() < drawn_.needed()) return;
    for (const char* const text : {"finds out", "knows", "lasts"}) lives_of_calls_[text] = client_life_;
    const bool waits = drawn_.reply_order && !drawn_.ends();  // perhaps for a call that never ends
    if (drawn_.membership && drawn_.accept == 1 && !drawn_.short_limit() && !waits) {
      GroupOutcome& finds_out = after_.emplace_back();
      group.call("finds out", finds_out);
      group.run(60s);
      EXPECT_EQ(finds_out.completions, 1);
      GroupOutcome& knows = after_.emplace_back();
      group.call("knows", knows);
      group.run(10ms);
      EXPECT_EQ(knows.completions, 1) << "it waits for members that have failed";
      EXPECT_EQ(knows.outcome, Errc::ok);
    }
    if (drawn_.still_working && !drawn_.bounded()) last(group, up);
    group.run(3000s);
  }
  /// A call lasts while its servers work on it, and ends when they have crashed or answered.
  void last(Several& group, const std::vector<std::size_t>& up) {
    for (const std::size_t who : up) group.servers[who]->keeps = true;
    GroupOutcome& lasts = after_.emplace_back();
    group.call("lasts", lasts);
    group.run(20s);
    EXPECT_EQ(lasts.completions, 0) << "its servers work on it";
    const bool crash = once_in(2);
    for (const std::size_t who : up)
      if (crash)
        crash_or_boot(group, who);
      else
        group.servers[who]->keeps = false, group.answer(who);
    // Without ACK, FIFO may hold its reply back for a lost one, longer than STILL_WORKING waits.
    const bool may_wait = drawn_.fifo && !drawn_.ack;
    group.run(may_wait ? 10s + drawn_.patience() : 10s);
    EXPECT_EQ(lasts.completions, 1);
    if (!may_wait) {
      EXPECT_EQ(lasts.outcome, crash ? Errc::call_failed : Errc::ok);
    }
  }

  /// Records what one life of a server has executed.
  void remember(Several& group, std::size_t who) {
    Server& server = *group.servers[who];
    if (drawn_.atomic) {
      EXPECT_LE(server.deepest, 1);
      EXPECT_LE(server.most_kept, 1U);
    }
    group.let_go(who);
    lives_.push_back(std::move(server.executed));
    server.executed.clear();
  }

  // ---- checks after the storm ----

  void check(Several& group) {
    for (const std::vector<std::string>& life : lives_) check_life(life);
    int succeeded = 0;
    int must_succeed = 0;
    std::size_t lasting = pushes_.pending();
    std::vector<int> order;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const GroupOutcome& one = calls_[i];
      const bool lasts = one.completions == 0 && !lost_[i] && !drawn_.ends() && bounds_[i] == Duration::max();
      lasting += lasts ? 1U : 0U;
      EXPECT_EQ(one.completions, lost_[i] || lasts ? 0 : 1) << i;
      if (one.completions != 0) check_end(i);
      if (bounds_[i] >= 60s) {
        ++must_succeed;
        succeeded += one.outcome == Errc::ok ? 1 : 0;
      }
      if (one.outcome != Errc::ok) continue;
      order.push_back(one.when);
      check_replies(i);
    }
    if (drawn_.reply_order) {
      EXPECT_TRUE(std::ranges::is_sorted(order));
    }
    check_pushes();
    if (drawn_.lasting() && crashed_ == 0 && !refused_) {
      EXPECT_EQ(succeeded, must_succeed);
      EXPECT_EQ(pushes_.replies().size(), static_cast<std::size_t>(drawn_.push ? kCalls : 0));
    }
    for (std::size_t i = 0; i <= drawn_.members; ++i) {
      if (!group.net[i].up()) continue;
      EXPECT_EQ(group.state(i), i == 0 ? lasting : 0U) << i;
      EXPECT_EQ(group.layers[i]->events().timers(), 0U) << i;
    }
  }

  void check_life(const std::vector<std::string>& life) {
    std::map<int, std::vector<int>> numbers;  // by life of the client
    std::vector<int> lives_of_client;
    for (const std::string& one : life) {
      lives_of_client.push_back(life_of(one));
      if (!std::isdigit(static_cast<unsigned char>(one.front()))) continue;  // made by afterwards()
      numbers[life_of(one)].push_back(std::stoi(one));
      ++executed_[one];
    }
    for (const auto& [client, of_it] : numbers) {
      if (drawn_.fifo) {
        EXPECT_TRUE(std::ranges::is_sorted(of_it));
      }
      if (drawn_.unique || drawn_.fifo) {
        EXPECT_EQ(std::set(of_it.begin(), of_it.end()).size(), of_it.size());
      }
    }
    if (drawn_.orphans != Orphans::no_policy) {
      EXPECT_TRUE(std::ranges::is_sorted(lives_of_client)) << "requests of a life that is over do not begin";
    }
  }

  /// When all is quiet, STILL_WORKING soon notices dead hosts. FIFO may have to skip many missing messages, one after
  /// the other.
  [[nodiscard]] Time settled() const { return quiet_ + 120s + (drawn_.fifo ? kCalls * drawn_.patience() : 0s); }

  /// Each call ends by its own bound; a call without bound ends soon after all is quiet.
  void check_end(std::size_t i) const {
    const GroupOutcome& one = calls_[i];
    const Duration took = one.ended - one.begun;
    if (bounds_[i] != Duration::max()) {
      EXPECT_LE(took, bounds_[i] + kPause) << i;  // the client may be paused when the bound expires
    } else if (drawn_.ends()) {
      EXPECT_LE(one.ended, settled()) << i;
    }
    if (one.outcome == Errc::call_aborted) {
      EXPECT_GE(took, bounds_[i]) << i;
    }
  }

  void check_replies(std::size_t i) {
    const GroupOutcome& one = calls_[i];
    const std::string text = std::to_string(i);
    EXPECT_TRUE(one.reply.ends_with(": " + text));
    std::size_t answers = 0;
    for (const auto& [member, said] : one.said) {
      if (said != member + ": " + text) continue;
      ++answers;
      expect_done(*parse_host(member), text);
    }
    EXPECT_GE(answers, drawn_.needed());
    EXPECT_LE(one.said.size(), drawn_.members);
    if (drawn_.accept == 1) {
      EXPECT_EQ(one.said.size(), drawn_.members);
    }
    EXPECT_GE(executed_[text], static_cast<int>(answers));
  }
  /// With ATOMIC, an answered request is committed.
  void expect_done(HostAddress member, const std::string& request) const {
    if (!drawn_.atomic) return;
    const Disk& disk = disks_[member.value - 0x0a000001];
    EXPECT_TRUE(disk.done.contains(request)) << request << " was answered by " << to_string(member);
  }

  void check_pushes() const {
    for (const auto& [number, members] : pushes_.replies())
      for (const std::uint32_t one : members) expect_done(HostAddress{one}, std::to_string(number));
    pushes_.expect_bound(drawn_.bounded() ? drawn_.limit + kPause : Duration::max());
    if (drawn_.ends()) pushes_.expect_ends_before(settled());
    if (drawn_.reply_order) pushes_.expect_order();
  }

  std::mt19937_64 random_;
  const Drawn drawn_;
  const SimLink link_;
  const SimOptions options_;
  std::deque<GroupOutcome> calls_;
  std::deque<GroupOutcome> after_;  ///< The calls of afterwards().
  Pushes pushes_;
  std::vector<Duration> bounds_;               ///< By call.
  std::vector<bool> lost_;                     ///< By call: whether the client crashed before it ended.
  std::map<std::string, int> lives_of_calls_;  ///< By request: the client's life.
  std::vector<std::vector<std::string>> lives_;
  std::vector<Disk> disks_;         ///< By server.
  std::vector<Time> paused_until_;  ///< By host.
  std::map<std::string, int> executed_;
  Time quiet_{};
  int crashed_ = 0;
  int client_life_ = 0;
  int seconds_apart_ = 0;
  bool parted_ = false;
  bool refused_ = false;  ///< Some request could not be committed.
};

TEST(GroupStorm, every_composition_keeps_its_promises) {
  std::mt19937_64 seeds(testing_lrpc::test_seed());
  for (int round = 0; round < testing_lrpc::rounds(60) && !HasFailure(); ++round) const Storm storm(seeds());
}

}  // namespace
}  // namespace lrpc::netrpc::composite
