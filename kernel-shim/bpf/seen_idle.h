// What a reader of idle_processors.h makes of it from one look to the next, beside the kernel's list of the processors
// that are online. Pure.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "idle_processors.h"

namespace lrpc::shim {

/// One processor.
class SeenIdle {
 public:
  /// For how many nanoseconds it was idle since the look before; 0 if it was offline at one of the two. The last task
  /// of a processor that goes offline is the idle one: to the scheduler it is idle until it is back. Less than 0 if it
  /// became idle after `now` was read.
  std::int64_t look(std::uint64_t now, std::uint64_t state, bool online) noexcept {
    const std::uint64_t before = std::exchange(idle_ns_, idle_ns_until(now, state));
    const bool was_online = std::exchange(online_, online);
    return was_online && online ? static_cast<std::int64_t>((idle_ns_ - before) << 1) / 2 : 0;
  }

 private:
  std::uint64_t idle_ns_ = 0;  ///< Modulo 2^63.
  bool online_ = true;
};

/// Sets in `online`, which has an element for each processor, those of the kernel's list, such as "0-3,6". False: it is
/// no such list; then `online` is not to be used.
[[nodiscard]] inline bool parse_online(std::string_view list, std::vector<bool>& online) {
  online.assign(online.size(), false);
  const char* at = list.data();
  const char* const end = at + list.size();
  for (;; ++at) {
    std::size_t first = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc()) return false;
    std::size_t last = first;
    if (parsed.ptr != end && *parsed.ptr == '-') parsed = std::from_chars(parsed.ptr + 1, end, last);
    if (parsed.ec != std::errc()) return false;
    for (std::size_t one = first; one <= last && one < online.size(); ++one) online[one] = true;
    at = parsed.ptr;
    if (at == end || *at != ',') return at == end || *at == '\n';
  }
}

}  // namespace lrpc::shim
