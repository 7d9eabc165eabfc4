#include "hosts.h"

#include <algorithm>
#include <utility>

#include "etcd/published_name.h"
#include "lrpc/detail/shim/system/identifier.h"
#include "publish/publisher.h"

namespace lrpc::directory::scale {

using What = PublisherPolicy::What;

double Samples::ms(double share) {
  if (all_.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(all_.size() - 1));
  std::nth_element(all_.begin(), all_.begin() + at, all_.end());
  return std::chrono::duration<double, std::milli>(all_[static_cast<std::size_t>(at)]).count();
}

std::string name_at(std::size_t index) { return "service-" + std::to_string(index); }

Hosts::Hosts(Shape shape, EtcdOptions etcd) : shape_(shape), etcd_(std::move(etcd)) {
  for (std::size_t i = 0; i < shape_.hosts; ++i) {
    hosts_.emplace_back();
    hosts_.back().index = i;
    hosts_.back().etcd = std::make_unique<Etcd>(etcd_);
  }
  restart_all();
  for (unsigned i = 0; i < shape_.threads; ++i) threads_.emplace_back([this, i] { work(i); });
}

Hosts::~Hosts() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

PublisherPolicy::Names Hosts::names_of(const Host& host, std::uint64_t instance) const {
  PublisherPolicy::Names names;
  const directory::Host address = 0x0a00'0001 + static_cast<directory::Host>(host.index);
  for (std::size_t i = 0; i < shape_.names; ++i) {
    const std::string name = name_at((host.index * shape_.names + i) % distinct_names(shape_));
    names.emplace(key_of("/lrpc", name, address), value_of({name, address, instance, {"Service", 1, 0, 0x1234}}));
  }
  return names;
}

void Hosts::restart_all() {
  std::unique_lock lock(mutex_);
  paused_ = true;
  wake_.wait(lock, [&] { return busy_ == 0; });
  const auto now = Clock::now();
  due_ = {};
  settled_ = 0;
  for (Host& host : hosts_) {
    PublisherPolicy::Settings settings;
    settings.ttl = shape_.lease;
    host.policy = std::make_unique<PublisherPolicy>(settings);
    host.policy->wanted(names_of(host, shim::make_identifier()));
    host.began = now;
    host.settled = false;
    due_.push({now, host.index});
  }
  paused_ = false;
  wake_.notify_all();
}

bool Hosts::settled() const { return settled_ == hosts_.size(); }

Hosts::Counted Hosts::take() {
  const std::lock_guard lock(counted_mutex_);
  return std::exchange(counted_, {});
}

Clock::time_point Hosts::advance(Host& host, double chance) {
  PublisherPolicy& policy = *host.policy;
  const auto step = policy.next(Clock::now());
  if (step.what == What::wait) return step.until;
  const auto began = Clock::now();
  const auto done = carry_out(step, *host.etcd, shape_.lease);
  const Errc outcome = done.code();
  const auto now = Clock::now();
  if (done)
    (*done)(policy);
  else
    policy.failed(step, outcome, now, chance);
  const bool settled = policy.lease() != 0 && policy.settled();
  if (settled != host.settled) settled ? ++settled_ : --settled_;
  const std::lock_guard lock(counted_mutex_);
  ++counted_.requests;
  if (outcome != Errc::ok) ++counted_.failures;
  if (step.what == What::keep_alive && outcome == Errc::ok) counted_.keep_alives.add(now - began);
  if (settled && !host.settled) counted_.published.add(now - host.began);
  if (!settled && host.settled) host.began = now;
  host.settled = settled;
  return now;
}

void Hosts::work(unsigned seed) {
  std::minstd_rand chance(seed + 1);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (paused_ || due_.empty()) {
      wake_.wait(lock);
      continue;
    }
    const Due next = due_.top();
    if (next.at > Clock::now()) {
      wake_.wait_until(lock, next.at);
      continue;
    }
    due_.pop();
    ++busy_;
    lock.unlock();
    const auto at = advance(hosts_[next.host], std::uniform_real_distribution<double>(0, 1)(chance));
    lock.lock();
    due_.push({at, next.host});
    --busy_;
    if (paused_ && busy_ == 0) wake_.notify_all();
  }
}

}  // namespace lrpc::directory::scale
