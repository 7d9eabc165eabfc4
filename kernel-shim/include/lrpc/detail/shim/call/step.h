// Marks for debuggers: where each numbered step of the call path begins (docs/ARCHITECTURE.md, docs/CALL_WORD.md).
#pragma once

#include <cstdint>

namespace lrpc::shim {

/// What a mark leaves in the section `lrpc_steps` of the program, which nothing in it reads: 32 bytes, aligned to 32.
/// A step has as many marks as there are places that it was inlined into.
struct StepMark {
  std::int32_t place;  ///< Of the step's first instruction, relative to this record.
  char name[28];       ///< "client 4", "server a", a transition, ...; ends with a zero.
};
static_assert(sizeof(StepMark) == 32);

}  // namespace lrpc::shim

/// Here a step begins. No instruction, no operand, and nothing that the compiler must keep in order but other marks and
/// atomics: the code is what it is without. The record goes to the group of the function that it is in ("?"), so that
/// it is dropped with a copy of an inline function that the linker drops. `name`: a literal of at most 27 characters.
#define LRPC_STEP(name)                                \
  __asm__ inline volatile(                             \
      "771:\n\t"                                       \
      ".pushsection lrpc_steps, \"a?\", @progbits\n\t" \
      ".balign 32\n"                                   \
      "772:\n\t"                                       \
      ".long 771b - 772b\n\t"                          \
      ".asciz \"" name                                 \
      "\"\n\t"                                         \
      ".balign 32\n\t"                                 \
      ".popsection")
