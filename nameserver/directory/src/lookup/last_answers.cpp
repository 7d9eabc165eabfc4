#include "lookup/last_answers.h"

#include <algorithm>
#include <utility>

namespace lrpc::directory {

void LastAnswers::store(const std::string& name, std::vector<PublishedName> hosts, Time now) {
  names_.erase(name);
  if (hosts.empty() || oldest_.count() == 0) return;
  if (names_.size() >= kMostNames)
    names_.erase(std::ranges::min_element(names_, {}, [](const auto& one) { return one.second.at; }));
  names_.emplace(name, Entry{std::move(hosts), now});
}

std::optional<LastAnswers::Answer> LastAnswers::find(const std::string& name, Time now) const {
  const auto known = names_.find(name);
  if (known == names_.end()) return std::nullopt;
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - known->second.at);
  if (age > oldest_) return std::nullopt;
  return Answer{known->second.hosts, age};
}

}  // namespace lrpc::directory
