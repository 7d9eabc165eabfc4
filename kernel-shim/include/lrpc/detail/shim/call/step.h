// Marks for debuggers: where each numbered step of the call path begins (docs/ARCHITECTURE.md, docs/CALL_WORD.md).
#pragma once

#include <cstdint>

namespace lrpc::shim {

/// A mark's record in the program's section `lrpc_steps`, which the program itself never reads: 32 bytes, aligned to
/// 32. A step has one mark for each place into which it was inlined.
struct StepMark {
  std::int32_t place;  ///< Of the step's first instruction, relative to this record.
  char name[28];       ///< "client 4", "server a", a transition, ...; ends with a zero.
};
static_assert(sizeof(StepMark) == 32);

}  // namespace lrpc::shim

/// Marks the beginning of a step. It has no instruction and no operand, and the compiler must keep it in order only
/// with other marks and atomics, so the code is the same without it. The record belongs to the section group of its
/// function ("?"): if the linker drops a copy of an inline function, it drops the record, too. `name`: a literal of at
/// most 27 characters.
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
