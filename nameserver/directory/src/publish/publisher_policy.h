// Decides what to request from etcd next, so that etcd has this host's names under a lease: a pure state machine. Time,
// chance and the outcome of each step are passed in.
//
//   no lease --grant--> lease: keep_alive each third of its time; remove and put what differs, in turn; audit now and
//                       then
//   lease lost (etcd says so) --> no lease; all names must be written again
//   any failure --> wait, longer each time, then retry; with half of the names, if etcd rejects the request
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "boot_clock.h"
#include "etcd/etcd_messages.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::directory {

/// Not thread-safe. Work of each call: at most one pass over the names wanted and one over those published.
class PublisherPolicy {
 public:
  using Time = BootClock::time_point;
  using Names = std::map<std::string, std::string>;  ///< Key and value in etcd.

  struct Settings {
    /// How long etcd keeps the names of a silent host. As long as lrpc-netd tolerates a silent host.
    std::chrono::seconds ttl{30};
    /// The pause after the first failure, and the longest one: a thousand hosts that lost etcd at the same time return
    /// over some ten seconds. While there is a lease, a pause is at most a third of its time.
    std::chrono::milliseconds first_pause{200};
    std::chrono::milliseconds longest_pause{10'000};
    /// If lrpcd or lrpc-netd is away for less than this, this host's names stay, and for as long after its return:
    /// servers export their names again one after the other, within some 2 s.
    std::chrono::milliseconds grace{5'000};
    /// After so many keep-alives the keys under the lease are counted: somebody may have removed some.
    unsigned keep_alives_an_audit = 4;
  };

  enum class What : std::uint8_t { wait, grant, keep_alive, audit, put, remove };
  struct Step {
    What what = What::wait;
    LeaseId lease = 0;
    std::vector<KeyValue> entries{};  ///< For put and remove: at most kMostOperations. For remove: without values.
    Time until{};                     ///< For wait: until then, or until something is passed in.
  };

  explicit PublisherPolicy(Settings settings) : settings_(settings) {}

  [[nodiscard]] Step next(Time now) const;

  /// What this host exports to the network now.
  void wanted(Names names);
  /// These names are unknown now, because lrpcd or lrpc-netd does not answer.
  void not_told(Time now);

  // The outcome of a step.
  void granted(const Lease& lease, Time now);
  void kept(const Lease& lease, Time now);
  void audited(std::size_t attached);
  void put_or_removed(const Step& step);
  /// `chance` from 0 to 1, so that hosts that failed at the same time do not retry at the same time.
  void failed(const Step& step, Errc why, Time now, double chance);

  [[nodiscard]] LeaseId lease() const noexcept { return lease_; }
  /// How many names etcd has, as far as is known.
  [[nodiscard]] std::size_t published() const noexcept { return published_.size(); }
  /// Etcd has all wanted names, and no others.
  [[nodiscard]] bool settled() const { return published_ == wanted_; }

 private:
  void lose_lease();
  [[nodiscard]] std::chrono::milliseconds third() const;
  template <class Wrong>
  [[nodiscard]] Step step_for(What what, const Names& names, const std::string& last, const Wrong& wrong) const;

  const Settings settings_;
  Names wanted_;
  Names published_;  ///< Under the lease. An empty value: it is unknown what etcd has there.
  LeaseId lease_ = 0;
  /// Names in one transaction. Halved when etcd rejects one: its --max-txn-ops may be lower than usual.
  std::size_t most_ = kMostOperations;
  std::chrono::seconds ttl_{0};  ///< As granted by etcd.
  Time keep_at_{};
  Time retry_at_{};
  Time silent_since_{};  ///< When lrpcd or lrpc-netd stopped answering; Time(): they answer.
  Time stay_until_{};    ///< Nothing is removed before: a server may be late to export again.
  /// A removal has succeeded since the last put. A put is made only then, or if nothing is to be removed: so names that
  /// may be in etcd do not accumulate while etcd refuses to remove some.
  bool puts_turn_ = false;
  /// The next transaction begins after these keys, so that names that change often do not delay others.
  std::string last_put_, last_removed_;
  unsigned failures_ = 0;
  unsigned kept_ = 0;  ///< Since the last audit.
};

}  // namespace lrpc::directory
