// FRAGMENT: large messages over any datagram protocol (RPC in the x-Kernel §3.2). Unreliable but persistent: a receiver
// asks for the fragments it misses, nobody ever acknowledges. Stands alone: any protocol that sends large messages may
// use it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "lrpc/netrpc/clock.h"
#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc {

struct FragmentOptions {
  std::size_t fragments = 16;                      ///< Of one message at most: 1 to 16, the bits of frag_mask.
  std::size_t fragment_size = 0;                   ///< Bytes of data in one; 0: what the protocol below carries uncut.
  std::size_t saved = 32;                          ///< Messages kept for each session, in case a fragment is asked for.
  std::size_t saved_bytes = std::size_t{8} << 20;  ///< Bytes of buffers kept by all sessions together.
  std::size_t reassemblies = 16;                   ///< Incomplete messages of one peer and protocol.
  std::size_t all_reassemblies = 256;              ///< Incomplete messages of all peers together.
  /// Bytes of the buffers of all incomplete messages together. Each session has its fair share, or one message.
  std::size_t incomplete_bytes = std::size_t{8} << 20;
  unsigned requests = 20;                    ///< Requests in vain until a message is given up.
  std::size_t sessions = 4096;               ///< Sessions at once.
  Duration idle = std::chrono::seconds(60);  ///< After which an unused session is dropped.
};

/// Makes FRAGMENT over `lower`, a datagram protocol that outlives it. Errors: invalid_argument (the text says which
/// option).
Result<std::unique_ptr<Protocol>> make_fragment(Host& host, std::string name, Protocol& lower,
                                                const FragmentOptions& options = {});

/// FRAGMENT over any datagram protocol.
ProtocolKind fragment_kind();

}  // namespace lrpc::netrpc
