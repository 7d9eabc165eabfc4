#include "publish/publisher.h"

#include <algorithm>
#include <random>
#include <utility>

#include "lrpc/detail/shim/system/identifier.h"

namespace lrpc::directory {

Result<Outcome> carry_out(const PublisherPolicy::Step& step, Etcd& etcd, std::chrono::seconds ttl) {
  using What = PublisherPolicy::What;
  const auto told = [](const auto& result, const auto& tell) -> Result<Outcome> {
    if (!result) return result.error();
    return Outcome([tell, value = *result](PublisherPolicy& policy) { tell(policy, value); });
  };
  const auto granted = [](PublisherPolicy& policy, const Lease& lease) { policy.granted(lease, BootClock::now()); };
  const auto kept = [](PublisherPolicy& policy, const Lease& lease) { policy.kept(lease, BootClock::now()); };
  const auto audited = [](PublisherPolicy& policy, std::size_t keys) { policy.audited(keys); };
  const auto of_entries = [&step](PublisherPolicy& policy, Unit) { policy.put_or_removed(step); };
  switch (step.what) {
    case What::wait: break;
    case What::grant: return told(etcd.grant(ttl), granted);
    case What::keep_alive: return told(etcd.keep_alive(step.lease), kept);
    case What::audit: return told(etcd.attached(step.lease), audited);
    case What::put: return told(etcd.put(step.entries, step.lease), of_entries);
    case What::remove: return told(etcd.remove(step.entries, step.lease), of_entries);
  }
  return Outcome([](PublisherPolicy&) {});
}

Publisher::Publisher(Etcd& etcd, PublisherOptions options)
    : etcd_(etcd),
      options_(std::move(options)),
      instance_(shim::make_identifier()),
      local_(options_.nameserver),
      policy_(options_.policy) {}

template <class Change>
void Publisher::change(const Change& make) {
  {
    const std::lock_guard lock(mutex_);
    make();
    changed_ = true;
  }
  wake_.notify_all();
}

void Publisher::begin() {
  follows_ = std::thread([this] { follow_names(); });
  publishes_ = std::thread([this] { publish(); });
}

Publisher::~Publisher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread* const one : {&publishes_, &follows_})
    if (one->joinable()) one->join();
}

void Publisher::say(std::string& last, Severity severity, const std::string& text, const std::string& key) {
  if (key != last) options_.log(severity, text);
  last = key;
}

std::optional<PublishedName> Publisher::own_name(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = own_names_.find(name);
  return found == own_names_.end() ? std::nullopt : std::optional(found->second);
}

void Publisher::look(Time now) {
  const auto names = local_.look();
  if (!names) {
    say(said_of_names_, Severity::warning, "the local names are not known: " + names.error().message());
    return change([&] { policy_.not_told(now); });
  }
  own_.store(names->own, std::memory_order_relaxed);
  PublisherPolicy::Names wanted;
  std::map<std::string, PublishedName> own_names;
  if (names->own == 0) {
    say(said_of_names_, Severity::warning,
        "lrpc-netd does not know this machine's address: start it with --address, or nothing is published");
  } else {
    const std::string host = host_text(names->own);
    const bool leads_here = parse_host(host).has_value();
    for (const shim::ListedName& one : names->exported) {
      const PublishedName published{one.name, names->own, instance_, one.interface};
      if (leads_here) wanted.emplace(key_of(options_.prefix, one.name, names->own), value_of(published));
      own_names.emplace(one.name, published);
    }
    if (!leads_here)
      say(said_of_names_, Severity::warning,
          "lrpc-netd has the address " + host +
              ", which leads no other host here: start it with another --address, or nothing is published");
    else
      say(said_of_names_, names->cut ? Severity::warning : Severity::info,
          "names for the network: " + std::to_string(wanted.size()) + " at " + host +
              (names->cut ? ", and more that are not published" : ""));
  }
  change([&] {
    policy_.wanted(std::move(wanted));
    own_names_.swap(own_names);
  });
}

void Publisher::failed(const PublisherPolicy::Step& step, const Error& why) {
  thread_local std::minstd_rand chance{static_cast<unsigned>(instance_ % 0x7fff'ffff + 1)};
  {
    const std::lock_guard lock(mutex_);
    policy_.failed(step, why.code, BootClock::now(), std::uniform_real_distribution<double>(0, 1)(chance));
  }
  if (why.code == Errc::name_unknown) return say(said_of_etcd_, Severity::warning, "etcd has lost the lease");
  say(said_of_etcd_, Severity::warning, "etcd: " + why.message(), kind_of(why));
}

void Publisher::perform(const PublisherPolicy::Step& step) {
  const auto done = carry_out(step, etcd_, options_.policy.ttl);
  if (!done) return failed(step, done.error());
  std::unique_lock lock(mutex_);
  (*done)(policy_);
  const bool has_lease = policy_.lease() != 0;
  const bool settled = policy_.settled();
  const std::size_t published = policy_.published();
  lock.unlock();
  if (!has_lease) return say(said_of_etcd_, Severity::warning, "etcd has lost the lease");
  if (settled) say(said_of_etcd_, Severity::info, "etcd has " + std::to_string(published) + " names of this host");
}

bool Publisher::wait_until(Time until) {
  std::unique_lock lock(mutex_);
  return wake_.wait_until(lock, until, [&] { return stopping_; });
}

void Publisher::went_wrong(std::string& last, const std::exception& error) noexcept {
  try {
    say(last, Severity::warning, error.what());
  } catch (...) {  // no memory for the message
  }
}

void Publisher::follow_names() {
  for (bool ends = false; !ends;) {
    const Time now = BootClock::now();
    try {
      look(now);
    } catch (const std::exception& error) {
      went_wrong(said_of_names_, error);
    }
    ends = wait_until(now + options_.look_every);
  }
}

void Publisher::publish() {
  for (;;) {
    try {
      std::unique_lock lock(mutex_);
      if (stopping_) break;
      changed_ = false;
      const PublisherPolicy::Step step = policy_.next(BootClock::now());
      if (step.what == PublisherPolicy::What::wait) {
        // A suspend does not end a wait early, but after each look at the local names the policy is asked again.
        wake_.wait_until(lock, step.until, [&] { return stopping_ || changed_; });
        continue;
      }
      lock.unlock();
      perform(step);
    } catch (const std::exception& error) {  // go on later: an audit repairs what this step has left half done
      went_wrong(said_of_etcd_, error);
      wait_until(BootClock::now() + options_.look_every);
    }
  }
  try {
    std::unique_lock lock(mutex_);
    const LeaseId lease = policy_.lease();
    lock.unlock();
    if (lease != 0) (void)etcd_.revoke(lease);
  } catch (const std::exception& error) {  // then the lease expires
    went_wrong(said_of_etcd_, error);
  }
}

}  // namespace lrpc::directory
