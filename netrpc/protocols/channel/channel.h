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
  /// A call fails when the peer has given no sign of life for this long. At most half of packet_life. A client's must
  /// not be longer than its servers': they remember a channel for 2 packet_life + their own give_up.
  Duration give_up = std::chrono::seconds(5);
  Duration packet_life = std::chrono::seconds(60);  ///< The longest that a packet can be under way.
  Duration reply_life = std::chrono::seconds(15);   ///< How long a reply that nobody acknowledges is kept.
  Duration initial_timeout =
      std::chrono::milliseconds(50);  ///< Before the first round trip to a peer has been measured.
  Duration minimum_timeout =
      std::chrono::microseconds(30);     ///< The timeout's floor while packets are lost, however short the round trip.
  std::size_t channels_per_peer = 1024;  ///< At the server: more are refused.
  std::size_t peers = 4096;              ///< At the server: more are refused.
  /// Bytes of buffers of kept replies, for all peers together. The replies to one peer may take at most as much as they
  /// leave free for others.
  std::size_t memory = std::size_t{16} << 20;
  std::size_t max_message = 0;       ///< Bytes of data in a message; zero: what the layer below can deliver.
  std::uint64_t first_sequence = 1;  ///< For tests of the wrap-around.

  /// The longest pause between two packets to a peer that does not answer. It is short enough that several packets may
  /// be lost before the peer is given up, and that a peer that comes back is heard soon.
  [[nodiscard]] Duration longest_pause() const noexcept {
    return std::min<Duration>(give_up / 5, std::chrono::seconds(1));
  }
};

/// Makes a CHANNEL over `below`, a datagram service. `open` with participants.remote.host (and remote.channel, for a
/// certain channel) makes a client's channel. It carries one call at a time; a second one is completed with
/// limit_reached. A call that was cancelled or whose timeout has passed keeps the channel busy until the server has
/// answered it or is given up, so that a server never works on two requests of one channel.
[[nodiscard]] std::unique_ptr<Protocol> make_channel(Host& host, std::string name, Protocol& below,
                                                     const ChannelOptions& options = {});
[[nodiscard]] ProtocolKind channel_kind();

}  // namespace lrpc::netrpc
