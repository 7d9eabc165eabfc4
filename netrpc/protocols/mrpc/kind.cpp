#include "netrpc/protocols/mrpc/mrpc.h"

#include "netrpc/protocols/mrpc/protocol.h"

namespace lrpc::netrpc::mrpc {

namespace {

Result<std::unique_ptr<Protocol>> make(const InstanceParts& parts) {
  Settings settings;
  settings.channels = parts.options.number("channels", settings.channels);
  settings.queue = parts.options.number("queue", settings.queue);
  settings.give_up = parts.options.duration("give_up", settings.give_up);
  settings.packet_life = parts.options.duration("packet_life", settings.packet_life);
  settings.clients = parts.options.number("clients", settings.clients);
  settings.memory = parts.options.number("memory", settings.memory);
  settings.sequence = static_cast<std::uint32_t>(parts.options.number("sequence", 0));
  if (settings.channels == 0 || settings.channels > kMaxChannels)
    return Error{Errc::invalid_argument, "channels must be from 1 to " + std::to_string(kMaxChannels)};
  if (settings.queue == 0) return Error{Errc::invalid_argument, "queue must be at least 1"};
  // A client must have given a call up before the server forgets what it has executed.
  if (settings.give_up <= Duration::zero() || settings.give_up > settings.packet_life / 2)
    return Error{Errc::invalid_argument, "give_up must be positive and at most half of packet_life"};
  return std::make_unique<Monolithic>(parts.host, parts.name, *parts.below.front(), settings);
}

}  // namespace

ProtocolKind mrpc_kind() {
  return {
      .name = "M_RPC",
      .summary = "the monolithic Sprite RPC: requests and replies of up to 16 KiB, at most once",
      .gives = Service::transaction,
      .below = {{"the protocol for packets", Service::datagram}},
      .options = {{"channels", OptionType::number, "calls under way to each peer, 1 to 64; default 8"},
                  {"queue", OptionType::number, "calls to one peer that wait for one of those; default 4096"},
                  {"give_up", OptionType::duration, "a peer not heard for so long is gone; default 5s", false, "1ms"},
                  {"packet_life", OptionType::duration, "how long a packet may be under way; default 60s"},
                  {"clients", OptionType::number, "hosts that the server keeps records of; default 1024"},
                  {"memory", OptionType::number, "bytes of partial requests and saved replies; default 33554432"},
                  {"sequence", OptionType::number, "the sequence number before the first; default 0", false, "0",
                   "4294967295"}},
      .make = make};
}

}  // namespace lrpc::netrpc::mrpc
