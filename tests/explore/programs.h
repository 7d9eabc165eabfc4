// Programs under the explorer, and the proof that it would see what they are explored for: orders that the code asks
// for are taken away, and something must go wrong.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "explore.h"

namespace testing_lrpc {

struct NamedProgram {
  std::string name;
  explore::Program program;
};
inline std::ostream& operator<<(std::ostream& out, const NamedProgram& one) { return out << one.name; }
inline std::string name_of_program(const testing::TestParamInfo<NamedProgram>& one) { return one.param.name; }

/// Instantiated with the programs of each part.
class Explored : public testing::TestWithParam<NamedProgram> {};

/// With all orders but `needed` taken away at once no program goes wrong; with any one of those taken away as well,
/// some does. The others are what a reader expects there, stand beside another that suffices, or are for what the
/// programs do not do.
void expect_to_be_needed(const std::vector<NamedProgram>& programs, const std::set<std::string>& needed);

}  // namespace testing_lrpc
