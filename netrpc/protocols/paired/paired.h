// PAIRED: the paired message protocol (White, An RPC Protocol in the Berkeley UNIX Kernel; Cooper's Circus): request
// and reply at most once, in segments of a kilobyte, over UDP or any other datagram service (docs/PROTOCOLS.md).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

/// The paper names no figures but the five minutes; the others are ours.
struct PairedOptions {
  /// Times that a segment or a probe is sent again before the peer counts as gone: with the times below about six
  /// seconds, so that a pause or a short partition ends nothing.
  unsigned max_retry = 14;
  Duration initial_timeout = std::chrono::milliseconds(50);  ///< Of the retransmission timer, before it has measured.
  Duration minimum_timeout = std::chrono::milliseconds(1);   ///< However short the round trip is.
  Duration longest_timeout = std::chrono::seconds(1);        ///< It is doubled with each retransmission, up to this.
  Duration reply_timeout = std::chrono::milliseconds(500);   ///< Of a reply in one segment: the next request may come.
  Duration probe = std::chrono::milliseconds(500);           ///< The first interval between probes,
  Duration longest_probe = std::chrono::minutes(5);          ///< and the longest (§2.7).
  /// The no-activity timer (§2.7): state between calls is kept for at least this long, and for at most twice as long.
  /// Longer than a peer sends again, and twice the longest that a packet can be under way.
  Duration no_activity = std::chrono::minutes(3);
  std::size_t sessions = 4096;           ///< Of clients, at the server: more are refused.
  std::size_t sessions_per_host = 1024;  ///< Of one host, at whichever ports; it leaves as many free for others.
  /// Bytes of buffers for messages that are being received, and as many again for replies. Both may be exceeded by one
  /// message.
  std::size_t memory = std::size_t{16} << 20;
  std::size_t max_message = std::size_t{64} << 10;  ///< Bytes of a request or a reply.
  std::uint32_t first_call = 0;                     ///< The first call number, for tests; 0: drawn.
};

/// A PAIRED over `below`, a datagram service. Sessions: `open` with participants.remote.host (and remote.port, where
/// the layer below has ports) gives a client's channel, which carries one call at a time; a second one is completed
/// with limit_reached. A call that was cancelled, or whose timeout has passed, when all of its request had been sent
/// keeps the channel busy until the server has answered it or is gone.
[[nodiscard]] std::unique_ptr<Protocol> make_paired(Host& host, std::string name, Protocol& below,
                                                    const PairedOptions& options = {});
[[nodiscard]] ProtocolKind paired_kind();

}  // namespace lrpc::netrpc
