#include "netrpc/protocols/channel/protocol.h"

namespace lrpc::netrpc {

std::unique_ptr<Protocol> make_channel(Host& host, std::string name, Protocol& below, const ChannelOptions& options) {
  return std::make_unique<channel::ChannelProtocol>(host, std::move(name), below, options);
}

ProtocolKind channel_kind() {
  ProtocolKind kind;
  kind.name = "CHANNEL";
  kind.summary = "request and reply, at most once";
  kind.gives = Service::transaction;
  kind.below = {{"the protocol that carries requests and replies", Service::datagram}};
  kind.options = {
      {"give_up", OptionType::duration,
       "without a sign of life from the peer a call has failed; at most half of packet_life; default 5s"},
      {"packet_life", OptionType::duration, "the longest that a packet can be under way; default 60s"},
      {"reply_life", OptionType::duration, "how long a reply that nobody acknowledges is kept; default 15s"},
      {"initial_timeout", OptionType::duration, "before the round trip has been measured; default 50ms", false, "1us"},
      {"minimum_timeout", OptionType::duration,
       "however short the round trip is, while packets are lost; default 30us"},
      {"channels_per_peer", OptionType::number, "at the server: more are refused; default 1024"},
      {"peers", OptionType::number, "at the server: more are refused; default 4096"},
      {"memory", OptionType::number, "bytes of replies that are kept to be sent again; default 16777216"},
      {"max_message", OptionType::number, "bytes of data in a message; default: what the layer below delivers"},
  };
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    ChannelOptions options;
    options.give_up = parts.options.duration("give_up", options.give_up);
    options.packet_life = parts.options.duration("packet_life", options.packet_life);
    options.reply_life = parts.options.duration("reply_life", options.reply_life);
    options.initial_timeout = parts.options.duration("initial_timeout", options.initial_timeout);
    options.minimum_timeout = parts.options.duration("minimum_timeout", options.minimum_timeout);
    options.channels_per_peer = parts.options.number("channels_per_peer", options.channels_per_peer);
    options.peers = parts.options.number("peers", options.peers);
    options.memory = parts.options.number("memory", options.memory);
    options.max_message = parts.options.number("max_message", options.max_message);
    for (const Duration time : {options.give_up, options.packet_life, options.reply_life})
      if (time < std::chrono::milliseconds(1)) return Error{Errc::invalid_argument, "the times must be at least 1ms"};
    if (options.give_up > options.packet_life / 2)
      return Error{Errc::invalid_argument, "give_up must be at most half of packet_life"};
    return make_channel(parts.host, parts.name, *parts.below.front(), options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
