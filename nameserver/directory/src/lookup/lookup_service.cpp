#include "lookup/lookup_service.h"

#include <algorithm>
#include <span>
#include <utility>

#include "lrpc/detail/shim/system/identifier.h"

namespace lrpc::directory {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

LookupService::LookupService(Etcd& etcd, LookupOptions options)
    : etcd_(etcd),
      options_(std::move(options)),
      last_(options_.oldest),
      budgets_(options_.budget),
      chance_(shim::make_identifier()),
      watches_(etcd) {}

class LookupService::Turn {
 public:
  Turn(LookupService& service, uid_t user) : service_(service), user_(user) {
    std::unique_lock lock(service_.mutex_);
    service_.turn_.wait(lock, [&] { return service_.asking_[user_] < kMostAskingOfUser; });
    ++service_.asking_[user_];
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    {
      const std::lock_guard lock(service_.mutex_);
      if (--service_.asking_.find(user_)->second == 0) service_.asking_.erase(user_);
    }
    service_.turn_.notify_all();
  }

 private:
  LookupService& service_;
  const uid_t user_;
};

Result<LookupService::Found> LookupService::remembered_locked(const std::string& name, const Error& why) {
  auto known = last_.find(name, BootClock::now());
  Found found;
  found.age = milliseconds(1);  // at least 1: age 0 means an answer of etcd now
  if (known) found = {std::move(known->hosts), std::max(known->age, found.age), 0};
  add_own(name, found.hosts);
  if (found.hosts.empty()) return why;
  return found;
}

void LookupService::add_own(const std::string& name, std::vector<PublishedName>& hosts) const {
  const Host host = options_.own();
  std::erase_if(hosts, [&](const PublishedName& one) { return one.host == host; });
  if (auto own = options_.own_name(name)) hosts.push_back(*std::move(own));
}

void LookupService::refused(const std::string& name, std::size_t count) {
  {
    const std::lock_guard lock(mutex_);
    const auto before = refused_.find(name);
    if (count == (before == refused_.end() ? 0 : before->second)) return;
    if (count == 0)
      refused_.erase(before);
    else if (before != refused_.end() || refused_.size() < LastAnswers::kMostNames)
      refused_[name] = count;
    else
      return;  // not remembered, so it would be logged each time
  }
  options_.log(count == 0 ? Severity::info : Severity::warning,
               "etcd has " + std::to_string(count) + " entries below " + keys_of_name(options_.prefix, name) +
                   " that are not right and are not used");
}

std::optional<Result<LookupService::Found>> LookupService::spared(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (etcd_failed_ == Time() || Clock::now() - etcd_failed_ >= kSpared) return std::nullopt;
  return remembered_locked(name, failure_);
}

std::optional<Result<LookupService::Found>> LookupService::used_up(const std::string& name, uid_t user) {
  const std::lock_guard lock(mutex_);
  if (budgets_.spend(user, Clock::now())) return std::nullopt;
  return remembered_locked(name, {Errc::limit_reached, "this user's programs look up names too often"});
}

Result<LookupService::Found> LookupService::find(const std::string& name, uid_t user) {
  if (auto known = spared(name)) return *std::move(known);
  if (auto known = used_up(name, user)) return *std::move(known);
  const Turn turn(*this, user);
  if (auto known = spared(name)) return *std::move(known);  // etcd has failed while this lookup waited for its turn
  return ask(name);
}

Result<LookupService::Found> LookupService::ask(const std::string& name) {
  auto range = etcd_.range(keys_of_name(options_.prefix, name), kMostRead);
  if (!range) {
    // limit_reached: somebody has written too many entries of the name. The last good answer is still used.
    if (range.code() != Errc::remote_unavailable && range.code() != Errc::limit_reached) return range.error();
    const std::lock_guard lock(mutex_);
    if (range.code() == Errc::remote_unavailable) {
      etcd_failed_ = Clock::now();
      failure_ = range.error();
    }
    return remembered_locked(name, range.error());
  }
  Found found;
  found.revision = range->revision;
  // etcd returns each key once, and at most as many as requested. An impostor may return more, which would take other
  // hosts' places in an answer, and memory for as long as answers are kept.
  for (const KeyValue& entry : std::span(range->found).first(std::min(range->found.size(), kMostRead))) {
    auto published = parse_published(options_.prefix, entry.key, entry.value);
    if (!published || published->name != name) continue;
    if (std::ranges::find(found.hosts, published->host, &PublishedName::host) == found.hosts.end())
      found.hosts.push_back(*std::move(published));
  }
  refused(name, range->found.size() - found.hosts.size());
  {
    const std::lock_guard lock(mutex_);
    etcd_failed_ = Time();
    last_.store(name, found.hosts, BootClock::now());
  }
  add_own(name, found.hosts);
  return found;
}

Result<Directory::LookupResults> LookupService::answer(const Found& found, const InterfaceId& wanted,
                                                       const std::string& name, uid_t user) {
  if (found.hosts.empty())
    return Error{Errc::name_unknown, "no host exports '" + name + "' to the network and publishes it in etcd"};
  std::vector<Host> hosts;
  Status fits;
  for (const PublishedName& one : found.hosts) {
    Status fit = shim::compatible(wanted, one.interface.view());
    if (fit)
      hosts.push_back(one.host);
    else
      fits = std::move(fit);
  }
  if (hosts.empty()) return fits.error();
  const Host own = options_.own();
  {
    const std::lock_guard lock(mutex_);
    hosts = pick(std::move(hosts), own, user, suspects_, Clock::now(), chance_, kMostAnswered);
  }
  std::string text;
  for (const Host host : hosts) text.append(text.empty() ? "" : " ").append(host_text(host));
  return Directory::LookupResults{.hosts = String<127>::cut(text),
                                  .own = own != 0 && hosts.front() == own,
                                  .age_ms = static_cast<std::uint32_t>(found.age.count())};
}

class LookupService::Place {
 public:
  Place(LookupService& service, uid_t user) : service_(service) {
    const std::lock_guard lock(service_.mutex_);
    part_ = service_.waiting_.take_within(kMostWaitingOfUser, user, 1, kMostWaiting);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    const std::lock_guard lock(service_.mutex_);
    part_ = {};
  }
  [[nodiscard]] bool taken() const noexcept { return static_cast<bool>(part_); }

