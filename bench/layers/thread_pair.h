// Two threads of one process, one of which works when the other asks: what handing work to a thread costs.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace lrpc::bench {

/// The second thread sleeps on a futex until it is asked. It inherits the affinity of the thread that constructs this.
class ThreadPair {
 public:
  /// `work` is what the second thread does in each round trip.
  explicit ThreadPair(std::function<void()> work = [] {});
  ~ThreadPair();
  /// Wakes the second thread and sleeps until its work is done: two handoffs.
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
