// Attacks the policy that keeps a host's names in etcd. Leases have any length and are lost at any time. Requests fail,
// with or without effect. Somebody else removes keys, and time jumps. What must hold: each step is about the current
// lease and about wanted names, and fits into one transaction. A pause ends. Once etcd answers correctly, it has
// exactly the wanted names after a bounded number of steps.
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "input.h"
#include "publish/publisher_policy.h"

namespace lrpc::directory {
namespace {

using fuzz::Input;
using fuzz::require;
using std::chrono::milliseconds;
using What = PublisherPolicy::What;
using Step = PublisherPolicy::Step;

constexpr std::size_t kMostNames = 250;
/// Enough to correct everything: a put and a removal of each name, if etcd takes only one at a time, and the
/// keep-alives before an audit.
constexpr std::size_t kMostSteps = 3 * kMostNames;

/// The part of etcd that is needed: one lease at a time, and the keys under it.
struct FakeEtcd {
  LeaseId lease = 0;
  LeaseId last_lease = 0;
  PublisherPolicy::Names keys;
  void lose_lease() {
    lease = 0;
    keys.clear();
  }
};

class Attack {
 public:
  void step(Input& input) {
    switch (input.byte() % 8) {
      case 0: return want(input);
      case 1: return policy_.not_told(now_);
      case 2: now_ += milliseconds(1ULL << (input.byte() % 24)); return;
      case 3: return etcd_.lose_lease();
      case 4: {
        if (!etcd_.keys.empty())
          etcd_.keys.erase(
              std::next(etcd_.keys.begin(), static_cast<std::ptrdiff_t>(input.byte() % etcd_.keys.size())));
        return;
      }
      default: return perform(input);
    }
  }

  /// From now on etcd answers correctly, and time passes only while the policy waits.
  void settle() {
    want_.insert({"k", "v"});
    policy_.wanted(want_);
    static constexpr std::uint8_t kWell[] = {0, 30, 0, 0};
    // An audit comes after some keep-alives. Until then keys that somebody else removed are missing.
    for (std::size_t i = 0; i < kMostSteps && !(policy_.settled() && etcd_.keys == want_); ++i) {
      Input well(kWell, std::size(kWell));
      perform(well);
      if (const Step next = policy_.next(now_); next.what == What::wait) now_ = next.until;
    }
    require(policy_.settled() && policy_.published() == want_.size(), "what is wanted is published");
    require(etcd_.keys == want_, "and is there, and nothing else");
  }

 private:
  void want(Input& input) {
    const std::uint8_t how = input.byte();
    if (how % 4 == 0) want_.clear();
    const std::size_t count = how >= 0xf0 ? kMostNames : how % 8;
    for (std::size_t i = 0; i < count && want_.size() < kMostNames; ++i)
      want_["k" + std::to_string((i + how / 8) % kMostNames)] = std::to_string(input.byte() % 3);
    policy_.wanted(want_);
  }

  void check(const Step& step) {
    if (step.what == What::wait) return require(step.until > now_, "a pause ends later");
    if (step.what == What::grant) return require(policy_.lease() == 0 && step.entries.empty(), "one lease is enough");
    require(step.lease != 0 && step.lease == policy_.lease() && step.lease == last_granted_,
            "a step is about the lease");
    const bool has_entries = step.what == What::put || step.what == What::remove;
    require(step.entries.empty() != has_entries, "names are put and removed");
    require(step.entries.size() <= kMostOperations, "as many as one transaction takes");
    for (const KeyValue& entry : step.entries)
      if (step.what == What::put) require(!entry.value.empty(), "a name has a value");
  }

  /// Performs the next step. The input's first byte says how it ends (0: well).
  void perform(Input& input) {
    const Step step = policy_.next(now_);
    check(step);
    if (step.what == What::wait) return;
    constexpr Errc kFailures[] = {Errc::remote_unavailable, Errc::not_permitted, Errc::bad_message,
                                  Errc::limit_reached,      Errc::name_unknown,  Errc::invalid_argument};
    const std::uint8_t how = input.byte();
    const std::chrono::seconds ttl(std::max(input.two(), std::uint16_t{1}) * (how % 16 == 8 ? 15'000LL : 1LL));
    const bool fails = how >= 0x80;
    const bool comes_about = !fails || how >= 0xc0;
    const bool there = step.what == What::grant || step.lease == etcd_.lease;
    if (comes_about) come_about(step);
    if (!there) {
      if (step.what == What::keep_alive) return policy_.kept({step.lease, std::chrono::seconds(0)}, now_);
      if (step.what != What::remove) return failed(step, Errc::name_unknown, input);
    }
    if (fails) return failed(step, kFailures[how % std::size(kFailures)], input);
    switch (step.what) {
      case What::grant: last_granted_ = etcd_.lease; return policy_.granted({etcd_.lease, ttl}, now_);
      case What::keep_alive: return policy_.kept({step.lease, ttl}, now_);
      case What::audit: return policy_.audited(etcd_.keys.size());
      default: return policy_.put_or_removed(step);
    }
  }
  void failed(const Step& step, Errc why, Input& input) {
    policy_.failed(step, why, now_, input.byte() / 255.0);
    require(why != Errc::name_unknown || policy_.lease() == 0, "a lease that is lost is not used");
    if (policy_.lease() == 0 && step.what != What::grant) last_granted_ = 0;
  }

  void come_about(const Step& step) {
    if (step.what == What::grant) {
      etcd_.lose_lease();  // this ends the earlier lease, and its keys go with it
      etcd_.lease = ++etcd_.last_lease;
    }
    if (step.lease != etcd_.lease) return;
    for (const KeyValue& entry : step.entries) {
      if (step.what == What::put) etcd_.keys[entry.key] = entry.value;
      if (step.what == What::remove) etcd_.keys.erase(entry.key);
    }
  }

  PublisherPolicy::Time now_{std::chrono::hours(1)};
  PublisherPolicy policy_{{}};
  PublisherPolicy::Names want_;
  FakeEtcd etcd_;
  LeaseId last_granted_ = 0;
};

}  // namespace
}  // namespace lrpc::directory

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::fuzz::Input input(data, size);
  lrpc::directory::Attack attack;
  for (int i = 0; i < 256 && input.more(); ++i) attack.step(input);
  attack.settle();
  return 0;
}
