#include "domain_processors.h"

#include <unistd.h>

#include <bit>

#include "to_ticks.h"

namespace lrpc::server {

constexpr std::uint64_t kLookIntervalUs = 10'000;

void DomainProcessors::refer_to_this_thread() noexcept {
  const auto self = std::this_thread::get_id();
  if (self == referring_) return refresh(shim::ticks());
  referring_ = self;
  reference_.store(gettid(), std::memory_order_relaxed);
  look_at(0);
}

void DomainProcessors::refresh(std::uint64_t now) noexcept {
  const pid_t reference = reference_.load(std::memory_order_relaxed);
  if (reference < 0 || now - looked_.load(std::memory_order_relaxed) < to_ticks(kLookIntervalUs)) return;
  looked_.store(now, std::memory_order_relaxed);
  look_at(reference);
}

void DomainProcessors::look_at(pid_t thread) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(thread, sizeof set, &set) != 0)
    return;  // over 1,024 processors, or the thread is gone: no change
  const auto words = std::bit_cast<std::array<std::uint64_t, CPU_SETSIZE / 64>>(set);
  for (std::size_t i = 0; i < mask_.size(); ++i) mask_[i].store(words[i], std::memory_order_relaxed);
}

}  // namespace lrpc::server
