// What each host takes of something that all have together: of which it may have its fair share.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/map.h"
#include "lrpc/shim/most_of_one.h"

namespace lrpc::netrpc::composite {

/// Under the monitor. Outlives what is taken.
class HostShares {
 public:
  /// What one has taken, until it is overwritten or goes.
  class Part {
   public:
    Part() = default;
    Part(Part&& other) noexcept : of_(std::exchange(other.of_, nullptr)), host_(other.host_), amount_(other.amount_) {}
    Part& operator=(Part&& other) noexcept {
      if (this == &other) return *this;
      if (of_ != nullptr) of_->give_back(host_, amount_);
      of_ = std::exchange(other.of_, nullptr);
      host_ = other.host_;
      amount_ = other.amount_;
      return *this;
    }
    ~Part() {
      if (of_ != nullptr) of_->give_back(host_, amount_);
    }
    explicit operator bool() const noexcept { return of_ != nullptr; }

   private:
    friend class HostShares;
    Part(HostShares& of, const HostKey& host, std::size_t amount) noexcept : of_(&of), host_(host), amount_(amount) {}
    HostShares* of_ = nullptr;
    HostKey host_;
    std::size_t amount_ = 0;
  };

  HostShares() = default;
  HostShares(const HostShares&) = delete;
  HostShares& operator=(const HostShares&) = delete;

  /// Whether this host may take so much of `all`, and there is so much.
  [[nodiscard]] bool has_room(const HostKey& host, std::size_t amount, std::size_t all) noexcept {
    const std::size_t* const by_host = taken_by_.resolve(host);
    return shim::one_may_take(amount, by_host != nullptr ? *by_host : 0, taken_, all);
  }
  /// Whether there is room or not. `amount`: not 0. False: there is no memory.
  [[nodiscard]] Part take(const HostKey& host, std::size_t amount) noexcept {
    try {
      std::size_t* const by_host = taken_by_.resolve(host);
      (by_host != nullptr ? *by_host : taken_by_.bind(host, 0)) += amount;
    } catch (const std::bad_alloc&) {
      return {};
    }
    taken_ += amount;
    return Part(*this, host, amount);
  }
  [[nodiscard]] std::size_t taken() const noexcept { return taken_; }

 private:
  void give_back(const HostKey& host, std::size_t amount) noexcept {
    taken_ -= amount;
    if ((*taken_by_.resolve(host) -= amount) == 0) taken_by_.unbind(host);
  }
  std::size_t taken_ = 0;
  Map<HostKey, std::size_t> taken_by_;
};

}  // namespace lrpc::netrpc::composite
