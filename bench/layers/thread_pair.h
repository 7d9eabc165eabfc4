// Two threads of one process, one of which works when the other asks it to: what handing over to a thread costs.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace lrpc::bench {

/// The second thread, which sleeps on a futex until it is asked. It inherits the affinity of the thread that makes it.
class ThreadPair {
 public:
  /// `work`: done by the second thread at each round trip.
  explicit ThreadPair(std::function<void()> work = [] {});
  ThreadPair(const ThreadPair&) = delete;
  ThreadPair& operator=(const ThreadPair&) = delete;
  ~ThreadPair();
  /// Wakes the second thread, sleeps until it has done its work. Two handoffs.
  void round_trip() noexcept;

 private:
  static constexpr std::uint32_t kEnd = ~std::uint32_t{0};
  void serve();

  const std::function<void()> work_;
  alignas(128) std::atomic<std::uint32_t> asked_{0};
  alignas(128) std::atomic<std::uint32_t> done_{0};
  std::thread thread_;
};

}  // namespace lrpc::bench
