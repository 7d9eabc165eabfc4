// A process whose allocations fail as a test says.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocation_faults.h"
#include "ended.h"
#include "eventually.h"
#include "holdings.h"
#include "length.h"
#include "world.h"

namespace testing_lrpc {

class FaultyProcess {
 public:
  /// Starts `arguments` as Process does, with its memory in our hands.
  explicit FaultyProcess(std::vector<std::string> arguments, const std::vector<int>& keep_fds = {})
      : faults_(map((directory_.path() / "faults").string())) {
    arguments.insert(arguments.begin(), {"/usr/bin/env", "LD_PRELOAD=" LRPC_FAILING_MALLOC,
                                         "LRPC_ALLOCATION_FAULTS=" + (directory_.path() / "faults").string()});
    process_ = Process(std::move(arguments), keep_fds);
  }
  FaultyProcess(const FaultyProcess&) = delete;
  FaultyProcess& operator=(const FaultyProcess&) = delete;
  ~FaultyProcess() { ::munmap(faults_, sizeof(AllocationFaults)); }

  /// From now on the `first` allocation fails (1: the next), and those that follow it up to `last`.
  void fail(std::uint64_t first, std::uint64_t last) {
    faults_->first.store(0);
    faults_->count.store(0);
    faults_->last.store(last);
    faults_->first.store(first);
  }
  /// From now on only threads of this name are without memory. While nothing fails.
  void fail_only_in(const char* thread) { std::strncpy(faults_->thread, thread, sizeof faults_->thread - 1); }
  /// There is memory again.
  void recover() { faults_->first.store(0); }
  [[nodiscard]] std::uint64_t failed() const { return faults_->failed.load(); }
  /// Allocations since fail() or count_anew().
  [[nodiscard]] std::uint64_t count() const { return faults_->count.load(); }
  void count_anew() { faults_->count.store(0); }
  [[nodiscard]] std::int64_t live() const { return faults_->live.load(); }
  [[nodiscard]] std::uint64_t lives() const { return faults_->lives.load(); }
  [[nodiscard]] std::uint64_t good() const { return faults_->good.load(); }
  [[nodiscard]] pid_t pid() const noexcept { return process_.pid(); }
  [[nodiscard]] bool alive() const { return !has_ended(pid()); }

 private:
  static AllocationFaults* map(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (::ftruncate(fd, sizeof(AllocationFaults)) != 0) throw std::runtime_error(path);
    void* const page = ::mmap(nullptr, sizeof(AllocationFaults), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (page == MAP_FAILED) throw std::runtime_error("mmap");
    return static_cast<AllocationFaults*>(page);
  }

  TemporaryDirectory directory_;
  AllocationFaults* faults_;
  Process process_;
};

/// `life` is lived again and again; each time another allocation of the process fails: alone, then with all that follow
/// it for some time, for what cannot be served without memory waits for it. After each one `well` must hold. In the
/// short form about `sites` of them.
template <class Life, class Well>
void fail_each_allocation(FaultyProcess& process, Life&& life, Well&& well, std::uint64_t sites) {
  life();  // what is made once is there
  process.count_anew();
  life();
  ASSERT_TRUE(well());
  const std::uint64_t all = process.count();
  ASSERT_GT(all, 0U);
  const std::uint64_t step = long_tests() ? 1 : std::max<std::uint64_t>(all / sites, 1);
  const std::uint64_t begin = 1 + (long_tests() ? 0 : test_seed() % step);
  for (const bool alone : {true, false}) {
    for (std::uint64_t first = begin; first <= all; first += step) {
      SCOPED_TRACE("allocation " + std::to_string(first) + " of " + std::to_string(all) +
                   (alone ? "" : " and all that follow"));
      process.fail(first, alone ? first : UINT64_MAX);
      std::thread memory([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        process.recover();
      });
      life();
      memory.join();
      ASSERT_TRUE(process.alive());
      ASSERT_TRUE(well());
    }
  }
}

/// What a process has when it rests: the least that is seen in some lives, and for a moment after each.
struct AtRest {
  Holdings holdings;
  std::int64_t live = 0;

  template <class Life>
  static AtRest of(const FaultyProcess& process, Life&& life, int lives = 5) {
    AtRest least{Holdings{SIZE_MAX, SIZE_MAX}, INT64_MAX};
    for (int i = 0; i < lives; ++i) {
      life();
      for (int look = 0; look < 50; ++look) {
        const Holdings now = Holdings::of(std::to_string(process.pid()));
        least.holdings.regions = std::min(least.holdings.regions, now.regions);
        least.holdings.descriptors = std::min(least.holdings.descriptors, now.descriptors);
        least.live = std::min(least.live, process.live());
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    return least;
  }
};

/// The same allocation fails in life after life: what is lost there each time, however little, adds up to more than
/// what a life may keep.
template <class Life>
void fail_each_again_and_again(FaultyProcess& process, Life&& life) {
  constexpr int kTimes = 15;
  constexpr std::int64_t kFewer = 10;  // not each time it is the same one: the process has several threads
  constexpr int kWarm = 200;  // by then what it keeps for good grows more slowly than by kFewer in kTimes lives
  const auto at_rest = [&] { return AtRest::of(process, life, 1).live; };
  for (int i = 0; i < kWarm; ++i) life();
  process.count_anew();
  life();
  const std::uint64_t all = process.count();
  std::int64_t most = 0;  // it may rest in several ways, with one thing more or less that is kept
  for (int i = 0; i < 5; ++i) most = std::max(most, at_rest());
  for (std::uint64_t number = 1; number <= all; ++number) {
    for (int i = 0; i < kTimes; ++i) {
      process.fail(number, number);
      life();
    }
    process.recover();
    ASSERT_TRUE(process.alive()) << number;
    std::int64_t after = 0;
    ASSERT_TRUE(eventually([&] {
      after = at_rest();
      return after < most + kFewer;
    })) << "allocation "
        << number << " of " << all << ": " << most << " and then " << after;
    most = std::max(most, after);
  }
}

/// fail_each_allocation(), and then the process comes to have no more than before: the same descriptors and regions,
/// and at most `kept` allocations more, which are kept for the next time or until their time has come.
template <class Life, class Well>
void fail_each_and_leak_nothing(FaultyProcess& process, Life&& life, Well&& well, std::int64_t kept,
                                std::uint64_t sites = 60) {
  for (int i = 0; i < 3; ++i) life();
  const AtRest before = AtRest::of(process, life);
  ASSERT_NO_FATAL_FAILURE(fail_each_allocation(process, life, well, sites));
  AtRest after;
  EXPECT_TRUE(eventually([&] {  // what waited for memory to be closed is closed beside something else
    after = AtRest::of(process, life);
    return after.holdings.within(before.holdings) && after.live <= before.live + kept;
  })) << "descriptors "
      << before.holdings.descriptors << " and then " << after.holdings.descriptors << ", regions "
      << before.holdings.regions << " and then " << after.holdings.regions << ", allocations " << before.live
      << " and then " << after.live;
}

}  // namespace testing_lrpc
