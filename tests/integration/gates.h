// The gates that connect two domains, for tests that hold at each of them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "lrpc/shim/binder/binder_protocol.h"

namespace testing_lrpc {

inline constexpr std::array kEveryGate{lrpc::shim::Gate::adaptive, lrpc::shim::Gate::exchange,
                                       lrpc::shim::Gate::handoff, lrpc::shim::Gate::sleep};

// The gates for which a test is repeated. A sanitizer looks for faults in code that the adaptive gate runs through, too:
// with --all it sees the others as well.
#if (defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)) && !defined(LRPC_ALL_TESTS)
inline constexpr std::array kRepeatedGates{lrpc::shim::Gate::adaptive, lrpc::shim::Gate::exchange};
#else
inline constexpr auto kRepeatedGates = kEveryGate;
#endif

/// Names a test by its gate.
inline std::string gate_name(const testing::TestParamInfo<lrpc::shim::Gate>& tested) {
  return std::string(name_of(tested.param));
}

}  // namespace testing_lrpc
