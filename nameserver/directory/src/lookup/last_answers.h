// etcd's last answers to lookups, for use while etcd does not answer.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "boot_clock.h"
#include "etcd/published_name.h"

namespace lrpc::directory {

/// Bounded: at most kMostNames names; the name stored longest ago is dropped first. Time is passed in. Not thread-safe.
class LastAnswers {
 public:
  using Time = BootClock::time_point;
  static constexpr std::size_t kMostNames = 1024;

  struct Answer {
    std::vector<PublishedName> hosts;
    std::chrono::milliseconds age{0};
  };

  /// `oldest`: older answers are not returned. Zero: none are kept.
  explicit LastAnswers(std::chrono::milliseconds oldest) noexcept : oldest_(oldest) {}
  LastAnswers(const LastAnswers&) = delete;
  LastAnswers& operator=(const LastAnswers&) = delete;

  /// Replaces what is known of `name`. No hosts: forgets the name, so that a withdrawn name is not found again. Work:
  /// logarithmic in the number of names.
  void store(const std::string& name, std::vector<PublishedName> hosts, Time now);
  [[nodiscard]] std::optional<Answer> find(const std::string& name, Time now) const;
  [[nodiscard]] std::size_t size() const noexcept { return names_.size(); }

 private:
  using ByAge = std::list<const std::string*>;
  struct Entry {
    std::vector<PublishedName> hosts;
    Time at;
    ByAge::iterator place;
  };
  void forget(const std::string& name) noexcept;

  const std::chrono::milliseconds oldest_;
  std::map<std::string, Entry> names_;
  ByAge by_age_;  ///< The keys of names_, the one stored longest ago first.
};

}  // namespace lrpc::directory
