#include "netrpc/sim/storm_stacks.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "lrpc/netrpc/all_kinds.h"
#include "netrpc/protocols/channel/channel.h"
#include "netrpc/protocols/mrpc/protocol.h"
#include "netrpc/protocols/paired/paired.h"
#include "netrpc/protocols/request_reply/request_reply.h"
#include "netrpc/sim/devices.h"
#include "netrpc/src/round_trip.h"

namespace lrpc::netrpc {

const std::vector<NamedStack>& storm_stacks() {
  static const std::vector<NamedStack> stacks = {
      // RPC in the x-Kernel, Figure 3 (a).
      {"select-channel-fragment-vip", R"(
eth      = ETH;
ip       = IP;
vip      = VIP over eth, ip;
fragment = FRAGMENT over vip;
channel  = CHANNEL over fragment;
select   = SELECT over channel;
)"},
      // Figure 3 (b): small messages go past FRAGMENT.
      {"select-channel-vipsize", R"(
eth      = ETH;
ip       = IP;
vipaddr  = VIPADDR over eth, ip;
fragment = FRAGMENT over vipaddr;
vipsize  = VIPSIZE over vipaddr, fragment;
channel  = CHANNEL over vipsize;
select   = SELECT over channel;
)"},
      {"mrpc-vip", R"(
eth  = ETH;
ip   = IP;
vip  = VIP over eth, ip;
mrpc = M_RPC over vip;
)"},
      // The paired message protocol over UDP.
      {"select-paired-udp", R"(
udp    = UDP;
paired = PAIRED over udp;
select = SELECT over paired;
)"},
      // Sun RPC as on the real wire (RFC 5531), and in two other compositions (RPC in the x-Kernel, section 5): with
      // FRAGMENT in place of IP's fragments, and with CHANNEL in place of REQUEST_REPLY.
      {"sun-udp", R"(
udp   = UDP;
pairs = REQUEST_REPLY(initial_timeout = 100ms, longest_timeout = 1s) over udp;
call  = SUN_CALL over pairs;
auth  = AUTH_SYS(machine = sim, uid = 1, gid = 1) over call;
sun   = SUN_SELECT(program = 0x20000001) over auth;
)"},
      {"sun-fragment-ip", R"(
ip       = IP;
fragment = FRAGMENT over ip;
pairs    = REQUEST_REPLY(initial_timeout = 100ms, longest_timeout = 1s) over fragment;
call     = SUN_CALL over pairs;
auth     = AUTH_NONE over call;
sun      = SUN_SELECT(program = 0x20000001) over auth;
)"},
      {"sun-channel-fragment-ip", R"(
ip       = IP;
fragment = FRAGMENT over ip;
channel  = CHANNEL over fragment;
call     = SUN_CALL over channel;
sun      = SUN_SELECT(program = 0x20000001) over call;
)"},
      // Parts alone, to find the one at fault.
      {"select-channel-ip", R"(
ip      = IP;
channel = CHANNEL over ip;
select  = SELECT over channel;
)"},
      {"select-channel-fragment-ip", R"(
ip       = IP;
fragment = FRAGMENT over ip;
channel  = CHANNEL over fragment;
select   = SELECT over channel;
)"},
      {"mrpc-ip", R"(
ip   = IP;
mrpc = M_RPC over ip;
)"},
  };
  return stacks;
}

ProtocolKinds simulated_kinds() {
  ProtocolKinds kinds = layer_kinds();
  kinds.add(sim_ethernet_kind("ETH")).add(sim_ip_kind("IP")).add(sim_udp_kind("UDP"));
  return kinds;
}

namespace {

std::string_view text_of_stack(std::string_view name_or_text) {
  for (const NamedStack& stack : storm_stacks())
    if (stack.name == name_or_text) return stack.text;
  return name_or_text;
}

/// When a protocol retransmits its request.
struct Repeats {
  Duration first{};            ///< The pause after the first copy, before it has measured a round trip.
  Duration longest{};          ///< The pause is doubled up to this.
  unsigned step = 1;           ///< 1: doubled with every second copy; 2: with each.
  Duration give_up{};          ///< No copy after this time.
  std::uint64_t most = 1'000;  ///< No more copies than this.
};

/// nullopt: the protocol leaves that to a layer below.
std::optional<Repeats> repeats_of(const InstanceDescription& instance) {
  const Options& given = instance.options;
  if (instance.kind == "CHANNEL") {
    ChannelOptions channel;
    channel.give_up = given.duration("give_up", channel.give_up);
    return Repeats{.first = given.duration("initial_timeout", channel.initial_timeout),
                   .longest = channel.longest_pause(),
                   .give_up = channel.give_up};
  }
  if (instance.kind == "M_RPC")
    return Repeats{.first = mrpc::kFirstTimeoutOfFragments,
                   .longest = mrpc::kLongestTimeout,
                   .give_up = given.duration("give_up", mrpc::Settings().give_up)};
  if (instance.kind == "PAIRED") {
    const PairedOptions paired;
    // The reply must arrive, too, and a short one is retransmitted less often.
    return Repeats{.first = std::max(given.duration("initial_timeout", paired.initial_timeout),
                                     given.duration("reply_timeout", paired.reply_timeout)),
                   .longest = given.duration("longest_timeout", paired.longest_timeout),
                   .step = 2,
                   .give_up = Duration::max(),
                   .most = 1 + std::min<std::uint64_t>(given.number("max_retry", paired.max_retry), 1'000)};
  }
  if (instance.kind == "REQUEST_REPLY") {
    const RequestReplyOptions pairs;
    return Repeats{.first = given.duration("initial_timeout", pairs.initial_timeout),
                   .longest = given.duration("longest_timeout", pairs.longest_timeout),
                   .give_up = given.duration("give_up", pairs.give_up)};
  }
  return std::nullopt;
}

}  // namespace

bool repeats_calls(std::string_view name_or_text) {
  const auto parsed = GraphDescription::parse(text_of_stack(name_or_text), simulated_kinds());
  return parsed && !parsed->instances().empty() && parsed->instances().back().repeats;
}

unsigned tries_of(std::string_view name_or_text, Duration timeout) {
  const auto parsed = GraphDescription::parse(text_of_stack(name_or_text), simulated_kinds());
  if (!parsed) return StormOptions().tries;
  for (auto instance = parsed->instances().rbegin(); instance != parsed->instances().rend(); ++instance) {
    const std::optional<Repeats> repeats = repeats_of(*instance);
    if (!repeats) continue;
    unsigned copies = 0;
    const Duration until = std::min(timeout, repeats->give_up);
    for (Duration at{}; at < until && copies < repeats->most; ++copies)
      at += RetryTimer::pause_after(repeats->step * copies, repeats->first, repeats->longest);
    return copies;
  }
  return StormOptions().tries;
}

Result<ComposeStack> stack_of(std::string_view name_or_text, const ProtocolKinds& kinds) {
  Result<GraphDescription> parsed = GraphDescription::parse(text_of_stack(name_or_text), kinds);
  if (!parsed) return parsed.error();
  if (parsed->instances().empty()) return Error{Errc::invalid_argument, "the graph is empty"};
  if (parsed->instances().back().gives != Service::transaction)
    return Error{Errc::invalid_argument,
                 "the last instance of the graph must be one that can be called (CHANNEL, SELECT, M_RPC)"};
  const auto shared_kinds = std::make_shared<const ProtocolKinds>(kinds);
  const auto description = std::make_shared<const GraphDescription>(std::move(*parsed));
  return ComposeStack([shared_kinds, description](SimHost& host, std::vector<Protocol*>& all) -> Protocol& {
    Result<Graph> graph = Graph::compose(host.host(), *description, *shared_kinds);
    if (!graph) {
      std::fprintf(stderr, "cannot compose the stack: %s\n", graph.error().message().c_str());
      std::exit(2);
    }
    const auto kept = std::make_shared<Graph>(std::move(*graph));
    host.own(kept);
    for (auto it = kept->protocols().rbegin(); it != kept->protocols().rend(); ++it) all.push_back(it->get());
    return *all.front();
  });
}

}  // namespace lrpc::netrpc
