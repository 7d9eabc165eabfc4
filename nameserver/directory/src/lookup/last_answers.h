// What etcd has last said of the names that were looked up: for the time in which etcd does not answer.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "etcd/published_name.h"

namespace lrpc::directory {

/// Bounded: kMostNames names, of which those that were not stored for longest give way. Time is passed in. Not
/// thread-safe.
class LastAnswers {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kMostNames = 1024;

  struct Answer {
    std::vector<PublishedName> hosts;
    std::chrono::milliseconds age{0};
  };

  /// `oldest`: older answers are not given. Zero: none is kept.
  explicit LastAnswers(std::chrono::milliseconds oldest) noexcept : oldest_(oldest) {}

  /// Replaces what is known of `name`. No hosts: forgets it, so that a withdrawn name does not come back.
  void store(const std::string& name, std::vector<PublishedName> hosts, Time now);
  [[nodiscard]] std::optional<Answer> find(const std::string& name, Time now) const;
  [[nodiscard]] std::size_t size() const noexcept { return names_.size(); }

 private:
  struct Entry {
    std::vector<PublishedName> hosts;
    Time at;
    std::list<std::string>::iterator place;
  };
  const std::chrono::milliseconds oldest_;
  std::map<std::string, Entry> names_;
  std::list<std::string> order_;  ///< The one stored last is the last.
};

}  // namespace lrpc::directory
