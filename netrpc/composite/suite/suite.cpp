#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

std::vector<MicroKind> datagram_kinds() {
  return {number_kind(), unique_kind(), fifo_kind(), ack_kind(), membership_kind()};
}

std::vector<MicroKind> suite_kinds() {
  std::vector<MicroKind> kinds = datagram_kinds();
  for (MicroKind& kind :
       std::vector{grpc_kind(), sync_kind(), async_kind(), one_accept_kind(), all_accept_kind(), majority_kind(),
                   bounded_kind(), unbounded_kind(), still_working_kind(), reply_order_kind(),
                   avoid_interference_kind(), terminate_orphans_kind(), atomic_kind()})
    kinds.push_back(std::move(kind));
  return kinds;
}

std::vector<OptionDescription> with_peer_options(std::vector<OptionDescription> others) {
  others.push_back({"peers", OptionType::number, "how many it knows at a time; 4096", false, "1"});
  others.push_back({"idle", OptionType::duration, "after which it forgets one; 60s", false, "1ms", "31536000s"});
  return others;
}

}  // namespace lrpc::netrpc::composite
