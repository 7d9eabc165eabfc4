// How many of a storm's calls may fail, so that a storm in which every call fails does not pass. Policy alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "netrpc/sim/storm.h"

namespace lrpc::netrpc::storm {

/// The share of the calls that may end without an answer (those whose caller has crashed are not counted), from 0 to 1.
/// At 1 nothing is checked. Three parts:
///   - The network. A call fails when each of its tries is lost, of which the stack makes `tries`. A try crosses one
///     wire each way, or three between segments. What is cut off by a partition, or comes too late to be of use, is
///     lost, too.
///   - Large messages. A protocol that cannot ask for single packets sends six of them at each try, on the average. One
///     call in seven has such a message, if they may be that large.
///   - Crashes. A crash fails the calls that are under way to that host: `at_once` of each host that calls it, of which
///     there are `peers` on the average. No more: a caller that waits for a host that is down calls no other meanwhile.
/// Three standard deviations are added, for chance.
[[nodiscard]] inline double most_failing(const StormOptions& options, std::uint64_t crashes) noexcept {
  constexpr double kPackets = 6;
  constexpr std::size_t kOnePacket = 1400;
  const double large = options.largest > kOnePacket ? 1.0 / 7 : 0;
  constexpr Duration kTooLate = std::chrono::milliseconds(100);
  const SimLink& link = options.link;
  const double lost = std::min(1.0, link.loss + link.corrupt + (link.reorder_delay > kTooLate ? link.reorder : 0));
  // Partitions last half of the longest time on the average, and separate two hosts of three at most.
  const FaultOptions& faults = options.faults;
  const double length = static_cast<double>(faults.longest_partition.count()) / 2;
  const double every = static_cast<double>(faults.partition_every.count());
  const double cut = every > 0 ? 2.0 / 3 * length / (length + every) : 0;
  const auto all_lost = [&](double wires, double packets) {
    const double arrives = std::pow(1 - lost, wires * (packets + 1)) * (1 - cut);
    return std::pow(1 - arrives, options.tries);
  };
  const auto of_network = [&](double wires) {
    return (1 - large) * all_lost(wires, 1) + large * all_lost(wires, kPackets);
  };
  const double near = 1.0 / options.segments;
  const double network = near * of_network(1) + (1 - near) * of_network(3);
  const auto calls = static_cast<double>(options.calls);
  const double crashed = static_cast<double>(crashes) * options.peers * options.at_once / calls;
  const double mean = std::min(1.0, network + crashed + options.refused);
  return std::min(1.0, mean + 3 * std::sqrt((mean * (1 - mean) + 1 / calls) / calls));
}

}  // namespace lrpc::netrpc::storm
