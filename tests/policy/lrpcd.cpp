#include "lrpcd.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

namespace lrpc::simulated {

void Lrpcd::add(Grant& grant) {
  grant.wake = [this] { wake(); };
  allocator_.add(static_cast<nameserver::Allocator::DomainId>(grants_.size()), 1000);
  grants_.push_back(&grant);
}

void Lrpcd::wake() {
  if (!std::exchange(asleep_, false)) return;
  allocator_.begin(looks());
  used_ = machine_.used();
  for (Grant* grant : grants_) {
    grant->asleep = false;
    grant->most = Grant::kNoRuling;
  }
  machine_.after(kTick, [this] { tick(); });
}

void Lrpcd::tick() {
  const double used = static_cast<double>(machine_.used() - std::exchange(used_, machine_.used())) / kTick;
  const unsigned processors = static_cast<unsigned>(std::popcount(machine_.online()));
  allocator_.tick(looks(), {.processors = processors,
                            .idle = std::max(0.0, processors - used),
                            .running = static_cast<double>(machine_.running())});
  asleep_ = allocator_.nothing_to_do();
  const bool rules = !asleep_ && (always_ || allocator_.contended());
  for (std::size_t i = 0; i < grants_.size(); ++i) {
    const auto ruling = allocator_.ruling(static_cast<nameserver::Allocator::DomainId>(i));
    grants_[i]->asleep = asleep_;
    grants_[i]->most = rules ? ruling.value_or(Grant::kNoRuling) : Grant::kNoRuling;
  }
  if (!asleep_) machine_.after(kTick, [this] { tick(); });
}

std::vector<nameserver::Allocator::Look> Lrpcd::looks() const {
  std::vector<nameserver::Allocator::Look> looks;
  for (std::size_t i = 0; i < grants_.size(); ++i) {
    looks.push_back({.id = static_cast<nameserver::Allocator::DomainId>(i),
                     .counters = grants_[i]->counters,
                     .processor_time = std::chrono::microseconds(grants_[i]->processor_time() / kPerUs)});
  }
  return looks;
}

}  // namespace lrpc::simulated
