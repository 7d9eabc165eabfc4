// The protocol stacks that the paper compares, as graphs (RPC in the x-Kernel, Figures 2 and 3, Tables I to III).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "lrpc/netrpc/graph.h"

namespace lrpc::bench {

/// What the paper measured: milliseconds on two Sun 3/75 and a 10 Mbit/s Ethernet.
struct PaperStack {
  std::optional<double> latency_ms;
  std::optional<double> throughput_kbytes;     ///< Per second, with messages of 16 k.
  std::optional<double> incremental_ms_per_k;  ///< For each further 1 k of a message.
};

struct Stack {
  std::string_view name;   ///< The paper's: M_RPC-ETH.
  std::string_view graph;  ///< `top` is what is measured. ETH and IP are the devices, real or simulated.
  netrpc::Service service = netrpc::Service::transaction;
  PaperStack paper = {};
  std::uint16_t port = 0;  ///< Where the server is, for stacks whose peers have any port.
  /// More of the server's graph, which has the USER `user`: the server is a process beside its graph. Real wires only.
  std::string_view at_server = {};
};

/// The stack of that name. Precondition: there is one.
[[nodiscard]] const Stack& stack(std::string_view name);
[[nodiscard]] std::span<const Stack> all_stacks();

}  // namespace lrpc::bench
