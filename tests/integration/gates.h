// The gates that connect two domains, for tests that are run over each of them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>

#include "length.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace testing_lrpc {

inline constexpr std::array kEveryGate{lrpc::shim::Gate::adaptive, lrpc::shim::Gate::exchange,
                                       lrpc::shim::Gate::handoff, lrpc::shim::Gate::sleep};

#ifdef LRPC_ALL_TESTS
inline constexpr bool kAllTests = true;
#else
inline constexpr bool kAllTests = false;
#endif
/// The gates for which a test is repeated: all. With a sanitizer only the first two, unless all tests run, because the
/// adaptive gate runs most of the code of the others.
inline constexpr std::span kRepeatedGates(kEveryGate.data(), kSanitized && !kAllTests ? 2 : kEveryGate.size());

/// Names a test after its gate.
inline std::string gate_name(const testing::TestParamInfo<lrpc::shim::Gate>& tested) {
  return std::string(name_of(tested.param));
}

}  // namespace testing_lrpc
