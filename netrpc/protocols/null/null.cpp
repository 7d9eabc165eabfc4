#include "netrpc/protocols/null/null.h"

#include "transparent_layer.h"

namespace lrpc::netrpc {

ProtocolKind null_kind() {
  ProtocolKind kind;
  kind.name = "NULL";
  kind.summary = "passes everything through: what a layer costs";
  kind.transparent = true;
  kind.below = {{"the protocol to pass everything to", Service::datagram}};
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    return std::unique_ptr<Protocol>(
        std::make_unique<TransparentProtocol>(parts.host, parts.name, *parts.below.front()));
  };
  return kind;
}

}  // namespace lrpc::netrpc
