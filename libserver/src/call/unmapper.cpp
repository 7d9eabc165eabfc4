#include "unmapper.h"

#include <utility>

namespace lrpc::server {

Unmapper::Place Unmapper::place_for(std::uint64_t bytes, Share share) {
  Place place;
  place.last_.emplace_back().share = std::move(share);
  if (bytes < kLarge) return place;
  (void)thread_.start();
  place.unmapper_ = shared_from_this();
  return place;
}

void Unmapper::Place::settle() noexcept {
  if (last_.empty() || std::exchange(settled_, true)) return;
  Share& share = last_.front().share;
  if (unmapper_ == nullptr) {
    share.give();
  } else {
    share.leave(kUncounted);
  }
}

void Unmapper::Place::unmap(shim::Region region) noexcept {
  if (last_.empty()) return;
  last_.front().region = std::move(region);
  if (unmapper_ != nullptr) {
    settle();
    unmapper_->unmap(last_);
  }
  last_.clear();
}

void Unmapper::unmap(std::list<Last>& one) noexcept {
  {
    const std::lock_guard lock(mutex_);
    waiting_.splice(waiting_.end(), one);
  }
  if (!thread_.post(unmap_all_)) unmap_all();
}

void Unmapper::unmap_all() noexcept {
  for (;;) {
    std::list<Last> next;
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return;
    next.splice(next.begin(), waiting_, waiting_.begin());  // unmapped after the lock
  }
}

}  // namespace lrpc::server
