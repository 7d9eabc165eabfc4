// PAIRED: the paired message protocol (White, An RPC Protocol in the Berkeley UNIX Kernel; Cooper's Circus): request
// and reply at most once, in segments of a kilobyte, over UDP or any other datagram service (docs/PROTOCOLS.md).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

/// The paper gives no figure but the five minutes; the others are ours.
struct PairedOptions {
  /// How often a segment or a probe is sent again before the peer counts as gone. With the times below this lasts about
  /// six seconds, so that a pause or a short partition ends no call.
  unsigned max_retry = 14;
  Duration initial_timeout = std::chrono::milliseconds(50);  ///< Of the retransmission timer, before it has measured.
  Duration minimum_timeout = std::chrono::milliseconds(1);   ///< However short the round trip is.
  Duration longest_timeout = std::chrono::seconds(1);        ///< It is doubled with each retransmission, up to this.
  /// How long a reply of one segment waits for the next request, which acknowledges it, before it is sent again.
  Duration reply_timeout = std::chrono::milliseconds(500);
  Duration probe = std::chrono::milliseconds(500);   ///< The first interval between probes,
  Duration longest_probe = std::chrono::minutes(5);  ///< and the longest (§2.7).
  /// The no-activity timer (§2.7): state between calls is kept for at least this long, and for at most twice as long.
  /// It must be longer than a peer repeats a segment, and longer than twice the time that a packet can be under way.
  Duration no_activity = std::chrono::minutes(3);
  std::size_t sessions = 4096;           ///< Sessions of clients at the server: more are refused.
  std::size_t sessions_per_host = 1024;  ///< Of one host, at all its ports; it also leaves as many free for others.
  /// Bytes of buffers for incoming messages, and as many again for replies. One message may exceed either.
  std::size_t memory = std::size_t{16} << 20;
  std::size_t max_message = std::size_t{64} << 10;  ///< Bytes of a request or a reply.
  std::uint32_t first_call = 0;                     ///< The first call number, for tests; 0: random.
};

/// Makes a PAIRED over `below`, a datagram service. `open` with participants.remote.host (and remote.port, if the layer
/// below has ports) makes a client's channel. It carries one call at a time; a second one is completed with
/// limit_reached. A call that is cancelled or times out when its whole request has been sent keeps the channel busy
/// until the server has answered it or is gone.
[[nodiscard]] std::unique_ptr<Protocol> make_paired(Host& host, std::string name, Protocol& below,
                                                    const PairedOptions& options = {});
[[nodiscard]] ProtocolKind paired_kind();

}  // namespace lrpc::netrpc
