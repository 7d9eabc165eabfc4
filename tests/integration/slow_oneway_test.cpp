// A one-way call that is slow to return, while such calls have all A-stacks: it delays the next callers only once.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "eventually.h"
#include "held_calls.h"
#include "limits_service.h"
#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/system/futex.h"
#include "unserved_client.h"

namespace testing_lrpc {
namespace {

namespace shim = lrpc::shim;

class SlowOneWay : public UnservedClient<Limits::Client, Limits::kPdl> {
 protected:
  class LoneSleep;
};

/// Notes for which call alone a caller sleeps.
class SlowOneWay::LoneSleep : public Watch {
 public:
  explicit LoneSleep(Heads heads) : heads_(std::move(heads)) {}
  void waits(void* /*word*/, std::uint32_t /*expected*/, std::uint32_t bits,
             std::chrono::nanoseconds /*limit*/) override {
    if (bits == kAnyOf && std::ranges::count_if(heads_, is_slept_on) == 1)
      alone_ = *std::ranges::find_if(heads_, is_slept_on);
  }
  [[nodiscard]] shim::AStackHead* alone() const noexcept { return alone_; }
  static bool is_slept_on(const shim::AStackHead* head) { return shim::load_word(*head).caller_sleeps(); }

 private:
  const Heads heads_;
  std::atomic<shim::AStackHead*> alone_ = nullptr;
};

TEST_F(SlowOneWay, call_is_awaited_alone_once) {
  if (!shim::can_wait_any()) GTEST_SKIP() << "futex_waitv(2) is missing or refused";
  const Heads heads = heads_of("Note");
  const auto note = [&] { EXPECT_TRUE(client_->Note(0)); };
  for (std::size_t i = 0; i < heads.size(); ++i) note();
  shim::AStackHead* slow = nullptr;
  LoneSleep watch(heads);
  watch.begin();
  for (std::uint64_t generation = 1; generation <= 2; ++generation) {
    for (auto* head : heads) head->word.fetch_and(~shim::CallWord::kCallerSleeps);
    std::thread next(note);
    EXPECT_TRUE(eventually([&] { return std::ranges::all_of(heads, LoneSleep::is_slept_on); }))
        << "then it waits for all";
    shim::return_to_caller(*heads.back(), shim::CallWord::returned(generation, 0));
    next.join();
    ASSERT_NE(watch.alone(), nullptr);
    EXPECT_NE(watch.alone(), slow);
    slow = watch.alone();
  }
  client_.reset();  // before `watch` ends
}

}  // namespace
}  // namespace testing_lrpc
