#include "found_ports.h"

namespace lrpc::sun {

using netrpc::Time;

std::optional<std::uint16_t> FoundPorts::fresh(const Program& program, std::uint32_t version, Time now) const {
  const auto said = said_.find(program);
  if (said == said_.end()) return std::nullopt;
  const auto answer = said->second.by_version.find(version);
  if (answer == said->second.by_version.end() || now - answer->second.at >= kFresh) return std::nullopt;
  return answer->second.port;
}

bool FoundPorts::note(const Program& program, std::uint32_t version, std::uint16_t port, Time now) {
  forget(now);
  Said& said = said_[program];
  const bool usable = port == 0 || said.ports.contains(port) || said.ports.size() < kMostPorts;
  if (port != 0 && usable) said.ports[port] = now;
  said.by_version[version] = {usable ? port : std::uint16_t{0}, now};
  return usable;
}

void FoundPorts::forget(Time now) {
  for (auto& [program, said] : said_) {
    std::erase_if(said.ports, [&](const auto& one) { return now - one.second >= kKept; });
    std::erase_if(said.by_version, [&](const auto& one) { return now - one.second.at >= kFresh; });
  }
  std::erase_if(said_, [](const auto& one) { return one.second.ports.empty() && one.second.by_version.empty(); });
}

}  // namespace lrpc::sun
