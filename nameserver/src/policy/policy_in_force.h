// The policy in force, and the change to another one.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "loop/event_loop.h"
#include "lrpc/detail/nameserver/policy.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::nameserver {

class PolicyInForce {
 public:
  PolicyInForce(EventLoop& loop, std::shared_ptr<Policy> first) noexcept : loop_(loop), policy_(std::move(first)) {}
  ~PolicyInForce() { loop_.forget(watch_); }

  /// From now on set() takes effect. `changed` is called on the loop's thread when another policy is in force.
  Status begin(std::function<void()> changed);
  /// Nameserver::set_policy(). Any thread.
  void set(std::shared_ptr<Policy> policy);
  /// On the loop's thread.
  [[nodiscard]] Policy* operator->() const noexcept { return policy_.get(); }

 private:
  EventLoop& loop_;
  std::shared_ptr<Policy> policy_;
  std::mutex mutex_;
  std::shared_ptr<Policy> new_policy_;  ///< Guarded by the mutex; taken when the event is signalled.
  UniqueFd event_;
  EventLoop::WatchId watch_ = 0;
};

}  // namespace lrpc::nameserver
