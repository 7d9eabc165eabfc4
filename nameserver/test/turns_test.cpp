// Users take turns in the event loop, with each back end.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "loop/event_loop.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "test_peer.h"

namespace lrpc::nameserver {
namespace {

class Turns : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    auto loop = EventLoop::create(GetParam());
    if (!loop) GTEST_SKIP() << loop.error().message();
    loop_ = std::move(*loop);
    loop_->after(test::kPatience, [this] {
      ADD_FAILURE() << "the loop was not stopped in time";
      loop_->stop();
    });
  }

  /// A descriptor that is ready until its byte is taken.
  struct Ready {
    UniqueFd here;
    UniqueFd there;
    void make_ready() const { EXPECT_EQ(::send(there.get(), "x", 1, 0), 1); }
    void take() const {
      char byte = 0;
      EXPECT_EQ(::recv(here.get(), &byte, 1, MSG_DONTWAIT), 1);
    }
  };
  Ready& add(bool ready = true) {
    auto pair = shim::make_socket_pair();
    EXPECT_TRUE(pair);
    Ready& made = all_.emplace_back(Ready{std::move(pair->first), std::move(pair->second)});
    if (ready) made.make_ready();
    return made;
  }
  EventLoop::WatchId watch(const Ready& one, uid_t user, EventLoop::Handler handler) {
    auto watched = loop_->watch(one.here.get(), {.readable = true}, std::move(handler), user);
    EXPECT_TRUE(watched) << watched.error().message();
    return watched ? *watched : 0;
  }
  /// Adds a ready descriptor of `user`. In its turn it appends `letter` to `heard_`.
  void hear(uid_t user, char letter) {
    const Ready& one = add();
    watch(one, user, [this, &one, letter](Readiness) {
      one.take();
      heard_ += letter;
    });
  }
  void step() { EXPECT_TRUE(loop_->step()); }

  std::list<Ready> all_;
  std::unique_ptr<EventLoop> loop_;
  std::string heard_;
};
LRPC_ON_BOTH_BACKENDS(Turns);

TEST_P(Turns, are_taken_by_users_however_many_of_ones_descriptors_are_ready) {
  for (int i = 0; i < 40; ++i) hear(1, 'a');
  hear(2, 'b');
  for (int i = 0; i < 3; ++i) hear(3, 'c');
  step();
  EXPECT_EQ(heard_, "abcacac" + std::string(37, 'a'));
}

TEST_P(Turns, of_one_user_are_in_the_order_of_arrival) {
  for (char letter = 'a'; letter <= 'z'; ++letter) hear(1, letter);
  step();
  EXPECT_EQ(heard_, "abcdefghijklmnopqrstuvwxyz");
}

TEST_P(Turns, come_for_others_beside_one_who_always_has_more) {
  const Ready& late = add(false);
  std::size_t before = 0;
  watch(late, 2, [&](Readiness) {
    late.take();
    before = heard_.size();
    loop_->stop();
  });
  for (int i = 0; i < 3; ++i) {
    watch(add(), 1, [&](Readiness) {
      if (heard_.empty()) late.make_ready();
      heard_ += 'a';
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // as long as the loop waits between two looks
    });
  }
  EXPECT_TRUE(loop_->run());
  EXPECT_LE(before, 2U) << "the one whose turn it was, and one more";
}

TEST_P(Turns, come_between_timers_however_many_are_due) {
  const Ready& ready = add(false);
  int fired = 0;
  int before = -1;
  watch(ready, 2, [&](Readiness) {
    ready.take();
    before = fired;
    loop_->stop();
  });
  const auto busy = [&] {
    const auto until = EventLoop::Clock::now() + std::chrono::milliseconds(1);
    while (EventLoop::Clock::now() < until) continue;
    if (++fired == 1) ready.make_ready();
  };
  for (int i = 0; i < 100; ++i) loop_->after({}, busy);
  EXPECT_TRUE(loop_->run());
  EXPECT_EQ(before, 1);
}

TEST_P(Turns, do_not_come_for_who_is_forgotten_in_line) {
  std::vector<EventLoop::WatchId> others;
  const Ready& first = add();
  watch(first, 1, [&](Readiness) {
    first.take();
    for (const EventLoop::WatchId other : others) loop_->forget(other);
    heard_ += 'a';
  });
  others.push_back(watch(add(), 1, [](Readiness) { ADD_FAILURE(); }));
  for (int i = 0; i < 2; ++i) others.push_back(watch(add(), 2, [](Readiness) { ADD_FAILURE(); }));
  hear(3, 'c');
  step();
  EXPECT_EQ(heard_, "ac");
  hear(2, 'b');
  hear(1, 'a');
  step();
  EXPECT_EQ(heard_, "acba");
}

}  // namespace
}  // namespace lrpc::nameserver
