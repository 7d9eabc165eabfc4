// When a remote binding ends because its server's host says nothing any more. One rule for all bindings to a host,
// whether calls are under way or not: docs/NETD.md, "When the other host falls silent". Policy alone: who asks it
// passes the time in, and acts.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>

#include "lrpc/netrpc/path/transport.h"

namespace lrpc::netpath {

class PeerSilence {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  using Span = std::chrono::milliseconds;

  /// Between two questions to hosts that have not answered the last one, at most: so much later than it must a binding
  /// may end.
  static constexpr Span kSuspectPause{1'000};

  /// `bound`: after so long without an answer it is over.
  explicit PeerSilence(Span bound) noexcept : bound_(bound) {}

  /// The host has answered. May throw std::bad_alloc for one that is new.
  void heard(HostAddress host, Time now) { hosts_[host] = {now, false}; }
  /// It has not answered a question in time.
  void missed(HostAddress host) noexcept {
    if (const auto found = hosts_.find(host); found != hosts_.end()) found->second.suspected = true;
  }
  /// Whether its bindings end. A host that has never been heard has none, and one that has missed no question was not
  /// silent: this host did not run, and has asked none.
  [[nodiscard]] bool over(HostAddress host, Time now) const noexcept {
    const auto found = hosts_.find(host);
    return found != hosts_.end() && found->second.suspected && now - found->second.heard >= bound_;
  }
  [[nodiscard]] bool suspected(HostAddress host) const noexcept {
    const auto found = hosts_.find(host);
    return found != hosts_.end() && found->second.suspected;
  }
  /// How long to wait for the answer to a question that is asked now: `usual`, or until it is over if the last one has
  /// not been answered.
  [[nodiscard]] Span patience(HostAddress host, Time now, Span usual, Span least) const noexcept {
    const auto found = hosts_.find(host);
    if (found == hosts_.end() || !found->second.suspected) return usual;
    const Span left = std::chrono::ceil<Span>(found->second.heard + bound_ - now);
    return std::max(std::min(usual, left), std::min(usual, least));
  }
  /// When to ask all hosts again.
  [[nodiscard]] Span pause(Span keepalive) const noexcept {
    const bool any = std::ranges::any_of(hosts_, [](const auto& one) { return one.second.suspected; });
    return any ? std::min(keepalive, kSuspectPause) : keepalive;
  }
  /// Forgets the hosts for which `used` is false.
  template <class Used>
  void keep(const Used& used) {
    std::erase_if(hosts_, [&](const auto& one) { return !used(one.first); });
  }

 private:
  struct Peer {
    Time heard;
    bool suspected = false;
  };
  const Span bound_;
  std::map<HostAddress, Peer> hosts_;
};

}  // namespace lrpc::netpath
