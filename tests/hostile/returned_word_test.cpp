// The test itself is the server. It writes arbitrary values into the word of a call.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <utility>

#include "conformance.client.h"
#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/detail/shim/call/region.h"
#include "unserved_client.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using lrpc::shim::CallWord;
using lrpc::shim::Turn;
namespace call_status = lrpc::shim::call_status;

class ReturnedWords : public UnservedClient<Conformance::Client, Conformance::kPdl> {
 protected:
  /// How a call ends if the server stores `answer(generation)` in its word.
  template <class Answer>
  Errc end_of_call(const Answer& answer) {
    auto call = client_->start().Null();
    int calls = 0;
    for (std::uint32_t i = 0; i < region_->layout().astack_count(); ++i) {
      auto& word = region_->astack(i).head->word;
      const std::uint64_t bits = word.load();
      if ((bits & CallWord::kTurnMask) != static_cast<std::uint64_t>(Turn::called)) continue;
      ++calls;
      word = answer(bits >> CallWord::kGenerationShift & CallWord::kGenerationMask).bits();
    }
    EXPECT_EQ(calls, 1);
    return call.finish().code();
  }
};

TEST_F(ReturnedWords, never_say_that_a_call_was_not_made) {
  const std::set<Errc> believed{Errc::call_failed,           Errc::call_aborted,      Errc::bad_procedure,
                                Errc::argument_out_of_range, Errc::argument_too_long, Errc::bad_handle,
                                Errc::exception_escaped,     Errc::bad_result,        Errc::call_cancelled,
                                Errc::limit_reached,         Errc::not_permitted,     Errc::not_supported,
                                Errc::invalid_argument};
  for (const std::uint16_t text : {std::uint16_t{0}, call_status::kTold}) {
    for (std::uint16_t code = 0; code < 0x100; ++code) {
      const auto status = static_cast<std::uint16_t>(call_status::kFailed | text | code);
      const bool as_it_is = believed.contains(static_cast<Errc>(code));
      EXPECT_EQ(end_of_call([&](std::uint64_t generation) { return CallWord::returned(generation, status); }),
                as_it_is ? static_cast<Errc>(code) : Errc::call_failed)
          << code;
    }
  }
  EXPECT_FALSE(client_->binding().revoked());
}

TEST_F(ReturnedWords, of_no_call_that_there_is_break_the_protocol) {
  EXPECT_EQ(end_of_call([](std::uint64_t generation) { return CallWord::returned(generation + 1, 0); }),
            Errc::call_failed);
  EXPECT_TRUE(client_->binding().revoked());
  EXPECT_EQ(client_->Null().code(), Errc::binding_revoked);
}

TEST_F(ReturnedWords, whose_turn_is_nobodys_break_the_protocol) {
  EXPECT_EQ(end_of_call([](std::uint64_t generation) {
              return CallWord(CallWord::returned(generation, 0).bits() | CallWord::kTurnMask);
            }),
            Errc::call_failed);
  EXPECT_TRUE(client_->binding().revoked());
}

}  // namespace
}  // namespace testing_lrpc
