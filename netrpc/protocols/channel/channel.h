// CHANNEL: request and reply with at-most-once semantics over any datagram service (RPC in the x-Kernel §3.2). The
// state machines are in docs/PROTOCOLS.md.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

struct ChannelOptions {
  /// Without a sign of life from the peer: the call has failed. At most half of packet_life, and at no host longer
  /// than at those that serve it: they remember a channel for 2 packet_life + give_up.
  Duration give_up = std::chrono::seconds(5);
  Duration packet_life = std::chrono::seconds(60);  ///< The longest that a packet can be under way.
  Duration reply_life = std::chrono::seconds(15);   ///< How long a reply that nobody acknowledges is kept.
  Duration initial_timeout =
      std::chrono::milliseconds(50);  ///< Before the first round trip to a peer has been measured.
  Duration minimum_timeout =
      std::chrono::microseconds(30);     ///< However short the round trip is, while packets are lost.
  std::size_t channels_per_peer = 1024;  ///< At the server: more are refused.
  std::size_t peers = 4096;              ///< At the server: more are refused.
  /// Bytes of buffers with replies that are kept, to all peers together. Those to one take no more than they leave free
  /// for others.
  std::size_t memory = std::size_t{16} << 20;
  std::size_t max_message = 0;       ///< Bytes of data in a message; zero: what the layer below can deliver.
  std::uint64_t first_sequence = 1;  ///< For tests of the wrap-around.

  /// Between two packets to a peer that does not answer, at most: so that several tries may be lost before it is given
  /// up, and so soon it is heard when it is there again.
  [[nodiscard]] Duration longest_pause() const noexcept {
    return std::min<Duration>(give_up / 5, std::chrono::seconds(1));
  }
};

/// A CHANNEL over `below`, a datagram service. Sessions: `open` with participants.remote.host (and remote.channel, if
/// it is to be a certain one) gives a client's channel, which carries one call at a time; a second one is completed
/// with limit_reached. A call that was cancelled or whose timeout has passed keeps the channel busy until the server
/// has answered it, so that a server never works on two requests of one channel.
[[nodiscard]] std::unique_ptr<Protocol> make_channel(Host& host, std::string name, Protocol& below,
                                                     const ChannelOptions& options = {});
[[nodiscard]] ProtocolKind channel_kind();

}  // namespace lrpc::netrpc
