// What a hostile peer writes: random bits, and bits chosen to be plausible. One seed gives one run.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "conformance.types.h"
#include "lrpc/detail/shim/call/region.h"

namespace testing_lrpc {

/// Random numbers that depend only on the seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t operator()() { return engine_(); }
  /// 0 .. below - 1.
  std::size_t below(std::size_t below) { return static_cast<std::size_t>(engine_() % below); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class T>
  T pick(std::span<const T> from) {
    return from[below(from.size())];
  }

 private:
  std::mt19937_64 engine_;
};

/// The identifier of a Conformance procedure.
constexpr std::uint16_t procedure(std::string_view name) {
  for (std::size_t i = 0; i < Conformance::kPdl.procedures.size(); ++i) {
    if (Conformance::kPdl.procedures[i].name == name) return static_cast<std::uint16_t>(i);
  }
  throw "no such procedure";  // NOLINT: stops the compiler, nothing else
}

/// Procedures that do harm if called correctly: they end the server, or occupy an E-stack for days. Garbage must not
/// name them.
constexpr bool obeys_too_well(std::uint16_t identifier) {
  return identifier == procedure("Die") || identifier == procedure("SleepFor") || identifier == procedure("NapFor");
}

/// Numbers near the bounds that Conformance declares, and near those of the machine.
std::uint32_t nasty_number(Random& random);
/// 64 bits for an image or a tail.
std::uint64_t nasty_bits(Random& random);
/// 64 bits for a call word that holds `seen` now: any turn, flags, a generation that is or is not the next one.
std::uint64_t nasty_call_word(Random& random, std::uint64_t seen);

/// Stores as another domain does: whole words, no order. `at` is a multiple of 8.
inline void scribble(std::byte* at, std::uint64_t bits) {
  std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at)).store(bits, std::memory_order_relaxed);
}
/// Fills the image of an A-stack up to the end of its slot.
void scribble_image(Random& random, const lrpc::shim::Region& region, const lrpc::shim::AStack& astack);
/// Rewrites every call word, hint and image of a region.
void scribble_slots(Random& random, const lrpc::shim::Region& region);
/// Rewrites `words` words of each tail, at random places.
void scribble_tails(Random& random, const lrpc::shim::Region& region, std::size_t words);
/// Punches a hole into some pages of the region. Both sides see it.
void punch_hole(Random& random, const lrpc::shim::Region& region);

/// The A-stacks of a region.
std::vector<lrpc::shim::AStack> all_astacks(const lrpc::shim::Region& region);

}  // namespace testing_lrpc
