// In which order the hosts of a name are tried: pure. This machine first, because a local call costs a hundredth and a
// try that fails costs nothing; the others by chance, so that clients spread over them; those that were not reached
// lately last.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <random>
#include <utility>
#include <vector>

#include "etcd/published_name.h"

namespace lrpc::directory {

/// Which hosts a user's clients did not reach lately. A user's reports count for that user alone: nobody can turn
/// others away from a host. Bounded; the oldest report of the user that has the most gives way, so that nobody can make
/// others' forgotten. Not thread-safe. Work: a few passes over at most kMost reports.
class Suspects {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kMost = 1024;
  /// After that a host is tried like any other again. As long as etcd keeps the names of a dead host by default.
  static constexpr std::chrono::seconds kMemory{30};

  void report(unsigned user, Host host, bool reached, Time now);
  [[nodiscard]] bool is_suspect(unsigned user, Host host, Time now) const;

 private:
  struct Report {
    unsigned user;
    Host host;
    Time at;
  };
  void drop_one();
  std::list<Report> reports_;  ///< The oldest first.
};

/// At most `most` of `hosts`, in the order in which they are to be tried. `own`: this machine's address, 0: not known.
[[nodiscard]] std::vector<Host> pick(std::vector<Host> hosts, Host own, unsigned user, const Suspects& suspects,
                                     Suspects::Time now, std::mt19937_64& chance, std::size_t most);

}  // namespace lrpc::directory
