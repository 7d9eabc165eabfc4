// Which instances of a graph the daemon uses itself.
#pragma once

#include <string>
#include <string_view>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netd {

struct GraphTops {
  std::string calls;  ///< Between lrpc-netds.
  std::string sun;    ///< Sun RPC programs are served through it; empty: none are.
};

/// `service`: the instance for calls; empty: the last that gives a transaction service, other than Sun RPC's and what
/// that stands on. `sun`: whether Sun RPC programs are served; through the last SUN_SELECT. Errors: invalid_argument
/// (there is none; or calls through it are not at most once, or not with one peer a host).
[[nodiscard]] Result<GraphTops> choose_tops(const netrpc::GraphDescription& graph, std::string_view service, bool sun);

}  // namespace lrpc::netd
