#include "readapt.h"

#include <algorithm>

#include "report/statistics.h"

namespace lrpc::bench {

double steady_state(const Phase& phase) {
  return median(phase.window_medians.subspan(phase.window_medians.size() / 2));
}

std::optional<std::uint64_t> calls_to_readapt(const Phase& phase) {
  const auto& windows = phase.window_medians;
  const double limit = steady_state(phase) * kReadaptedWithin;
  for (std::size_t first = 0; first < windows.size(); ++first) {
    if (windows[first] > limit) continue;
    if (median(windows.subspan(first, std::min(kSettled, windows.size() - first))) <= limit)
      return first * phase.calls_per_window;
  }
  return std::nullopt;
}

}  // namespace lrpc::bench
