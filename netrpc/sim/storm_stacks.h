// The stacks that storms are run over: graphs by name, or any other text.
#pragma once

#include <string_view>
#include <vector>

#include "lrpc/netrpc/graph.h"
#include "netrpc/sim/storm.h"

namespace lrpc::netrpc {

struct NamedStack {
  std::string_view name;
  std::string_view text;
};
/// "select-channel-fragment-vip" and so on. The texts name ETH and IP, as on a real wire.
[[nodiscard]] const std::vector<NamedStack>& storm_stacks();

/// Whether the stack of that name or text may execute a call several times, as StormOptions::repeats says.
[[nodiscard]] bool repeats_calls(std::string_view name_or_text);

/// How often the stack of that name or text sends a request that nobody answers, within `timeout`, before its protocol
/// has measured any round trip. Afterwards it sends more often.
[[nodiscard]] unsigned tries_of(std::string_view name_or_text, Duration timeout);

/// Every kind of protocol that can stand on simulated wires; ETH, IP and UDP are the simulated ones.
[[nodiscard]] ProtocolKinds simulated_kinds();

/// A stack from a name of storm_stacks() or from a graph's text, whose last instance is called by the storm. Errors:
/// those of GraphDescription::parse(); composing cannot be tried before there is a host, and ends the process if it
/// fails.
[[nodiscard]] Result<ComposeStack> stack_of(std::string_view name_or_text, const ProtocolKinds& kinds);

}  // namespace lrpc::netrpc
