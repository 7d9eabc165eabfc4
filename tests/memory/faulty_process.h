// A process whose allocations fail as a test demands.
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
  /// Starts `arguments` as Process does, with the failing malloc preloaded.
  explicit FaultyProcess(std::vector<std::string> arguments, const std::vector<int>& keep_fds = {})
      : faults_(map((directory_.path() / "faults").string())) {
    arguments.insert(arguments.begin(), {"/usr/bin/env", "LD_PRELOAD=" LRPC_FAILING_MALLOC,
                                         "LRPC_ALLOCATION_FAULTS=" + (directory_.path() / "faults").string()});
    process_ = Process(std::move(arguments), keep_fds);
  }
  FaultyProcess(const FaultyProcess&) = delete;
  FaultyProcess& operator=(const FaultyProcess&) = delete;
  ~FaultyProcess() { ::munmap(faults_, sizeof(AllocationFaults)); }

  /// From now on allocations `first` (1: the next) to `last` fail.
  void fail(std::uint64_t first, std::uint64_t last) {
    faults_->first.store(0);
    faults_->count.store(0);
    faults_->last.store(last);
    faults_->first.store(first);
  }
  /// From now on allocations fail only in threads of this name. Call it while none fails.
  void fail_only_in(const char* thread) { std::strncpy(faults_->thread, thread, sizeof faults_->thread - 1); }
  /// Allocations succeed again.
  void recover() { faults_->first.store(0); }
  [[nodiscard]] std::uint64_t failed() const { return faults_->failed.load(); }
  /// Allocations since fail() or count_anew().
  [[nodiscard]] std::uint64_t count() const { return faults_->count.load(); }
  void count_anew() { faults_->count.store(0); }
  [[nodiscard]] std::int64_t live() const { return faults_->live.load(); }
  /// Has a restless client live once, and waits until it has.
  void live_once() {
    const std::uint64_t wanted = faults_->wanted.fetch_add(1) + 1;
    EXPECT_TRUE(eventually([&] { return faults_->lives.load() >= wanted || !alive(); })) << "it hangs";
  }
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

/// Runs `life` again and again. Each time another allocation of the process fails: first alone, then with all that
/// follow it for 50 ms. (Not for longer, because some work waits until there is memory.) After each run `well`
/// must hold. The short form tries about `sites` allocations.
template <class Life, class Well>
void fail_each_allocation(FaultyProcess& process, Life&& life, Well&& well, std::uint64_t sites) {
  life();  // makes what is made only once
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
      std::thread memory;
      if (!alone) {
        memory = std::thread([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          process.recover();
        });
      }
      life();
      if (memory.joinable()) memory.join();
      process.recover();
      ASSERT_TRUE(process.alive());
      ASSERT_TRUE(well());
    }
  }
}

/// What an idle process holds: the minimum over some lives, each observed for some milliseconds afterwards.
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

/// Lets the same allocation fail in many lives. Even a small leak in each of them adds up to more than a life may keep.
template <class Life>
void fail_each_again_and_again(FaultyProcess& process, Life&& life) {
  constexpr int kTimes = 15;
  constexpr std::int64_t kFewer = 10;  // below kTimes: with several threads it is not always the same one
  constexpr int kWarm = 200;           // afterwards, permanent memory grows by less than kFewer in kTimes lives
  // What is allocated after one more life: at last at most `known`, or the minimum of 50 ms.
  const auto at_rest = [&](std::int64_t known) {
    life();
    std::int64_t least = process.live();
    for (int look = 0; look < 50 && least > known; ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      least = std::min(least, process.live());
    }
    return least;
  };
  for (int i = 0; i < kWarm; ++i) life();
  process.count_anew();
  life();
  const std::uint64_t all = process.count();
  std::int64_t most = 0;  // the maximum, since the idle process sometimes keeps one object more
  for (int i = 0; i < 5; ++i) most = std::max(most, at_rest(0));
  for (std::uint64_t number = 1; number <= all; ++number) {
    for (int i = 0; i < kTimes; ++i) {
      process.fail(number, number);
      life();
    }
    process.recover();
    ASSERT_TRUE(process.alive()) << number;
    std::int64_t after = 0;
    ASSERT_TRUE(eventually([&] {
      after = at_rest(most);
      return after < most + kFewer;
    })) << "allocation "
        << number << " of " << all << ": " << most << " and then " << after;
    most = std::max(most, after);
  }
}

/// As fail_each_allocation(). Afterwards the process must hold no more than before: the same descriptors and regions,
/// and at most `kept` more allocations, which it keeps for reuse or for some time.
template <class Life, class Well>
void fail_each_and_leak_nothing(FaultyProcess& process, Life&& life, Well&& well, std::int64_t kept,
                                std::uint64_t sites = 60) {
  for (int i = 0; i < 3; ++i) life();
  const AtRest before = AtRest::of(process, life);
  ASSERT_NO_FATAL_FAILURE(fail_each_allocation(process, life, well, sites));
  AtRest after;
  EXPECT_TRUE(eventually([&] {  // descriptors whose close waited for memory are closed by later work
    after = AtRest::of(process, life);
    return after.holdings.within(before.holdings) && after.live <= before.live + kept;
  })) << "descriptors "
      << before.holdings.descriptors << " and then " << after.holdings.descriptors << ", regions "
      << before.holdings.regions << " and then " << after.holdings.regions << ", allocations " << before.live
      << " and then " << after.live;
}

}  // namespace testing_lrpc
