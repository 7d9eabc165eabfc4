#include "lrpc/netrpc/all_kinds.h"

#include "netrpc/composite/kind.h"
#include "netrpc/composite/suite/suite.h"
#include "netrpc/devices/eth/eth.h"
#include "netrpc/devices/ip/ip.h"
#include "netrpc/devices/tcp/tcp.h"
#include "netrpc/devices/udp/udp.h"
#include "netrpc/protocols/auth/auth.h"
#include "netrpc/protocols/channel/channel.h"
#include "netrpc/protocols/datagram/reliable_datagram.h"
#include "netrpc/protocols/fault/fault.h"
#include "netrpc/protocols/forwarding/forwarding_select.h"
#include "netrpc/protocols/fragment/fragment.h"
#include "netrpc/protocols/group/group.h"
#include "netrpc/protocols/mrpc/mrpc.h"
#include "netrpc/protocols/null/null.h"
#include "netrpc/protocols/paired/paired.h"
#include "netrpc/protocols/psync/psync.h"
#include "netrpc/protocols/request_reply/request_reply.h"
#include "netrpc/protocols/select/select.h"
#include "netrpc/protocols/sun_auth/sun_auth.h"
#include "netrpc/protocols/sun_call/sun_call.h"
#include "netrpc/protocols/sun_select/sun_select.h"
#include "netrpc/protocols/trace/trace.h"
#include "netrpc/protocols/vip/vip.h"
#include "netrpc/protocols/vipaddr/vipaddr.h"
#include "netrpc/protocols/viphosts/viphosts.h"
#include "netrpc/protocols/vipsize/vipsize.h"

namespace lrpc::netrpc {

ProtocolKinds layer_kinds() {
  ProtocolKinds kinds;
  kinds.add(vip_kind()).add(vipaddr_kind()).add(vipsize_kind()).add(viphosts_kind());
  kinds.add(fragment_kind()).add(auth_kind());
  kinds.add(channel_kind()).add(select_kind()).add(forwarding_select_kind()).add(reliable_datagram_kind());
  kinds.add(mrpc::mrpc_kind()).add(paired_kind()).add(psync_kind());
  kinds.add(request_reply_kind()).add(sun_call_kind()).add(auth_none_kind()).add(auth_sys_kind());
  kinds.add(sun_select_kind());
  kinds.add(composite::composite_kind("COMPOSITE", composite::suite_kinds())).add(group_kind());
  kinds.add(null_kind()).add(trace_kind()).add(fault_kind());
  return kinds;
}

ProtocolKinds all_kinds() {
  ProtocolKinds kinds = layer_kinds();
  kinds.add(eth_kind()).add(ip_kind()).add(udp_kind()).add(tcp_kind());
  return kinds;
}

}  // namespace lrpc::netrpc
