#include "graph_tops.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

namespace lrpc::netd {
namespace {

using netrpc::InstanceDescription;

/// What stands below an instance, at whatever depth. What an instance stands on is defined above it.
std::set<std::string, std::less<>> all_below(const std::vector<InstanceDescription>& instances,
                                             const InstanceDescription& top) {
  std::set<std::string, std::less<>> below(top.below.begin(), top.below.end());
  for (auto one = instances.rbegin(); one != instances.rend(); ++one)
    if (below.contains(one->name)) below.insert(one->below.begin(), one->below.end());
  return below;
}

Error wrong(std::string why) { return {Errc::invalid_argument, std::move(why)}; }

}  // namespace

Result<GraphTops> choose_tops(const netrpc::GraphDescription& graph, std::string_view service, bool sun) {
  GraphTops tops{std::string(service), {}};
  const auto& instances = graph.instances();
  std::set<std::string, std::less<>> of_sun;
  for (auto one = instances.rbegin(); sun && one != instances.rend(); ++one) {
    if (one->kind != "SUN_SELECT") continue;
    const auto below = all_below(instances, *one);
    const auto stands_on = [&](std::string_view kind) {
      return std::ranges::any_of(
          instances, [&](const InstanceDescription& it) { return it.kind == kind && below.contains(it.name); });
    };
    tops.sun.push_back({one->name, stands_on("UDP"), stands_on("TCP")});
    of_sun.insert(one->name);
    of_sun.insert(below.begin(), below.end());
  }
  for (const InstanceDescription& one : instances)
    if (service.empty() && one.gives == netrpc::Service::transaction && !of_sun.contains(one.name))
      tops.calls = one.name;
  if (sun && tops.sun.empty())
    return wrong("no instance is a SUN_SELECT, which Sun RPC programs could be served through");
  const auto found = std::ranges::find(instances, tops.calls, &InstanceDescription::name);
  if (found == instances.end() || found->gives != netrpc::Service::transaction)
    return wrong(fmt::format("no instance{} gives a transaction service, such as SELECT, which calls could go through",
                             tops.calls.empty() ? "" : " '" + tops.calls + "'"));
  if (found->many_ports)
    return wrong(fmt::format(
        "'{}' has peers at any port, and lrpc-netd does not tell two ports of one host apart: take 'peer_ports = any' "
        "out",
        tops.calls));
  if (found->repeats)
    return wrong(fmt::format(
        "'{}' may execute a call several times, and lrpc-netd promises at most once: use CHANNEL, PAIRED or M_RPC in "
        "the place of REQUEST_REPLY",
        tops.calls));
  return tops;
}

}  // namespace lrpc::netd
