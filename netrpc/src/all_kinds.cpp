#include "lrpc/netrpc/all_kinds.h"

#include "netrpc/auth/auth.h"
#include "netrpc/channel/channel.h"
#include "netrpc/datagram/reliable_datagram.h"
#include "netrpc/eth/eth.h"
#include "netrpc/fault/fault.h"
#include "netrpc/forwarding/forwarding_select.h"
#include "netrpc/fragment/fragment.h"
#include "netrpc/ip/ip.h"
#include "netrpc/mrpc/mrpc.h"
#include "netrpc/null/null.h"
#include "netrpc/select/select.h"
#include "netrpc/trace/trace.h"
#include "netrpc/udp/udp.h"
#include "netrpc/vip/vip.h"
#include "netrpc/vipaddr/vipaddr.h"
#include "netrpc/viphosts/viphosts.h"
#include "netrpc/vipsize/vipsize.h"

namespace lrpc::netrpc {

ProtocolKinds layer_kinds() {
  ProtocolKinds kinds;
  kinds.add(vip_kind()).add(vipaddr_kind()).add(vipsize_kind()).add(viphosts_kind());
  kinds.add(fragment_kind()).add(auth_kind());
  kinds.add(channel_kind()).add(select_kind()).add(forwarding_select_kind()).add(reliable_datagram_kind());
  kinds.add(mrpc::mrpc_kind());
  kinds.add(null_kind()).add(trace_kind()).add(fault_kind());
  return kinds;
}

ProtocolKinds all_kinds() {
  ProtocolKinds kinds = layer_kinds();
  kinds.add(eth_kind()).add(ip_kind()).add(udp_kind());
  return kinds;
}

}  // namespace lrpc::netrpc
