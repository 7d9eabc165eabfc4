// A server that breaks the rules while its client's calls are in flight: each call ends all the same.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "garbage.h"
#include "length.h"
#include "raw_binding.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using lrpc::Gate;
using namespace std::chrono_literals;

class HostileServerOfPendingCalls : public testing::TestWithParam<std::tuple<const char*, Gate>> {};

TEST_P(HostileServerOfPendingCalls, ends_none_of_them_never) {
  const auto& [misconduct, gate] = GetParam();
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends);
  Process server({LRPC_HOSTILE_SERVER, std::to_string(ends->first.get()), misconduct, std::to_string(test_seed())},
                 {ends->first.get()});
  ends->first.reset();
  for (int binding = 0; binding < 3; ++binding) {
    auto client = Conformance::Client::import_over(duplicate(ends->second.get()), {.gate = gate, .call_timeout = 30ms});
    if (!client) break;  // the server has died
    auto queue = lrpc::CompletionQueue::create();
    ASSERT_TRUE(queue);
    for (int round = 0; round < 5 && !client->binding().revoked(); ++round) {
      auto sum = client->start().Add(1, 2);
      auto dropped = client->start().NextColour(Conformance::Colour::Red);
      auto check = client->start().Check(1);
      auto colour = client->start().NextColour(Conformance::Colour::Red);
      if (!sum.ready()) (void)(*queue)->watch(sum);
      (void)colour.wait_for(1ms);
      (void)check.finish();
      if (const auto next = colour.finish()) {
        EXPECT_TRUE(Conformance::layout::is_Colour(*next));
      }
      (void)sum.finish();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(by, HostileServerOfPendingCalls,
                         testing::Combine(testing::Values("silence", "scribbling", "any_status",
                                                          "the_generation_before", "the_generation_after",
                                                          "a_turn_that_is_none", "abandonment", "revocation", "holes",
                                                          "flags_that_flicker", "stolen_sleep", "hanging_up", "death"),
                                          testing::Values(Gate::adaptive, Gate::exchange, Gate::handoff)),
                         [](const auto& tested) {
                           const Gate gate = std::get<1>(tested.param);
                           return std::string(std::get<0>(tested.param)) + (gate == Gate::exchange  ? "_at_exchange"
                                                                            : gate == Gate::handoff ? "_at_handoff"
                                                                                                    : "_at_any_gate");
                         });

}  // namespace
}  // namespace testing_lrpc