 private:
  LookupService& service_;
  shim::UserShares::Part part_;
};

bool LookupService::wait_for_change(const std::string& name, std::int64_t revision, milliseconds wait, uid_t user) {
  const Place place(*this, user);
  if (!place.taken()) return false;
  const auto may_watch = [&] {
    const std::lock_guard lock(mutex_);
    return budgets_.spend(user, Clock::now());
  };
  const auto written =
      watches_.wait(keys_of_name(options_.prefix, name), revision, std::min(wait, kLongestWait), may_watch, stopping_);
  return written && *written;
}

Result<Directory::LookupResults, Directory::Refused> LookupService::Lookup(
    CallContext& context, const String<255>& name, const String<255>& interface_name, std::uint16_t major_version,
    std::uint16_t minor_version, std::uint64_t hash, std::uint32_t wait_ms) {
  const auto refuse = [](const Error& error) {
    return raise(Directory::Refused{static_cast<std::uint16_t>(error.code), String<512>::cut(error.message())});
  };
  const std::string wanted = name.str();
  if (!shim::valid_name(wanted)) return refuse({Errc::invalid_argument, "this is no name that can be exported"});
  const std::string interface = interface_name.str();
  const InterfaceId of_client{interface, major_version, minor_version, hash};
  const uid_t user = context.caller().uid;

  auto found = find(wanted, user);
  if (found && found->hosts.empty() && wait_ms != 0 && found->revision != 0 &&
      wait_for_change(wanted, found->revision, milliseconds(wait_ms), user))
    found = find(wanted, user);
  if (!found) return refuse(found.error());
  auto results = answer(*found, of_client, wanted, user);
  if (!results) return refuse(results.error());
  return *std::move(results);
}

void LookupService::Report(CallContext& context, const String<15>& host, bool reached) {
  const auto address = parse_host(host.view());
  if (!address) return;
  const std::lock_guard lock(mutex_);
  suspects_.report(context.caller().uid, *address, reached, Clock::now());
}

}  // namespace lrpc::directory
