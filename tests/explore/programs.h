// Programs for the explorer, and the proof that it would find faults in them: memory orders that the code asks for are
// weakened, and something must go wrong.
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

/// Instantiated with the programs of each part of the code.
class Explored : public testing::TestWithParam<NamedProgram> {};

/// Checks two things. With all orders but `needed` weakened at once, no program goes wrong. With one of `needed`
/// weakened as well, some program does. The other orders are what a reader expects there, are made redundant by another
/// one, or are for what the programs do not do.
void expect_to_be_needed(const std::vector<NamedProgram>& programs, const std::set<std::string>& needed);

}  // namespace testing_lrpc
