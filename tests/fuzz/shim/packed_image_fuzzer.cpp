// Attacks the unpacking of images by valid descriptors: what is taken is exactly what was sent.
#include <algorithm>
#include <vector>

#include "astack_memory.h"
#include "input.h"
#include "lrpc/detail/shim/call/packed_image.h"

namespace lrpc::shim {
namespace {

using fuzz::Input;
using fuzz::require;

// F(in a: int32, in b: string<100>, inout c: bytes<300>, out d: string<8>) -> (e: int64) raises (E, Empty)
constexpr VariableParameter kVariables[] = {{.length_offset = 4,
                                             .inline_offset = 32,
                                             .inline_capacity = 16,
                                             .tail_offset = 0,
                                             .bound = 100,
                                             .in = true,
                                             .out = false},
                                            {.length_offset = 8,
                                             .inline_offset = 48,
                                             .inline_capacity = 0,
                                             .tail_offset = 128,
                                             .bound = 300,
                                             .in = true,
                                             .out = true},
                                            {.length_offset = 24,
                                             .inline_offset = 48,
                                             .inline_capacity = 8,
                                             .tail_offset = 0,
                                             .bound = 8,
                                             .in = false,
                                             .out = true}};
constexpr ImageRange kCall[] = {{0, 12}};
constexpr ImageRange kReturn[] = {{8, 4}, {16, 12}};
constexpr ImageRange kRaised[] = {{12, 20}, {12, 0}};
constexpr ProcedureDescriptor kProcedure{.name = "F",
                                         .astack_class = 0,
                                         .simultaneous_calls = 1,
                                         .image_size = 56,
                                         .may_block = true,
                                         .stack_need = 0,
                                         .call_ranges = kCall,
                                         .return_ranges = kReturn,
                                         .variable_parameters = kVariables,
                                         .raised_ranges = kRaised};
constexpr AStackClass kClass{.image_size = 56, .tail_size = 428, .count = 1};

void attack(const PackedShape& shape, std::span<const std::byte> packed) {
  fuzz::AStackMemory memory(kClass);
  std::vector<std::byte> out(packed.size());
  if (!unpack(shape, packed, memory.astack())) {
    require(memory.untouched(), "what is refused has not touched the A-stack");
    // The same bytes directly on an A-stack.
    memory.fill(packed);
    (void)pack(shape, memory.astack(), out);
    return;
  }
  require(packed.size() <= shape.most(), "no image is larger than it may be");
  require(pack(shape, memory.astack(), out) == packed.size() && std::ranges::equal(out, packed),
          "what was unpacked is packed to the same bytes");
  if (out.empty()) return;
  out.pop_back();
  require(!pack(shape, memory.astack(), out), "what has no room is not packed");
}

void run(Input input) {
  const std::uint8_t which = input.byte();
  const auto packed = input.rest();
  if (which == 0) return attack(PackedShape::of_call(kProcedure), packed);
  if (const auto shape = PackedShape::of_status(kProcedure, static_cast<std::uint16_t>(which - 1U)))
    attack(*shape, packed);
}

}  // namespace
}  // namespace lrpc::shim

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::shim::run({data, size});
  return 0;
}
