// Many simulated hosts: for each a PublisherPolicy and a connection to etcd of its own, as lrpc-directory has. Some
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

#include "etcd/etcd.h"
#include "publish/publisher_policy.h"

namespace lrpc::directory::scale {

using Clock = std::chrono::steady_clock;

/// Durations, and what of them is told.
class Samples {
 public:
  void add(Clock::duration one) { all_.push_back(one); }
  void add(const Samples& other) { all_.insert(all_.end(), other.all_.begin(), other.all_.end()); }
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  /// `share` from 0 to 1: 0.5 is the median. Milliseconds; 0 of none.
  [[nodiscard]] double ms(double share);

 private:
  std::vector<Clock::duration> all_;
};

struct Shape {
  std::size_t hosts = 1000;
  std::size_t names = 100;    ///< Of each host.
  std::size_t replicas = 10;  ///< Hosts that export one name.
  std::size_t threads = 16;   ///< That drive the hosts.
  std::chrono::seconds lease{30};
  std::chrono::seconds timeout{10};  ///< Of a request.
};

/// The name `index` of all names that there are.
[[nodiscard]] std::string name_at(std::size_t index);
[[nodiscard]] inline std::size_t distinct_names(const Shape& shape) {
  return std::max<std::size_t>(shape.hosts * shape.names / std::max<std::size_t>(shape.replicas, 1), 1);
}

class Hosts {
 public:
  Hosts(Shape shape, EtcdOptions etcd);
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;
  ~Hosts();

  /// All hosts begin a new life at this moment, with new instances, and without a word about the old one.
  void restart_all();
  /// Every host has all its names in etcd, as far as it knows.
  [[nodiscard]] bool settled() const;

  struct Counted {
    std::uint64_t requests = 0;
    std::uint64_t failures = 0;
    Samples published;    ///< From the beginning of a life to all names in etcd.
    Samples keep_alives;  ///< Each request.
  };
  /// Since the last call.
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
  /// One step. Returns when the next one is due.
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
