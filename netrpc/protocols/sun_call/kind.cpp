#include "netrpc/protocols/sun_call/sun_call.h"

namespace lrpc::netrpc {

ProtocolKind sun_call_kind() {
  return channel_pool_kind("SUN_CALL", "Sun RPC's numbers of program, version and procedure", make_sun_call);
}

}  // namespace lrpc::netrpc
