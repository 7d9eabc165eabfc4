#include "lookup/last_answers.h"

#include <utility>

namespace lrpc::directory {

void LastAnswers::store(const std::string& name, std::vector<PublishedName> hosts, Time now) {
  if (const auto known = names_.find(name); known != names_.end()) {
    order_.erase(known->second.place);
    names_.erase(known);
  }
  if (hosts.empty() || oldest_.count() == 0) return;
  if (names_.size() >= kMostNames) {
    names_.erase(order_.front());
    order_.pop_front();
  }
  order_.push_back(name);
  names_.emplace(name, Entry{std::move(hosts), now, std::prev(order_.end())});
}

std::optional<LastAnswers::Answer> LastAnswers::find(const std::string& name, Time now) const {
  const auto known = names_.find(name);
  if (known == names_.end()) return std::nullopt;
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - known->second.at);
  if (age > oldest_) return std::nullopt;
  return Answer{known->second.hosts, age};
}

}  // namespace lrpc::directory
