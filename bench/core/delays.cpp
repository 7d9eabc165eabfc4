#include "delays.h"

#include <algorithm>
#include <vector>

#include "report/statistics.h"
#include "report/table.h"

namespace lrpc::bench {

std::string Delays::missed() const {
  // Not `> bar`: without delays the figures are NaN, and that must count as missed.
  MissedBars bars;
  bars.add(!(waited.median <= kMedianDelayBar), "median");
  bars.add(!(waited.max <= kWorstDelayBar), "worst");
  return bars.names();
}

Delays delays_of(std::span<const double> signed_ns) {
  std::vector<double> waited(signed_ns.begin(), signed_ns.end());
  for (double& ns : waited) ns = std::max(ns, 0.0);
  const auto before = std::ranges::count_if(signed_ns, [](double ns) { return ns < 0; });
  return {figures_of(waited), static_cast<std::uint64_t>(before)};
}

}  // namespace lrpc::bench
