#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

std::vector<MicroKind> suite_kinds() {
  return {number_kind(), unique_kind(), fifo_kind(), ack_kind(), membership_kind()};
}

std::vector<OptionDescription> with_peer_options(std::vector<OptionDescription> others) {
  others.push_back({"peers", OptionType::number, "how many it knows at a time; 4096"});
  others.push_back({"idle", OptionType::duration, "after which it forgets one; 60s"});
  return others;
}

}  // namespace lrpc::netrpc::composite
