// How often rpcbind servers are asked, and how many ports are kept.
#include "found_ports.h"

#include <gtest/gtest.h>

namespace lrpc::sun {
namespace {

using netrpc::Time;
using std::chrono::milliseconds;

constexpr FoundPorts::Program kProgram{{0x0a070002}, 0x20000097};
constexpr FoundPorts::Program kOther{{0x0a070002}, 0x20000098};
constexpr Time kStart = Time(std::chrono::hours(1));

TEST(FoundPorts, are_asked_for_again_when_an_answer_is_a_second_old) {
  FoundPorts ports;
  EXPECT_EQ(ports.fresh(kProgram, 1, kStart), std::nullopt);
  ASSERT_TRUE(ports.note(kProgram, 1, {4000}, kStart));
  EXPECT_EQ(ports.fresh(kProgram, 1, kStart + milliseconds(999)), FoundPorts::Answer{4000});
  EXPECT_EQ(ports.fresh(kProgram, 1, kStart + FoundPorts::kFresh), std::nullopt);
  EXPECT_EQ(ports.fresh(kProgram, 2, kStart), std::nullopt) << "another version may have another port";
  EXPECT_EQ(ports.fresh(kOther, 1, kStart), std::nullopt);
  for (const FoundPorts::Answer none :
       {FoundPorts::Answer{0, Errc::name_unknown}, FoundPorts::Answer{0, Errc::bad_message}}) {
    ASSERT_TRUE(ports.note(kOther, 1, none, kStart));
    EXPECT_EQ(ports.fresh(kOther, 1, kStart), none) << "that there is no port is an answer, too";
  }
}

TEST(FoundPorts, of_a_program_are_few_at_one_time) {
  FoundPorts ports;
  std::uint16_t port = 4000;
  for (std::size_t i = 0; i < FoundPorts::kMostPorts; ++i) EXPECT_TRUE(ports.note(kProgram, 1, {port++}, kStart));
  EXPECT_FALSE(ports.note(kProgram, 1, {port}, kStart));
  EXPECT_EQ(ports.fresh(kProgram, 1, kStart), (FoundPorts::Answer{0, Errc::remote_unavailable}));
  EXPECT_FALSE(ports.note(kProgram, 2, {port}, kStart)) << "versions share them";
  EXPECT_TRUE(ports.note(kProgram, 1, {4000}, kStart)) << "it is one of those";
  EXPECT_TRUE(ports.note(kOther, 1, {port}, kStart));
  EXPECT_TRUE(ports.note(kProgram, 1, {port}, kStart + FoundPorts::kKept)) << "the others are forgotten by now";
}

}  // namespace
}  // namespace lrpc::sun
