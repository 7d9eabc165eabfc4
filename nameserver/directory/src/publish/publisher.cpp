#include "publish/publisher.h"

#include <algorithm>
#include <random>
#include <utility>

#include "lrpc/detail/shim/system/identifier.h"

namespace lrpc::directory {

using Clock = std::chrono::steady_clock;

Publisher::Publisher(Etcd& etcd, PublisherOptions options)
    : etcd_(etcd),
      options_(std::move(options)),
      instance_(shim::make_identifier()),
      local_(options_.nameserver),
      policy_(options_.policy) {}

void Publisher::begin() {
  thread_ = std::thread([this] { run(); });
}

Publisher::~Publisher() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
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
    return policy_.not_told(now);
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
  policy_.wanted(std::move(wanted));
  const std::lock_guard lock(mutex_);
  own_names_ = std::move(own_names);
}

void Publisher::failed(const PublisherPolicy::Step& step, const Error& why) {
  thread_local std::minstd_rand chance{static_cast<unsigned>(instance_ % 0x7fff'ffff + 1)};
  policy_.failed(step, why.code, Clock::now(), std::uniform_real_distribution<double>(0, 1)(chance));
  if (why.code == Errc::name_unknown) return say(said_of_etcd_, Severity::warning, "etcd has lost the lease");
  say(said_of_etcd_, Severity::warning, "etcd: " + why.message(), kind_of(why));
}

void Publisher::perform(const PublisherPolicy::Step& step) {
  using What = PublisherPolicy::What;
  const auto outcome = [&](const auto& result, auto&& use) {
    if (!result) return failed(step, result.error());
    use();
    if (policy_.lease() == 0) return say(said_of_etcd_, Severity::warning, "etcd has lost the lease");
    if (policy_.settled())
      say(said_of_etcd_, Severity::info, "etcd has " + std::to_string(policy_.published()) + " names of this host");
  };
  switch (step.what) {
    case What::wait: return;
    case What::grant: {
      const auto lease = etcd_.grant(options_.policy.ttl);
      return outcome(lease, [&] { policy_.granted(*lease, Clock::now()); });
    }
    case What::keep_alive: {
      const auto lease = etcd_.keep_alive(step.lease);
      return outcome(lease, [&] { policy_.kept(*lease, Clock::now()); });
    }
    case What::audit: {
      const auto attached = etcd_.attached(step.lease);
      return outcome(attached, [&] { policy_.audited(*attached, Clock::now()); });
    }
    case What::put: return outcome(etcd_.put(step.entries, step.lease), [&] { policy_.put_or_removed(step); });
    case What::remove: return outcome(etcd_.remove(step.entries, step.lease), [&] { policy_.put_or_removed(step); });
  }
}

void Publisher::wait_until(Time until) {
  std::unique_lock lock(mutex_);
  wake_.wait_until(lock, until, [&] { return stopping_; });
}

void Publisher::went_wrong(const std::exception& error) noexcept {
  try {
    say(said_of_names_, Severity::warning, error.what());
  } catch (...) {  // no memory for the message
  }
}

void Publisher::run() {
  Time next_look{};
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) break;
    }
    try {
      const Time now = Clock::now();
      if (now >= next_look) {
        next_look =
            now + options_.look_every;  // first: if the look throws, the lease must still be kept alive all the same
        look(now);
      }
      const PublisherPolicy::Step step = policy_.next(Clock::now());
      if (step.what == PublisherPolicy::What::wait)
        wait_until(std::min(step.until, next_look));
      else
        perform(step);
    } catch (const std::exception& error) {  // go on later: an audit repairs what this step has left half done
      went_wrong(error);
      wait_until(Clock::now() + options_.look_every);
    }
  }
  try {
    if (policy_.lease() != 0) (void)etcd_.revoke(policy_.lease());
  } catch (const std::exception& error) {  // then the lease expires
    went_wrong(error);
  }
}

}  // namespace lrpc::directory
