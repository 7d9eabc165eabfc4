#include "layers/thread_pair.h"

#include <gtest/gtest.h>

namespace lrpc::bench {
namespace {

TEST(ThreadPair, each_round_trip_returns_once_the_other_thread_has_done_its_work) {
  int done = 0;  // not atomic, because the round trip orders the accesses
  std::thread::id worker;
  ThreadPair pair([&] {
    ++done;
    worker = std::this_thread::get_id();
  });
  for (int i = 1; i <= 1000; ++i) {
    pair.round_trip();
    ASSERT_EQ(done, i);
  }
  EXPECT_NE(worker, std::this_thread::get_id());
}

TEST(ThreadPair, one_that_was_never_asked_ends) {
  int done = 0;
  {
    const ThreadPair pair([&] { ++done; });
  }
  EXPECT_EQ(done, 0);
}

}  // namespace
}  // namespace lrpc::bench
