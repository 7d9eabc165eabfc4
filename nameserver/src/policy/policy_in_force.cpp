#include "policy_in_force.h"

#include <sys/eventfd.h>

#include <cerrno>

namespace lrpc::nameserver {

Status PolicyInForce::begin(std::function<void()> changed) {
  event_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_) return system_error("eventfd", errno);
  auto watched = loop_.watch(event_.get(), {.readable = true}, [this, changed = std::move(changed)](Readiness) {
    eventfd_t count = 0;
    (void)::eventfd_read(event_.get(), &count);
    std::unique_lock lock(mutex_);
    std::shared_ptr<Policy> taken = std::move(new_policy_);
    lock.unlock();
    if (taken == nullptr) return;
    policy_ = std::move(taken);
    changed();
  });
  if (!watched) return watched.error();
  watch_ = *watched;
  return {};
}

void PolicyInForce::set(std::shared_ptr<Policy> policy) {
  const std::lock_guard lock(mutex_);
  new_policy_ = std::move(policy);
  (void)::eventfd_write(event_.get(), 1);
}

}  // namespace lrpc::nameserver
