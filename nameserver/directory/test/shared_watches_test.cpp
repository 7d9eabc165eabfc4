// Many who wait for one name, and how often etcd is asked to watch it.
#include "shared_watches.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "eventually.h"
#include "fake_etcd.h"

namespace lrpc::directory::test {
namespace {

using namespace std::chrono_literals;

class Watches : public ::testing::Test {
 protected:
  static constexpr const char* kPrefix = "/test/names/files/";
  static constexpr const char* kKey = "/test/names/files/10.0.0.2";

  /// Waits as an import does that etcd has told of nothing.
  Result<bool> wait(std::chrono::milliseconds time) { return watches_.wait(kPrefix, 7, time, stop_); }

  FakeEtcd etcd_;
  Etcd connection_{etcd_.options()};
  SharedWatches watches_{connection_};
  std::atomic<bool> stop_ = false;
};

TEST_F(Watches, of_one_name_are_one_for_all_who_wait) {
  constexpr std::size_t kWaiting = 8;
  etcd_.on_watch(kKey, [&] { EXPECT_TRUE(testing_lrpc::eventually([&] { return watches_.waiting() == kWaiting; })); });
  std::atomic<int> told = 0;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kWaiting; ++i)
    threads.emplace_back([&] {
      const auto written = wait(4min);
      if (written && *written) ++told;
    });
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(told, static_cast<int>(kWaiting));
  EXPECT_EQ(etcd_.requests(), 1);
  EXPECT_EQ(watches_.waiting(), 0U);
}

TEST_F(Watches, go_on_for_the_others_when_the_time_of_one_is_over) {
  etcd_.on_watch("", [&] { etcd_.on_watch(kKey, [] {}); });  // the first watch is told of nothing
  std::thread first([&] {
    while (etcd_.requests() == 0) EXPECT_FALSE(wait(1s).value());
  });
  EXPECT_TRUE(testing_lrpc::eventually([&] { return etcd_.requests() == 1; }));
  EXPECT_TRUE(wait(4min).value());
  first.join();
  EXPECT_EQ(etcd_.requests(), 2);
}

}  // namespace
}  // namespace lrpc::directory::test
