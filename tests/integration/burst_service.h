// The implementation of Burst, and a way to bind to it.
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>

#include "burst.client.h"
#include "burst.server.h"
#include "eventually.h"
#include "lrpc/server.h"

namespace testing_lrpc {

class BurstService {
 public:
  using CallContext = lrpc::CallContext;
  void Null(CallContext&) {}
  std::int32_t Add(CallContext&, std::int32_t a, std::int32_t b) { return a + b; }
  void NapFor(CallContext&, std::uint32_t milliseconds) {
    const Here here(*this);
    const timespec time{milliseconds / 1000, static_cast<long>(milliseconds % 1000) * 1'000'000};
    nanosleep(&time, nullptr);
  }
  std::uint32_t Meet(CallContext&, std::uint32_t callers) {
    const Here here(*this);
    std::unique_lock lock(mutex_);
    (void)met_.wait_for(lock, kPatience, [&] { return most_ >= callers; });
    return most_;
  }
  std::uint64_t Sum(CallContext&, std::span<const std::byte> data) {
    return std::accumulate(data.begin(), data.end(), std::uint64_t{0},
                           [](std::uint64_t sum, std::byte b) { return sum + std::to_integer<std::uint64_t>(b); });
  }
  std::uint32_t MeetWith(CallContext& call, std::uint32_t callers, std::span<const std::byte>) {
    return Meet(call, callers);
  }
  void Arrive(CallContext& call, std::uint32_t callers) { (void)Meet(call, callers); }
  std::uint32_t Most(CallContext&) {
    const std::lock_guard lock(mutex_);
    return most_;
  }
  /// Resets the count for the next meeting. Precondition: no call is in a meeting.
  void forget() {
    const std::lock_guard lock(mutex_);
    most_ = 0;
  }

 private:
  struct Here {
    explicit Here(BurstService& service) : at(service) {
      const std::lock_guard lock(at.mutex_);
      at.most_ = std::max(at.most_, ++at.here_);
      at.met_.notify_all();
    }
    ~Here() {
      const std::lock_guard lock(at.mutex_);
      --at.here_;
    }
    BurstService& at;
  };
  std::mutex mutex_;
  std::condition_variable met_;
  std::uint32_t here_ = 0;
  std::uint32_t most_ = 0;
};

/// Both domains in one process, so that a race detector sees both sides. The client must be destroyed first.
struct LocalBurst {
  BurstService service;
  lrpc::Server server;
  std::unique_ptr<Burst::Client> client;

  explicit LocalBurst(const lrpc::ImportOptions& options = {}, lrpc::ServerOptions limits = {})
      : server(std::move(limits)), client(bind(options)) {}
  /// Makes another binding to the same server.
  std::unique_ptr<Burst::Client> bind(const lrpc::ImportOptions& options) {
    auto ends = lrpc::shim::make_socket_pair();
    if (!ends) throw std::runtime_error(ends.error().message());
    auto served = Burst::serve_over(server, std::move(ends->first), service);
    if (!served) throw std::runtime_error(served.error().message());
    auto imported = Burst::Client::import_over(std::move(ends->second), options);
    if (!imported) throw std::runtime_error(imported.error().message());
    return std::make_unique<Burst::Client>(*std::move(imported));
  }
};

}  // namespace testing_lrpc
