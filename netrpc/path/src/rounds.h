// The rounds of the broker's own threads: over all hosts to which paths lead.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <new>
#include <thread>
#include <vector>

namespace lrpc::netpath {

/// Hosts to which one of the broker's own threads and its helpers speak at once: these, or a sixteenth of more hosts.
inline constexpr std::size_t kHostsAtOnce = 16;
inline constexpr std::size_t kMostHostsAtOnce = 256;
[[nodiscard]] constexpr std::size_t hosts_at_once(std::size_t count) noexcept {
  return std::clamp(count / kHostsAtOnce, kHostsAtOnce, kMostHostsAtOnce);
}
/// Longer than the round trip to any live host but one behind a satellite.
inline constexpr std::chrono::milliseconds kLeastPatience{500};

/// Runs one(i) for every number below `count`, several at a time, so that a host that does not answer does not delay
/// the others. One for which there is no memory is left out.
template <class F>
void for_each_host(std::size_t count, const F& one) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      try {
        one(i);
      } catch (const std::bad_alloc&) {
      }
    }
  };
  std::vector<std::jthread> helpers;
  try {
    while (helpers.size() + 1 < std::min(count, hosts_at_once(count))) helpers.emplace_back(work);
  } catch (const std::exception&) {  // no more threads, or no memory for them: fewer do
  }
  work();
}

/// How long to wait for a host's answer, at most `most`. A round over that many hosts takes no longer than a keepalive
/// (with the default of 10 s, up to 5,000 hosts), even if none of them answers.
inline std::chrono::milliseconds patience(std::chrono::milliseconds most, std::chrono::milliseconds keepalive,
                                          std::size_t hosts) {
  const auto rounds = static_cast<std::chrono::milliseconds::rep>(hosts / hosts_at_once(hosts) + 1);
  return std::min(most, std::max(kLeastPatience, keepalive / rounds));
}

}  // namespace lrpc::netpath
