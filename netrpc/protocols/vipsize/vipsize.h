// VIPsize: small messages go past the protocol that large ones need (RPC in the x-Kernel §4.3). No header: one test of
// a message's length.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "lrpc/netrpc/clock.h"
#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc {

struct VipSizeOptions {
  std::size_t sessions = 4096;               ///< At once, with those that peers make.
  Duration idle = std::chrono::seconds(60);  ///< After which an unused session is dropped.
};

/// Makes VIPsize over `small` (VIPaddr) and `large` (FRAGMENT), which outlive it. Errors: invalid_argument.
Result<std::unique_ptr<Protocol>> make_vipsize(Host& host, std::string name, Protocol& small, Protocol& large,
                                               const VipSizeOptions& options = {});

/// VIPSIZE over the protocol for small messages and the one for large ones.
ProtocolKind vipsize_kind();

}  // namespace lrpc::netrpc
