// Runs of every shape end, make calls, and count them.
#include "default/fresh_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;
using Shape = Situation::Shape;
using Where = Situation::Where;

class FreshRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    auto cores = Cores::find();
    ASSERT_TRUE(cores);
    cores_.emplace(*cores);
  }
  Result<FreshRun> run(const Situation& situation, shim::Gate gate = shim::Gate::adaptive) {
    return run_fresh(situation, gate, *cores_, clock_, 20ms);
  }
  std::optional<Cores> cores_;
  TickClock clock_ = TickClock::calibrate();
};

TEST_F(FreshRuns, of_every_shape_call_through_every_gate) {
  const std::vector<Situation> shapes{{.name = "plain"},
                                      {.name = "slow and quick", .procedure = 5us, .slow_each = 2},
                                      {.name = "started", .started = 8},
                                      {.name = "chain", .shape = Shape::chain},
                                      {.name = "callbacks", .shape = Shape::callbacks},
                                      {.name = "callbacks of two", .shape = Shape::callbacks, .clients = 2},
                                      {.name = "threads", .threads = 2},
                                      {.name = "servers", .clients = 2, .servers = 2},
                                      {.name = "servers in turn", .servers = 2, .in_turn = true}};
  for (const shim::Gate gate : {shim::Gate::adaptive, shim::Gate::exchange, shim::Gate::handoff, shim::Gate::sleep}) {
    for (const Situation& shape : shapes) {
      const auto ran = run(shape, gate);
      ASSERT_TRUE(ran) << shape.name << ", " << name_of(gate) << ": " << ran.error().message();
      EXPECT_GE(ran->calls.count(), shape.clients * shape.threads) << shape.name << ", " << name_of(gate);
      EXPECT_EQ(ran->windows.size(), 2U);
      EXPECT_GT(ran->processor, 0) << shape.name;
    }
  }
}

TEST_F(FreshRuns, beside_others_end_with_them) {
  for (const Situation& beside : {Situation{.hogs = 2}, Situation{.third_party = true}, Situation{.build = true}}) {
    const auto ran = run(beside);
    if (!ran && ran.code() == Errc::not_supported) continue;  // no compiler
    ASSERT_TRUE(ran) << ran.error().message();
    EXPECT_GE(ran->calls.count(), 1U);
  }
}

TEST_F(FreshRuns, end_wherever_their_processes_are_put) {
  if (!cores_->has_two()) GTEST_SKIP() << "one processor";
  for (const Where where : {Where::one_processor, Where::apart, Where::apart_later, Where::server_confined,
                            Where::clients_apart, Where::moved}) {
    const auto ran = run({.clients = 2, .where = where});
    ASSERT_TRUE(ran) << ran.error().message();
    EXPECT_GE(ran->calls.count(), 2U);
  }
}

}  // namespace
}  // namespace lrpc::bench
