#include "netrpc/protocols/select/select.h"

namespace lrpc::netrpc {

ProtocolKind select_kind() {
  ProtocolKind kind;
  kind.name = "SELECT";
  kind.summary = "procedure identifiers, and a fixed number of channels to each host";
  kind.gives = Service::transaction;
  kind.tells_ports_apart = true;
  kind.below = {{"the protocol whose channels carry the calls", Service::transaction}};
  kind.options = {
      {"channels", OptionType::number, "calls under way to one host, 1 to 1024; default 8"},
      {"queue", OptionType::number, "calls to one host that wait for a channel; default 4096"},
      {"idle", OptionType::duration, "after that time without use a host's channels are closed; default 30s"},
  };
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    SelectOptions options;
    options.channels = parts.options.number("channels", options.channels);
    options.queue = parts.options.number("queue", options.queue);
    options.idle = parts.options.duration("idle", options.idle);
    if (options.channels < 1 || options.channels > 1024)
      return Error{Errc::invalid_argument, "channels must be from 1 to 1024"};
    if (options.queue < 1) return Error{Errc::invalid_argument, "queue must be at least 1"};
    if (options.idle < std::chrono::milliseconds(1)) return Error{Errc::invalid_argument, "idle must be at least 1ms"};
    return make_select(parts.host, parts.name, *parts.below.front(), options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
