// When a remote binding ends because its server's host says nothing any more. One rule for all bindings to a host,
// whether calls are under way or not: docs/NETD.md, "When the other host falls silent". Policy alone: the caller passes
// the time in, and acts.
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

  /// The longest pause between two questions while a host has not answered the last one. A binding may end this much
  /// later than `bound`.
  static constexpr Span kSuspectPause{1'000};

  /// `bound`: a host that has not answered for this time is over().
  explicit PeerSilence(Span bound) noexcept : bound_(bound) {}

  /// The host has answered. May throw std::bad_alloc for a new host.
  void heard(HostAddress host, Time now) { hosts_[host] = {now, false}; }
  /// The host has not answered a question in time.
  void missed(HostAddress host) noexcept {
    if (const auto found = hosts_.find(host); found != hosts_.end()) found->second.suspected = true;
  }
  /// Whether the host's bindings end. A host that has never answered has none. A host that has missed no question was
  /// not silent: this host did not run, and asked nothing.
  [[nodiscard]] bool over(HostAddress host, Time now) const noexcept {
    const auto found = hosts_.find(host);
    return found != hosts_.end() && found->second.suspected && now - found->second.heard >= bound_;
  }
  [[nodiscard]] bool suspected(HostAddress host) const noexcept {
    const auto found = hosts_.find(host);
    return found != hosts_.end() && found->second.suspected;
  }
  /// How long to wait for the answer to a question that is asked now: `usual`. If the last one was not answered: until
  /// the host is over(), at least `least` and at most `usual`.
  [[nodiscard]] Span patience(HostAddress host, Time now, Span usual, Span least) const noexcept {
    const auto found = hosts_.find(host);
    if (found == hosts_.end() || !found->second.suspected) return usual;
    const Span left = std::chrono::ceil<Span>(found->second.heard + bound_ - now);
    return std::max(std::min(usual, left), std::min(usual, least));
  }
  /// How long to wait before all hosts are asked again.
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
