#include "netrpc/protocols/null/null.h"

#include "transparent_layer.h"

namespace lrpc::netrpc {

ProtocolKind null_kind() {
  return {.name = "NULL",
          .summary = "passes everything through: what a layer costs",
          .transparent = true,
          .below = {{"the protocol to pass everything to", Service::datagram}},
          .make = [](const InstanceParts& parts) {
            return std::make_unique<TransparentProtocol>(parts.host, parts.name, *parts.below.front());
          }};
}

}  // namespace lrpc::netrpc
