// The paper's own figures: LRPC, Bershad, Anderson, Lazowska, Levy, ACM TOCS 8(1), 1990; C-VAX Firefly, microseconds.
#pragma once

#include <array>
#include <string_view>

namespace lrpc::bench::paper {

/// Table IV.
struct TestTimes {
  std::string_view test;
  double lrpc_mp;  ///< With domain caching on an idle processor.
  double lrpc;     ///< Serial, on one processor.
  double taos;     ///< SRC RPC.
};
inline constexpr std::array<TestTimes, 4> kTableIV = {{
    {"Null", 125, 157, 464},
    {"Add", 130, 164, 480},
    {"BigIn", 173, 192, 539},
    {"BigInOut", 219, 227, 636},
}};

/// Table V: the serial Null call.
namespace table_v {
inline constexpr double kProcedureCall = 7;
inline constexpr double kTwoTraps = 36;
inline constexpr double kTwoSwitches = 66;
inline constexpr double kMinimum = 109;  ///< The sum of the three above.
inline constexpr double kStubs = 21;     ///< 18 in the client stub, 3 in the server's.
inline constexpr double kClientStub = 18;
inline constexpr double kServerStub = 3;
inline constexpr double kKernelTransfer = 27;  ///< Binding validation and linkage management.
inline constexpr double kTotal = 157;
}  // namespace table_v

inline constexpr int kNullInstructions = 120;  ///< §4.

/// Figure 2, as far as §4 gives numbers ("about", "over"): domain caching off, four C-VAX processors.
struct CallRate {
  unsigned processors;
  double calls_per_second;
};
inline constexpr std::array<CallRate, 2> kFigure2 = {{{1, 6300}, {4, 23'000}}};
inline constexpr double kSrcRpcMostCalls = 4000;  ///< SRC RPC, with two processors or more, because of a global lock.

/// Table III: one letter a copy.
struct CopyCodes {
  std::string_view operation;
  std::string_view lrpc;
  std::string_view message_passing;
  std::string_view restricted;
};
inline constexpr std::array<CopyCodes, 3> kTableIII = {{
    {"call (mutable)", "A", "ABCE", "ADE"},
    {"call (immutable)", "AE", "ABCE", "ADE"},
    {"return", "F", "BCF", "BF"},
}};

}  // namespace lrpc::bench::paper
