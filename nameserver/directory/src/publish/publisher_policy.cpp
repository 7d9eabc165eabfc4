#include "publish/publisher_policy.h"

#include <algorithm>
#include <utility>

namespace lrpc::directory {

using std::chrono::milliseconds;

milliseconds PublisherPolicy::third() const { return std::max(milliseconds(ttl_) / 3, milliseconds(300)); }

/// Takes of `names` those for which `wrong` holds, as many as fit: beginning after `last`, and wrapping around.
template <class Wrong>
PublisherPolicy::Step PublisherPolicy::step_for(What what, const Names& names, const std::string& last,
                                                const Wrong& wrong) const {
  Step step{what, lease_, {}, {}};
  auto at = names.upper_bound(last);
  for (std::size_t left = names.size(); left > 0 && step.entries.size() < most_; --left, ++at) {
    if (at == names.end()) at = names.begin();
    if (wrong(*at)) step.entries.push_back({at->first, what == What::put ? at->second : std::string()});
  }
  return step;
}

PublisherPolicy::Step PublisherPolicy::next(Time now) const {
  const auto wait_until = [](Time until) { return Step{What::wait, 0, {}, until}; };
  if (now < retry_at_) return wait_until(retry_at_);
  if (lease_ == 0) {
    if (wanted_.empty()) return wait_until(now + settings_.longest_pause);
    return {What::grant, 0, {}, {}};
  }
  if (now >= keep_at_) return {What::keep_alive, lease_, {}, {}};
  Step remove = step_for(What::remove, published_, last_removed_,
                         [&](const auto& name) { return !wanted_.contains(name.first); });
  Step put = step_for(What::put, wanted_, last_put_, [&](const auto& name) {
    const auto there = published_.find(name.first);
    return there == published_.end() || there->second != name.second;
  });
  const bool stale = !remove.entries.empty();
  const bool late = stale && now < stay_until_;
  const bool puts_turn = puts_turn_ || !stale || late;
  if (!put.entries.empty() && puts_turn) return put;
  if (stale && !late) return remove;
  if (kept_ >= settings_.keep_alives_an_audit) return {What::audit, lease_, {}, {}};
  return wait_until(late ? std::min(keep_at_, stay_until_) : keep_at_);
}

void PublisherPolicy::wanted(Names names) {
  silent_since_ = Time();
  wanted_ = std::move(names);
}

void PublisherPolicy::not_told(Time now) {
  if (silent_since_ == Time()) silent_since_ = now;
  const bool over = now - silent_since_ >= settings_.grace;
  if (over) wanted_.clear();
  stay_until_ = over ? Time() : now + settings_.grace;
}

void PublisherPolicy::granted(const Lease& lease, Time now) {
  lease_ = lease.id;
  published_.clear();
  most_ = kMostOperations;
  kept_ = 0;
  failures_ = 0;
  ttl_ = lease.ttl;
  keep_at_ = now + third();
}

void PublisherPolicy::kept(const Lease& lease, Time now) {
  if (lease.ttl.count() == 0) return lose_lease();
  failures_ = 0;
  ++kept_;
  ttl_ = lease.ttl;
  keep_at_ = now + third();
}

void PublisherPolicy::audited(std::size_t attached) {
  failures_ = 0;
  kept_ = 0;
  if (attached == published_.size()) return;
  for (auto& [key, value] : published_) value.clear();  // all are written again
}

void PublisherPolicy::put_or_removed(const Step& step) {
  failures_ = 0;
  puts_turn_ = step.what == What::remove;
  if (!step.entries.empty()) (step.what == What::put ? last_put_ : last_removed_) = step.entries.back().key;
  for (const KeyValue& entry : step.entries) {
    if (step.what == What::put)
      published_[entry.key] = entry.value;
    else
      published_.erase(entry.key);
  }
}

void PublisherPolicy::failed(const Step& step, Errc why, Time now, double chance) {
  if (step.what == What::put) {
    puts_turn_ = false;
    for (const KeyValue& entry : step.entries) published_[entry.key].clear();  // etcd may have executed it all the same
  }
  if (why == Errc::name_unknown) lose_lease();
  if (why == Errc::invalid_argument && step.entries.size() > 1) most_ = step.entries.size() / 2;
  const unsigned doublings = std::min(failures_++, 16U);
  auto longest = std::min(settings_.first_pause * (1L << doublings), settings_.longest_pause);
  if (lease_ != 0) longest = std::min(longest, third());  // a keep-alive that is due must not be late
  // At least half of it, so that a host whose requests are refused at once still pauses.
  retry_at_ = now + std::chrono::duration_cast<milliseconds>(longest * (0.5 + std::clamp(chance, 0.0, 1.0) / 2));
}

void PublisherPolicy::lose_lease() {
  lease_ = 0;
  published_.clear();
}

}  // namespace lrpc::directory
