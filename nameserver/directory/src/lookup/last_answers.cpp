#include "lookup/last_answers.h"

#include <utility>

namespace lrpc::directory {

void LastAnswers::store(const std::string& name, std::vector<PublishedName> hosts, Time now) {
  forget(name);
  if (hosts.empty() || oldest_.count() == 0) return;
  if (names_.size() >= kMostNames) forget(*by_age_.front());
  ByAge place(1);
  place.front() = &names_.emplace(name, Entry{std::move(hosts), now, place.begin()}).first->first;
  by_age_.splice(by_age_.end(), place);
}

void LastAnswers::forget(const std::string& name) noexcept {
  const auto known = names_.find(name);
  if (known == names_.end()) return;
  by_age_.erase(known->second.place);
  names_.erase(known);
}

std::optional<LastAnswers::Answer> LastAnswers::find(const std::string& name, Time now) const {
  const auto known = names_.find(name);
  if (known == names_.end()) return std::nullopt;
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - known->second.at);
  if (age > oldest_) return std::nullopt;
  return Answer{known->second.hosts, age};
}

}  // namespace lrpc::directory
