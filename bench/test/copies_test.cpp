// Table III (LRPC §3.5) as a test: the generated stubs copy what it says, and nothing else.
#include "paper/copies.h"

#include <gtest/gtest.h>

#include <string_view>

namespace lrpc::bench {
namespace {

class Copies : public ::testing::Test {
 protected:
  static CopyCount counted(std::string_view operation, std::string_view argument) {
    static const auto rows = count_copies();
    if (!rows) {
      ADD_FAILURE() << rows.error().message();
      return {};
    }
    for (const auto& row : *rows) {
      if (row.operation == operation && row.argument == argument) return row;
    }
    ADD_FAILURE() << "no row " << operation << " " << argument;
    return {};
  }
  static void expect(const CopyCount& row, unsigned a, unsigned e, unsigned f) {
    EXPECT_EQ(row.a, a) << "copies A";
    EXPECT_EQ(row.e, e) << "copies E";
    EXPECT_EQ(row.f, f) << "copies F";
  }
};

TEST_F(Copies, an_uninterpreted_argument_is_copied_once_onto_the_astack) {
  expect(counted("call (mutable)", "array"), 1, 0, 0);
  expect(counted("call (mutable)", "bytes"), 1, 0, 0);
}

TEST_F(Copies, an_argument_that_must_not_change_is_copied_once_more_onto_the_server_stack) {
  expect(counted("call (immutable)", "scalar"), 1, 1, 0);
  expect(counted("call (immutable)", "array"), 1, 1, 0);
  expect(counted("call (immutable)", "bytes"), 1, 1, 0);
}

TEST_F(Copies, a_bytes_result_that_the_procedure_writes_in_place_is_copied_once) {
  expect(counted("return", "bytes"), 0, 0, 1);
}

}  // namespace
}  // namespace lrpc::bench
