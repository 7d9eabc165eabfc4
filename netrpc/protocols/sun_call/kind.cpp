#include "netrpc/protocols/sun_call/sun_call.h"

namespace lrpc::netrpc {

ProtocolKind sun_call_kind() {
  ProtocolKind kind;
  kind.name = "SUN_CALL";
  kind.summary = "Sun RPC's numbers of program, version and procedure";
  kind.gives = Service::transaction;
  kind.tells_ports_apart = true;
  kind.below = {{"the protocol whose channels carry the calls", Service::transaction}};
  kind.options = channel_pool_options();
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    Result<ChannelPoolOptions> options = channel_pool_options(parts.options);
    if (!options) return options.error();
    return make_sun_call(parts.host, parts.name, *parts.below.front(), *options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
