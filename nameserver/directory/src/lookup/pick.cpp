#include "lookup/pick.h"

#include <algorithm>
#include <map>

namespace lrpc::directory {

void Suspects::report(unsigned user, Host host, bool reached, Time now) {
  reports_.remove_if(
      [&](const Report& one) { return (one.user == user && one.host == host) || now - one.at >= kMemory; });
  if (reached) return;
  if (reports_.size() >= kMost) drop_one();
  reports_.push_back({user, host, now});
}

void Suspects::drop_one() {
  std::map<unsigned, std::size_t> counts;
  for (const Report& one : reports_) ++counts[one.user];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
  reports_.erase(std::ranges::find(reports_, most->first, &Report::user));
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
