#include "garbage.h"

#include <sys/mman.h>

#include <array>
#include <cstdio>

#include "lrpc/detail/shim/call/call_word.h"

namespace testing_lrpc {

using lrpc::shim::AStack;
using lrpc::shim::CallWord;
using lrpc::shim::Region;

std::uint32_t nasty_number(Random& random) {
  static constexpr std::uint32_t kTail = lrpc::VariableParameter::kInTail;
  static constexpr std::array<std::uint32_t, 13> kEdges{
      0, 9, 64, 100, 255, 300, 2'000, 4'000, 100'000, 4'194'304, 0x7fff'ffff, 0xffff'fffe, kTail};
  const std::uint32_t near = random.pick<std::uint32_t>(kEdges) + static_cast<std::uint32_t>(random.below(4)) - 1;
  return random.one_in(2) ? near : near | kTail;
}

std::uint64_t nasty_bits(Random& random) {
  switch (random.below(4)) {
    case 0: return random.one_in(2) ? 0 : ~std::uint64_t{0};
    case 1: return random();
    case 2: return random() & 0x0101'0101'0101'0101;  // bytes that are valid bools
    default: return std::uint64_t{nasty_number(random)} << 32 | nasty_number(random);
  }
}

std::uint64_t nasty_call_word(Random& random, std::uint64_t seen) {
  std::uint64_t bits = random();
  if (!random.one_in(4)) {
    const std::uint64_t generation = (seen >> CallWord::kGenerationShift) + random.below(4) - 1;
    const auto identifier = static_cast<std::uint16_t>(random.below(Conformance::kPdl.procedures.size() + 2));
    bits = CallWord::called(generation, identifier,
                            static_cast<std::uint16_t>(random.one_in(2) ? random.below(4) : random()))
               .bits();
    if (random.one_in(3)) bits = (bits & ~CallWord::kTurnMask) | random.below(4);
    if (random.one_in(3))
      bits |= random() & (CallWord::kCallerSleeps | CallWord::kEStackParked | CallWord::kRevoked | 0xe0);
  }
  constexpr std::uint64_t kProcedureBits = std::uint64_t{0xffff} << 32;
  return obeys_too_well(CallWord(bits).procedure()) ? bits & ~kProcedureBits : bits;
}

void scribble_image(Random& random, const Region& region, const AStack& astack) {
  const auto& placed = region.layout().classes()[astack.astack_class];
  for (std::size_t at = 0; at + 8 <= placed.slot_stride - sizeof(lrpc::shim::AStackHead); at += 8) {
    scribble(astack.image + at, nasty_bits(random));
  }
}

void scribble_slots(Random& random, const Region& region) {
  for (const AStack& astack : all_astacks(region)) {
    scribble_image(random, region, astack);
    astack.head->polled.store(static_cast<std::uint32_t>(random.below(3)), std::memory_order_relaxed);
    astack.head->attached.store(static_cast<std::uint32_t>(random.below(3)), std::memory_order_relaxed);
    astack.head->word.store(nasty_call_word(random, astack.head->word.load(std::memory_order_relaxed)),
                            std::memory_order_relaxed);
  }
}

void scribble_tails(Random& random, const Region& region, std::size_t words) {
  for (const AStack& astack : all_astacks(region)) {
    if (astack.tail == nullptr) continue;
    const std::size_t room = region.layout().classes()[astack.astack_class].tail_stride / 8;
    for (std::size_t i = 0; i < words; ++i) scribble(astack.tail + random.below(room) * 8, nasty_bits(random));
  }
}

void punch_hole(Random& random, const Region& region) {
  constexpr std::size_t kPage = 4096;
  const std::size_t pages = region.layout().size() / kPage;
  const std::size_t first = random.one_in(2) ? 0 : random.below(pages);  // the first pages hold the call words
  const std::size_t count = 1 + random.below(std::min<std::size_t>(pages - first, 64));
  std::byte* const base = reinterpret_cast<std::byte*>(region.astack(0).head);
  if (madvise(base + first * kPage, count * kPage, MADV_REMOVE) != 0) std::perror("MADV_REMOVE");
}

std::vector<AStack> all_astacks(const Region& region) {
  std::vector<AStack> all;
  for (std::uint32_t i = 0; i < region.layout().astack_count(); ++i) all.push_back(region.astack(i));
  return all;
}

}  // namespace testing_lrpc
