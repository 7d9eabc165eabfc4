#include "netrpc/protocols/vipsize/vipsize.h"

namespace lrpc::netrpc {

ProtocolKind vipsize_kind() {
  ProtocolKind kind;
  kind.name = "VIPSIZE";
  kind.summary = "small messages by one protocol, large ones by another; no header";
  kind.gives = Service::datagram;
  kind.below = {{"the protocol for small messages", Service::datagram},
                {"the protocol for large messages", Service::datagram}};
  kind.options = {
      {"sessions", OptionType::number, "sessions at once (4096)"},
      {"idle", OptionType::duration, "after which an unused session is dropped (60s)"},
  };
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    VipSizeOptions options;
    options.sessions = parts.options.number("sessions", options.sessions);
    options.idle = parts.options.duration("idle", options.idle);
    return make_vipsize(parts.host, parts.name, *parts.below[0], *parts.below[1], options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
