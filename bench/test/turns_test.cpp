#include "core/turns.h"

#include <gtest/gtest.h>

#include "core/child.h"

namespace lrpc::bench {
namespace {

struct Desk {
  TurnDesk turns;
  std::atomic<int> count;
};

class Turns : public ::testing::Test {
 protected:
  /// Starts a process that counts its turns, and fails the one numbered `bad`.
  void start(const Status& ready, int bad) {
    auto desk = Shared<Desk>::create();
    ASSERT_TRUE(desk);
    desk_.emplace(std::move(*desk));
    auto process = Child::spawn("turns", own_seat(), [&]() -> int {
      (*desk_)->turns.serve(ready, [&]() -> Status {
        if (++(*desk_)->count == bad) return Error{Errc::call_failed, "this turn is bad"};
        return {};
      });
    });
    ASSERT_TRUE(process);
    process_ = std::move(*process);
  }
  Status await() { return (*desk_)->turns.await(); }
  std::optional<Shared<Desk>> desk_;
  Child process_;
};

TEST_F(Turns, each_is_taken_once_and_awaited) {
  start({}, -1);
  ASSERT_TRUE(await());
  EXPECT_EQ((*desk_)->count, 0);
  for (int turn = 1; turn <= 5; ++turn) {
    (*desk_)->turns.begin();
    ASSERT_TRUE(await());
    EXPECT_EQ((*desk_)->count, turn);
  }
}

TEST_F(Turns, who_is_never_ready_says_why) {
  start(Error{Errc::peer_gone, "nobody is there"}, -1);
  const Status ready = await();
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().message(), "nobody is there");
}

TEST_F(Turns, the_first_error_stays) {
  start({}, 2);
  ASSERT_TRUE(await());
  (*desk_)->turns.begin();
  EXPECT_TRUE(await());
  for (int turn = 0; turn < 2; ++turn) {
    (*desk_)->turns.begin();
    const Status bad = await();
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().message(), "this turn is bad");
  }
}

}  // namespace
}  // namespace lrpc::bench
