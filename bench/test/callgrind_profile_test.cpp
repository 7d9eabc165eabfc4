#include "layers/callgrind_profile.h"

#include <gtest/gtest.h>

#include <sstream>

namespace lrpc::bench {
namespace {

std::string_view component_of(std::string_view file) {
  if (file == "/src/message.h") return "messages";
  if (file == "/src/vip.cpp") return "vip";
  return {};
}

TEST(CallgrindProfile, inlined_lines_count_for_their_own_file_and_what_a_call_cost_counts_once) {
  std::istringstream text(
      "version: 1\nevents: Ir\nsummary: 137\n\n"
      "ob=/bin/x\nfl=/src/vip.cpp\nfn=push\n10 5\nfi=/src/message.h\n80 7\nfi=/std/utility\n3 2\nfe=/src/vip.cpp\n11 "
      "1\n"
      "cfn=other\ncalls=3 20\n12 100\n13 4\n\n"
      "fl=/src/other.cpp\nfn=other\n20 118\n");
  const auto counts = read_profile(text, component_of);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->at("vip"), 5U + 2 + 1 + 4);
  EXPECT_EQ(counts->at("messages"), 7U);
  EXPECT_EQ(counts->at(""), 118U);
}

TEST(CallgrindProfile, a_text_without_counts_is_an_error) {
  std::istringstream text("no profile\n");
  EXPECT_EQ(read_profile(text, component_of).code(), Errc::bad_message);
}

}  // namespace
}  // namespace lrpc::bench
