#include "netrpc/protocols/select/select.h"

namespace lrpc::netrpc {

ProtocolKind select_kind() {
  ProtocolKind kind;
  kind.name = "SELECT";
  kind.summary = "procedure identifiers, and a fixed number of channels to each host";
  kind.gives = Service::transaction;
  kind.tells_ports_apart = true;
  kind.below = {{"the protocol whose channels carry the calls", Service::transaction}};
  kind.options = channel_pool_options();
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    Result<ChannelPoolOptions> options = channel_pool_options(parts.options);
    if (!options) return options.error();
    return make_select(parts.host, parts.name, *parts.below.front(), *options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
