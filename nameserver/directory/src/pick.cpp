#include "pick.h"

#include <algorithm>

namespace lrpc::directory {

void Suspects::report(unsigned user, Host host, bool reached, Time now) {
  reports_.remove_if([&](const Report& one) { return one.user == user && one.host == host; });
  if (reached) return;
  if (reports_.size() >= kMost) reports_.pop_front();
  reports_.push_back({user, host, now});
}

bool Suspects::is_suspect(unsigned user, Host host, Time now) const {
  return std::ranges::any_of(
      reports_, [&](const Report& one) { return one.user == user && one.host == host && now - one.at < kMemory; });
}

std::vector<Host> pick(std::vector<Host> hosts, Host own, unsigned user, const Suspects& suspects, Suspects::Time now,
                       std::mt19937_64& chance, std::size_t most) {
  std::ranges::shuffle(hosts, chance);
  std::stable_partition(hosts.begin(), hosts.end(), [&](Host host) { return !suspects.is_suspect(user, host, now); });
  std::stable_partition(hosts.begin(), hosts.end(), [&](Host host) { return own != 0 && host == own; });
  if (hosts.size() > most) hosts.resize(most);
  return hosts;
}

}  // namespace lrpc::directory
