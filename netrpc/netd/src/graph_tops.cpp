#include "graph_tops.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "lrpc/netrpc/user/user_object.h"
#include "netrpc/protocols/group/group.h"

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

/// What calls between lrpc-netds need of an instance.
Status fit_for_calls(const InstanceDescription& one) {
  if (one.many_ports)
    return wrong(
        fmt::format("'{}' has peers at any port, and lrpc-netd does not tell two ports of one host apart: put AUTH "
                    "over the UDP, or "
                    "take 'peer_ports = any' out",
                    one.name));
  if (one.repeats)
    return wrong(fmt::format(
        "'{}' may execute a call several times, and lrpc-netd promises at most once: use CHANNEL, PAIRED or M_RPC in "
        "the place of REQUEST_REPLY, and UNIQUE in a composition",
        one.name));
  return {};
}

const InstanceDescription& find(const std::vector<InstanceDescription>& instances, const std::string& name) {
  return *std::ranges::find(instances, name, &InstanceDescription::name);
}

/// Checks that the members can form a group, and that it stands on a composition, or SELECT over one, whose calls end.
Status fit_for_groups(const std::vector<InstanceDescription>& instances, const InstanceDescription& group) {
  if (const auto members = netrpc::group_members(group.options); !members)
    return wrong(fmt::format("{}: {}: {}", group.line, group.name, members.error().message()));  // as compose() has it
  const InstanceDescription& select = find(instances, group.below.front());
  const InstanceDescription& calls = select.kind == "SELECT" ? find(instances, select.below.front()) : select;
  if (calls.inside.empty())
    return wrong(fmt::format(
        "'{}' stands on '{}', which calls one host at a time: put it over SELECT over COMPOSITE {{ GRPC; SYNC; ... }}",
        group.name, select.name));
  const auto has = [&](std::string_view kind) {
    return std::ranges::find(calls.inside, kind, &netrpc::MicroDescription::kind) != calls.inside.end();
  };
  if (!has("BOUNDED") && !(has("ACK") && has("STILL_WORKING")))
    return wrong(fmt::format(
        "calls through '{}' may wait for a dead member for ever: add ACK and STILL_WORKING, or BOUNDED", calls.name));
  return fit_for_calls(group);
}

/// The AUTHs below an instance: they tell who has sent it a message.
std::set<std::string> auths_below(const std::vector<InstanceDescription>& instances, const InstanceDescription& top) {
  std::set<std::string> auths;
  for (const std::string& name : all_below(instances, top))
    if (find(instances, name).kind == "AUTH") auths.insert(name);
  return auths;
}

/// Checks that all USERs can be made, each exported under a name of its own.
Status fit_for_users(const std::vector<InstanceDescription>& instances) {
  std::set<std::string> names;
  for (const InstanceDescription& one : instances) {
    if (one.kind != "USER") continue;
    const auto options = netuser::user_options(one.options);
    if (!options) return wrong(fmt::format("{}: {}: {}", one.line, one.name, options.error().message()));
    if (!names.insert(options->name).second)
      return wrong(fmt::format("{}: {}: another USER has the name '{}'", one.line, one.name, options->name));
  }
  return {};
}

/// `tops.sun` is filled, the last of the graph first.
Status choose_for_sun(GraphTops& tops, const SunUse& sun) {
  if (sun.served && tops.sun.empty())
    return wrong("no instance is a SUN_SELECT, which Sun RPC programs could be served through");
  const auto choose = [&](bool wanted, bool SunTop::*stands_on, std::string& chosen) {
    const auto found = std::ranges::find_if(tops.sun, [&](const SunTop& top) { return top.calls && top.*stands_on; });
    if (wanted && found != tops.sun.end()) chosen = found->name;
    return !wanted || found != tops.sun.end();
  };
  if (!choose(sun.by_udp, &SunTop::udp, tops.sun_udp))
    return wrong(
        "no instance is a SUN_SELECT over UDP(peer_ports = any), which Sun RPC programs could be called through");
  if (!choose(sun.by_tcp, &SunTop::tcp, tops.sun_tcp))
    return wrong("no instance is a SUN_SELECT over TCP, which Sun RPC programs could be called through");
  return {};
}

}  // namespace

Result<GraphTops> choose_tops(const netrpc::GraphDescription& graph, std::string_view service, const SunUse& sun) {
  GraphTops tops{std::string(service), {}, {}, {}, {}};
  const auto& instances = graph.instances();
  if (Status fit = fit_for_users(instances); !fit) return fit.error();
  std::set<std::string, std::less<>> of_sun;
  for (auto one = instances.rbegin(); sun.any() && one != instances.rend(); ++one) {
    if (one->kind != "SUN_SELECT") continue;
    const auto below = all_below(instances, *one);
    const auto stands_on = [&](std::string_view kind) {
      return std::ranges::any_of(
          instances, [&](const InstanceDescription& it) { return it.kind == kind && below.contains(it.name); });
    };
    tops.sun.push_back({one->name, stands_on("UDP"), stands_on("TCP"), one->many_ports});
    of_sun.insert(one->name);
    of_sun.insert(below.begin(), below.end());
  }
  // Calls to single hosts go through what a GROUP stands on only if there is nothing else.
  std::set<std::string, std::less<>> of_groups;
  for (const InstanceDescription& one : instances) {
    if (one.kind != "GROUP") continue;
    if (Status fit = fit_for_groups(instances, one); !fit) return fit.error();
    tops.groups.push_back(one.name);
    of_groups.merge(all_below(instances, one));
  }
  std::string for_both;
  for (const InstanceDescription& one : instances) {
    const bool fits = one.gives == netrpc::Service::transaction && one.kind != "GROUP" && !of_sun.contains(one.name);
    if (service.empty() && fits) (of_groups.contains(one.name) ? for_both : tops.calls) = one.name;
  }
  if (tops.calls.empty()) tops.calls = for_both;
  if (Status fit = choose_for_sun(tops, sun); !fit) return fit.error();
  const auto found = std::ranges::find(instances, tops.calls, &InstanceDescription::name);
  if (found == instances.end() || found->gives != netrpc::Service::transaction)
    return wrong(fmt::format("no instance{} gives a transaction service, such as SELECT, which calls could go through",
                             tops.calls.empty() ? "" : " '" + tops.calls + "'"));
  if (Status fit = fit_for_calls(*found); !fit) return fit.error();
  // A member finds a client's bindings by the principal that has bound them.
  for (const std::string& group : tops.groups)
    if (auths_below(instances, find(instances, group)) != auths_below(instances, *found))
      return wrong(fmt::format("'{}' and '{}' do not stand on the same AUTH: members would take the client for two",
                               group, found->name));
  return tops;
}

}  // namespace lrpc::netd
