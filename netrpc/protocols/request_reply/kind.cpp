#include "netrpc/protocols/request_reply/request_reply.h"

namespace lrpc::netrpc {

ProtocolKind request_reply_kind() {
  ProtocolKind kind;
  kind.name = "REQUEST_REPLY";
  kind.summary = "pairs requests and replies, zero or more executions: Sun RPC's lowest layer";
  kind.gives = Service::transaction;
  kind.tells_ports_apart = true;
  kind.repeats = true;
  kind.below = {{"the protocol that carries the messages", Service::datagram}};
  kind.options = {
      {"give_up", OptionType::duration, "without a reply the call has failed; default 25s"},
      {"initial_timeout", OptionType::duration, "before the round trip has been measured; default 500ms"},
      {"minimum_timeout", OptionType::duration, "however short the round trip is; default 50ms"},
      {"longest_timeout", OptionType::duration, "with every second copy it is doubled, up to this; default 5s"},
      {"calls", OptionType::number, "that are being served: more are dropped; default 4096"},
      {"calls_per_host", OptionType::number, "the same for one host; default 1024"},
  };
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    RequestReplyOptions options;
    const Options& given = parts.options;
    options.give_up = given.duration("give_up", options.give_up);
    options.initial_timeout = given.duration("initial_timeout", options.initial_timeout);
    options.minimum_timeout = given.duration("minimum_timeout", options.minimum_timeout);
    options.longest_timeout = given.duration("longest_timeout", options.longest_timeout);
    options.calls = given.number("calls", options.calls);
    options.calls_per_host = given.number("calls_per_host", options.calls_per_host);
    for (const Duration time :
         {options.give_up, options.initial_timeout, options.minimum_timeout, options.longest_timeout})
      if (time < std::chrono::microseconds(1) || time > std::chrono::hours(24))
        return Error{Errc::invalid_argument, "the times must be from 1us to 24h"};
    if (options.calls == 0 || options.calls_per_host == 0)
      return Error{Errc::invalid_argument, "calls and calls_per_host must be at least 1"};
    return make_request_reply(parts.host, parts.name, *parts.below.front(), options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
