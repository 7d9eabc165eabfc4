// Many simulated hosts. Each has its own PublisherPolicy and its own connection to etcd, as lrpc-directory has. Some
// threads drive all of them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <queue>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "boot_clock.h"
#include "etcd/etcd.h"
#include "publish/publisher_policy.h"

namespace lrpc::directory::scale {

using Clock = BootClock;  // that of the policy

/// Durations, and their statistics.
class Samples {
 public:
  void add(Clock::duration one) { all_.push_back(one); }
  void add(const Samples& other) { all_.insert(all_.end(), other.all_.begin(), other.all_.end()); }
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  /// The duration below which the part `share` (0 to 1; 0.5: the median) of all lies, in milliseconds; 0 if there are
  /// none.
  [[nodiscard]] double ms(double share);

 private:
  std::vector<Clock::duration> all_;
};

struct Shape {
  std::size_t hosts = 1000;
  std::size_t names = 100;    ///< Of each host.
  std::size_t replicas = 10;  ///< Hosts that export one name.
  std::size_t threads = 16;   ///< Threads that drive the hosts.
  std::chrono::seconds lease{30};
  std::chrono::seconds timeout{10};  ///< Of a request.
};

/// The name number `index`, below distinct_names().
[[nodiscard]] std::string name_at(std::size_t index);
[[nodiscard]] inline std::size_t distinct_names(const Shape& shape) {
  return std::max<std::size_t>(shape.hosts * shape.names / std::max<std::size_t>(shape.replicas, 1), 1);
}

class Hosts {
 public:
  Hosts(Shape shape, EtcdOptions etcd);
  ~Hosts();

  /// All hosts start anew at this moment, with new instances, and without withdrawing anything of before.
  void restart_all();
  /// Every host has all its names in etcd, as far as it knows.
  [[nodiscard]] bool settled() const;

  struct Counted {
    std::uint64_t requests = 0;
    std::uint64_t failures = 0;
    Samples published;    ///< From a host's start until etcd has all its names.
    Samples keep_alives;  ///< Each request.
  };
  /// What has been counted since the last call.
  [[nodiscard]] Counted take();

 private:
  struct Host {
    std::size_t index = 0;
    std::unique_ptr<Etcd> etcd;
    std::unique_ptr<PublisherPolicy> policy;
    Clock::time_point began;
    bool settled = false;
  };
  struct Due {
    Clock::time_point at;
    std::size_t host;
    bool operator<(const Due& other) const { return at > other.at; }  // the earliest on top
  };
  void work(unsigned seed);
  /// Performs one step. Returns when the next one is due.
  Clock::time_point advance(Host& host, double chance);
  [[nodiscard]] PublisherPolicy::Names names_of(const Host& host, std::uint64_t instance) const;

  const Shape shape_;
  const EtcdOptions etcd_;
  std::vector<Host> hosts_;
  std::atomic<std::size_t> settled_{0};
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::priority_queue<Due> due_;
  std::size_t busy_ = 0;  ///< Hosts that a thread drives now.
  bool paused_ = false;
  bool stopping_ = false;
  std::mutex counted_mutex_;
  Counted counted_;
  std::vector<std::thread> threads_;
};

}  // namespace lrpc::directory::scale
