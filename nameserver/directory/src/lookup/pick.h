// The order in which a name's hosts are tried: pure. This machine first, because a local call costs a hundredth and a
// failed attempt costs nothing; the others in random order, which spreads clients over them; hosts that were recently
// not reached last.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <random>
#include <vector>

#include "etcd/published_name.h"

namespace lrpc::directory {

/// The hosts that a user's clients recently did not reach. A user's reports count for that user alone, so nobody can
/// turn others away from a host. Bounded: the oldest report of the user with the most reports is dropped, so nobody can
/// push out others' reports. Not thread-safe. Work: a few passes over at most kMost reports.
class Suspects {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kMost = 1024;
  /// After this time a host is tried like any other again. It equals the default time for which etcd keeps a dead
  /// host's names.
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
