// Explores the word that threads sleep on (kernel-shim), the product's own source, under the C++ memory model. Only the
// word orders the news.
#include <gtest/gtest.h>

#include <cstddef>
#include <new>
#include <vector>

#include "standard.h"
// From here on, headers and sources that use the explored atomics.
#include "lrpc/detail/shim/system/sleeping_word.h"

#include "programs.h"

namespace testing_lrpc {
namespace {

/// In each run at the same addresses.
struct World {
  lrpc::shim::SleepingWord word;
  std::atomic<int> there{0};  ///< News that no thread has taken.
  explore::Plain last;        ///< Written before the stop.
};
alignas(World) std::byte place[sizeof(World)];
World& world() { return *std::launder(reinterpret_cast<World*>(place)); }

void bring() {
  world().there.fetch_add(1, std::memory_order_relaxed);
  world().word.raise(1);
}

bool taken() {
  int there = world().there.load(std::memory_order_relaxed);
  while (there > 0) {
    if (world().there.compare_exchange_weak(there, there - 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

void take() {
  for (;;) {
    const std::uint32_t seen = world().word.look();
    if (taken()) return;
    world().word.sleep_unless_changed(seen);
  }
}

void stop() {
  world().last.write(1);
  world().word.stop();
}

/// Takes news until the word is stopped.
void take_until_the_end() {
  while (!world().word.stopped()) {
    const std::uint32_t seen = world().word.look();
    if (!taken()) world().word.sleep_unless_changed(seen);
  }
  explore::expect(world().last.read() == 1, "a stop is seen before what came before it");
}

explore::Program program(std::vector<std::function<void()>> threads) {
  return {.set_up = [] { new (place) World; }, .threads = std::move(threads)};
}

void twice(void (*what)()) {
  what();
  what();
}

const std::vector<NamedProgram>& programs() {
  static const std::vector<NamedProgram> all{
      {"one_brings_and_one_takes", program({[] { twice(bring); }, [] { twice(take); }})},
      {"one_brings_and_two_take", program({[] { twice(bring); }, take, take})},
      {"two_bring_and_two_take", program({bring, bring, take, take})},
      {"a_stop", program({stop, take_until_the_end})},
      {"a_stop_of_two", program({stop, take_until_the_end, take_until_the_end})},
      {"news_and_a_stop", program({bring, stop, take_until_the_end})},
  };
  return all;
}

/// All orders that the word asks for.
const std::set<std::string> kNeeded{
    // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one line of the code, too long for one here
    "look: [[nodiscard]] std::uint32_t look() const noexcept { return word_.load(std::memory_order_seq_cst); } "
    "[load seq_cst]",
    "raise: word_.fetch_add(kNews, std::memory_order_seq_cst); [update seq_cst]",
    "stop: word_.fetch_or(kStop, std::memory_order_seq_cst); [update seq_cst]",
};

INSTANTIATE_TEST_SUITE_P(sleeping_words, Explored, testing::ValuesIn(programs()), name_of_program);

TEST(SleepingWords, need_these_orders_and_no_others) { expect_to_be_needed(programs(), kNeeded); }

}  // namespace
}  // namespace testing_lrpc
