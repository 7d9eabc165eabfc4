// The requests that the protocol above works on: so many in all, of which each host has its fair share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/map.h"
#include "lrpc/shim/most_of_one.h"

namespace lrpc::netrpc::composite {

/// Under the monitor. Outlives the places that are taken.
class RequestPlaces {
 public:
  static constexpr std::size_t kMost = 4096;
  /// `seed`: Host::hash_seed(): peers choose the rest.
  explicit RequestPlaces(std::uint64_t seed) : seed_(seed) {}
  /// Whether one more request of this host finds a place.
  [[nodiscard]] bool has_room(HostAddress host) noexcept {
    const std::size_t* const by_host = taken_by_.resolve({seed_, host});
    return shim::one_may_take(1, by_host != nullptr ? *by_host : 0, taken_, kMost);
  }

 private:
  friend class RequestPlace;
  const std::uint64_t seed_;
  std::size_t taken_ = 0;
  Map<HostKey, std::size_t> taken_by_;
};

/// One request's, from when the protocol above is given it until nobody works on it any more.
class RequestPlace {
 public:
  RequestPlace() = default;
  RequestPlace(const RequestPlace&) = delete;
  RequestPlace& operator=(const RequestPlace&) = delete;
  ~RequestPlace() { give_back(); }

  /// Also beyond a host's share: micro-protocols may have held up what found room when it came. False: there is no
  /// memory.
  [[nodiscard]] bool take(RequestPlaces& from, HostAddress host) noexcept {
    const HostKey key{from.seed_, host};
    try {
      std::size_t* const by_host = from.taken_by_.resolve(key);
      ++(by_host != nullptr ? *by_host : from.taken_by_.bind(key, 0));
    } catch (const std::bad_alloc&) {
      return false;
    }
    ++from.taken_;
    of_ = &from;
    host_ = host;
    return true;
  }
  /// No effect without one.
  void give_back() noexcept {
    if (of_ == nullptr) return;
    const HostKey key{of_->seed_, host_};
    --of_->taken_;
    if (--*of_->taken_by_.resolve(key) == 0) of_->taken_by_.unbind(key);
    of_ = nullptr;
  }

 private:
  RequestPlaces* of_ = nullptr;
  HostAddress host_;
};

}  // namespace lrpc::netrpc::composite
