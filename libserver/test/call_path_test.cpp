// What the server's half of a call makes of a client that changes the call word against the protocol.
#include "call/call_path.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "binding_without_client.h"

namespace lrpc::server {
namespace {

class CallPath : public testing::Test {
 protected:
  static std::uint16_t count_call(void* calls, CallContext& /*context*/) {
    ++*static_cast<int*>(calls);
    return 0;
  }
  void SetUp() override {
    auto interface = std::make_shared<ServedInterface>();
    interface->pdl = &kPdl;
    interface->stubs = {&kStub, 1};
    interface->impl = &calls_;
    interface->lay_out_entries();
    binding_ = binding_without_client(std::move(interface));
    ASSERT_NE(binding_, nullptr);
  }
  [[nodiscard]] ServedAStack& astack() const { return binding_->astacks()[0]; }

  static constexpr AStackClass kClass{64, 0, 1};
  static constexpr ProcedureDescriptor kProcedure{.name = "Count"};
  static constexpr Pdl kPdl{
      .interface = {.name = "Counting"}, .classes = {&kClass, 1}, .procedures = {&kProcedure, 1}, .text = {}};
  static constexpr EntryStub kStub = &count_call;
  int calls_ = 0;
  std::shared_ptr<ServedBinding> binding_;
};

TEST_F(CallPath, a_call_that_is_taken_back_after_it_was_seen_is_not_executed_and_costs_no_generation) {
  ASSERT_TRUE(astack().linkage.claim(1)) << "a thread has seen the call";
  EXPECT_EQ(decline(astack(), shim::CallWord::returned(0, 0), Errc::ok), Served::nothing);
  EXPECT_EQ(calls_, 0);
  astack().head->word.store(shim::CallWord::called(1, 0, shim::kNoProcessor).bits());
  PrimedContext context;
  EXPECT_EQ(serve(astack(), context), Served::returned) << "the same call, rung again";
  EXPECT_EQ(calls_, 1);
  EXPECT_TRUE(shim::load_word(*astack().head).is(shim::Turn::returned, 1));
}

}  // namespace
}  // namespace lrpc::server
