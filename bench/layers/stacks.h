// The protocol stacks that the papers compare, as graphs (RPC in the x-Kernel, Figures 2 and 3, Tables I to III).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "lrpc/netrpc/graph.h"

namespace lrpc::bench {

/// The paper's figures, from two Sun 3/75 on a 10 Mbit/s Ethernet.
struct PaperStack {
  std::optional<double> latency_ms;
  std::optional<double> throughput_kbytes;     ///< Per second, with messages of 16 k.
  std::optional<double> incremental_ms_per_k;  ///< For each further 1 k of a message.
};

struct Stack {
  std::string_view name;   ///< As in the paper: M_RPC-ETH.
  std::string_view graph;  ///< `top` is the protocol that is measured. ETH and IP are the devices, real or simulated.
  netrpc::Service service = netrpc::Service::transaction;
  PaperStack paper = {};
  std::uint16_t port = 0;  ///< The server's, for stacks whose clients need one; 0: none.
  /// Appended to the server's graph; contains the USER `user`, so that the server is a process beside its graph. Only
  /// for real wires.
  std::string_view at_server = {};
};

/// The stack of that name. Precondition: there is one.
[[nodiscard]] const Stack& stack(std::string_view name);
[[nodiscard]] std::span<const Stack> all_stacks();

}  // namespace lrpc::bench
