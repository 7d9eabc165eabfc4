// Many who wait for one name, and how often etcd is asked to watch it.
#include "lookup/shared_watches.h"

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

/// An etcd, and those who wait for one name of it.
struct Scene {
  static constexpr const char* kPrefix = "/test/names/files/";
  static constexpr const char* kKey = "/test/names/files/10.0.0.2";

  /// Waits as an import does that etcd has told of nothing.
  Result<bool> wait(std::chrono::milliseconds time) {
    const auto may_watch = [this] {
      ++begun_;
      return may_watch_.load();
    };
    return watches_.wait(kPrefix, 7, time, may_watch, stop_);
  }

  static bool is_told_nothing(const Result<bool>& outcome) { return outcome && !*outcome; }

  std::atomic<bool> first_is_over_ = false;  ///< Etcd may still look at it when the test is over.
  FakeEtcd etcd_;
  Etcd connection_{etcd_.options()};
  SharedWatches watches_{connection_};
  std::atomic<bool> stop_ = false;
  std::atomic<bool> may_watch_ = true;
  std::atomic<int> begun_ = 0;
};

class Watches : public ::testing::Test, protected Scene {};

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
  EXPECT_EQ(begun_, 1) << "to join one is free";
  EXPECT_EQ(watches_.waiting(), 0U);
}

TEST_F(Watches, go_on_for_the_others_when_the_time_of_one_is_over) {
  // Where etcd has not begun to answer within the time of the first, all begins anew, with another etcd.
  EXPECT_TRUE(testing_lrpc::eventually([] {
    std::atomic<bool> asked = false;
    Scene now;
    now.etcd_.on_watch("", [&] {  // the first watch is told of nothing
      now.etcd_.on_watch(kKey, [] {});
      asked = true;
    });
    std::thread first([&] {
      while (now.begun_ == 0) EXPECT_TRUE(is_told_nothing(now.wait(1s)));
      now.first_is_over_ = true;
    });
    EXPECT_TRUE(testing_lrpc::eventually([&] { return asked || now.first_is_over_; }));
    const bool in_time = asked;
    const auto written = in_time ? now.wait(4min) : Result<bool>(false);
    first.join();
    if (!in_time) return false;
    EXPECT_TRUE(written && *written);
    EXPECT_EQ(now.etcd_.requests(), 2);
    return true;
  }));
}

TEST_F(Watches, go_on_for_the_others_when_etcd_is_slower_than_the_time_of_one) {
  etcd_.on_watch(kKey, [&] { EXPECT_TRUE(testing_lrpc::eventually([&] { return first_is_over_.load(); })); });
  std::thread first([&] {
    EXPECT_TRUE(is_told_nothing(wait(1s)));
    first_is_over_ = true;
  });
  EXPECT_TRUE(testing_lrpc::eventually([&] { return watches_.waiting() == 1 || first_is_over_; }));
  const auto written = wait(4min);
  EXPECT_TRUE(written && *written) << written.error().message();
  first.join();
}

TEST_F(Watches, are_not_begun_by_who_may_not) {
  may_watch_ = false;
  EXPECT_TRUE(is_told_nothing(wait(4min)));
  EXPECT_EQ(etcd_.requests(), 0);
}

}  // namespace
}  // namespace lrpc::directory::test
