#include "found_ports.h"

namespace lrpc::sun {

using netrpc::Time;

std::optional<FoundPorts::Answer> FoundPorts::fresh(const Program& program, std::uint32_t version, Time now) const {
  const auto said = said_.find(program);
  if (said == said_.end()) return std::nullopt;
  const auto noted = said->second.by_version.find(version);
  if (noted == said->second.by_version.end() || now - noted->second.at >= kFresh) return std::nullopt;
  return noted->second.answer;
}

bool FoundPorts::note(const Program& program, std::uint32_t version, Answer answer, Time now) {
  forget(now);
  Said& said = said_[program];
  const bool usable = answer.port == 0 || said.ports.contains(answer.port) || said.ports.size() < kMostPorts;
  if (answer.port != 0 && usable) said.ports[answer.port] = now;
  said.by_version[version] = {usable ? answer : Answer{0, Errc::remote_unavailable}, now};
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
