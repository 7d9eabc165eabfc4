// The conformance tests' service for random inputs: without the procedures that do harm if called correctly.
#pragma once

#include "conformance_service.h"

namespace testing_lrpc {

class FuzzedConformance : public ConformanceService {
 public:
  void Die(CallContext&) {}
  void SleepFor(CallContext&, std::uint32_t) {}
  void NapFor(CallContext&, std::uint32_t) {}
  lrpc::Result<std::int32_t, Conformance::Refused> Through(CallContext&, const lrpc::String<255>& name, std::int32_t,
                                                           std::int32_t) {
    return lrpc::raise(Conformance::Refused{.reason = name.view().substr(0, 128)});
  }
};

}  // namespace testing_lrpc
