#include "netrpc/protocols/select/select.h"

namespace lrpc::netrpc {

ProtocolKind select_kind() {
  return channel_pool_kind("SELECT", "procedure identifiers, and a fixed number of channels to each host", make_select);
}

}  // namespace lrpc::netrpc
