// Every kind of protocol that this library has: what a graph may name.
#pragma once

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

/// The kinds that stand on other protocols: all but the devices.
[[nodiscard]] ProtocolKinds layer_kinds();
/// Those and the devices of a real host. To run the same graphs on simulated wires, add sim_ethernet_kind("ETH"),
/// sim_ip_kind("IP") and sim_udp_kind("UDP") in their place.
[[nodiscard]] ProtocolKinds all_kinds();

}  // namespace lrpc::netrpc
