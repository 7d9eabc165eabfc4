#include "publish/publisher.h"

#include <algorithm>
#include <random>
#include <utility>

#include "lrpc/detail/shim/system/identifier.h"

namespace lrpc::directory {

using Clock = std::chrono::steady_clock;

Status carry_out(const PublisherPolicy::Step& step, PublisherPolicy& policy, Etcd& etcd, std::chrono::seconds ttl) {
  using What = PublisherPolicy::What;
  const auto told = [](const auto& result, const auto& tell) -> Status {
    if (!result) return result.error();
    tell(*result);
    return {};
  };
  const auto of_entries = [&](Unit) { policy.put_or_removed(step); };
  switch (step.what) {
    case What::wait: break;
    case What::grant: return told(etcd.grant(ttl), [&](const Lease& lease) { policy.granted(lease, Clock::now()); });
    case What::keep_alive:
      return told(etcd.keep_alive(step.lease), [&](const Lease& lease) { policy.kept(lease, Clock::now()); });
    case What::audit: return told(etcd.attached(step.lease), [&](std::size_t keys) { policy.audited(keys); });
    case What::put: return told(etcd.put(step.entries, step.lease), of_entries);
    case What::remove: return told(etcd.remove(step.entries, step.lease), of_entries);
  }
  return {};
}

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
  if (auto done = carry_out(step, policy_, etcd_, options_.policy.ttl); !done) return failed(step, done.error());
  if (policy_.lease() == 0) return say(said_of_etcd_, Severity::warning, "etcd has lost the lease");
  if (policy_.settled())
    say(said_of_etcd_, Severity::info, "etcd has " + std::to_string(policy_.published()) + " names of this host");
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
