// What is to be said to etcd next, so that it has this host's names under a lease: a pure state machine. Time, chance
// and what has become of each step are passed in.
//
//   no lease --grant--> lease: keep_alive each third of its time; remove and put what differs, in turn; audit now and
//                       then
//   lease lost (etcd says so) --> no lease, all names are to be put again
//   any failure --> wait, longer each time, then the same again; half of it, if etcd does not take the request
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "etcd/etcd_messages.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::directory {

/// Not thread-safe. Work of each call: at most one pass over the names wanted and one over those published.
class PublisherPolicy {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Names = std::map<std::string, std::string>;  ///< Key and value in etcd.

  struct Settings {
    /// How long etcd keeps the names of a host that says nothing. As long as lrpc-netd bears a silent host.
    std::chrono::seconds ttl{30};
    /// After the first failure, and at most: a thousand hosts that lost etcd together come back over some ten seconds.
    /// While there is a lease, at most a third of its time.
    std::chrono::milliseconds first_pause{200};
    std::chrono::milliseconds longest_pause{10'000};
    /// While lrpcd or lrpc-netd is away for less than this, its names stay, and for so long afterwards: servers export
    /// theirs again one after the other, within some 2 s.
    std::chrono::milliseconds grace{5'000};
    /// Each so many keep-alives the keys under the lease are counted: somebody may have removed some.
    unsigned keep_alives_an_audit = 4;
  };

  enum class What : std::uint8_t { wait, grant, keep_alive, audit, put, remove };
  struct Step {
    What what = What::wait;
    LeaseId lease = 0;
    std::vector<KeyValue> entries{};  ///< Of put and remove: at most kMostOperations. Of remove: without values.
    Time until{};                     ///< Of wait: until then, or until something is passed in.
  };

  explicit PublisherPolicy(Settings settings) : settings_(settings) {}

  [[nodiscard]] Step next(Time now) const;

  /// What this host exports to the network now.
  void wanted(Names names);
  /// It cannot be told, because lrpcd or lrpc-netd does not answer.
  void not_told(Time now);

  // What a step has come to.
  void granted(const Lease& lease, Time now);
  void kept(const Lease& lease, Time now);
  void audited(std::size_t attached, Time now);
  void put_or_removed(const Step& step);
  /// `chance` from 0 to 1: hosts that failed at the same time are not to come back at the same time.
  void failed(const Step& step, Errc why, Time now, double chance);

  [[nodiscard]] LeaseId lease() const noexcept { return lease_; }
  /// Names that etcd has, as far as is known.
  [[nodiscard]] std::size_t published() const noexcept { return published_.size(); }
  /// Everything wanted is there, and nothing else.
  [[nodiscard]] bool settled() const { return published_ == wanted_; }

 private:
  void lose_lease();
  [[nodiscard]] std::chrono::milliseconds third() const;
  [[nodiscard]] Step next_removal() const;
  [[nodiscard]] Step next_put() const;

  const Settings settings_;
  Names wanted_;
  Names published_;  ///< Under the lease. An empty value: what etcd has there is not known.
  LeaseId lease_ = 0;
  /// Names in one transaction. Half as many after etcd has not taken one: its --max-txn-ops may be lower than usual.
  std::size_t most_ = kMostOperations;
  std::chrono::seconds ttl_{0};  ///< As etcd has granted it.
  Time keep_at_{};
  Time retry_at_{};
  Time silent_since_{};  ///< Of lrpcd or lrpc-netd; Time(): they answer.
  Time stay_until_{};    ///< Nothing is removed before: a server may be late to export again.
  /// A removal has succeeded since the last put. Only then, or where nothing is to be removed, comes a put: so names
  /// that may be in etcd do not pile up while etcd refuses to remove some.
  bool puts_turn_ = false;
  /// The next transaction begins behind these keys: names that change again and again do not go before others.
  std::string last_put_, last_removed_;
  unsigned failures_ = 0;
  unsigned kept_ = 0;  ///< Since the last audit.
};

}  // namespace lrpc::directory
