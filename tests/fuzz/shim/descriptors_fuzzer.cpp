// Attacks the decoder of procedure descriptors. With accepted descriptors it then attacks the packing and unpacking of
// images: whatever the descriptors say, nothing outside an A-stack of their class is written or read.
#include <algorithm>
#include <vector>

#include "astack_memory.h"
#include "input.h"
#include "lrpc/detail/shim/call/packed_image.h"

namespace lrpc::shim {
namespace {

using fuzz::Input;
using fuzz::require;

constexpr AStackClass kClasses[] = {{.image_size = 48, .tail_size = 428, .count = 1},
                                    {.image_size = 0, .tail_size = 0, .count = 1},
                                    {.image_size = 256, .tail_size = 0, .count = 2}};

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void attack_image(const ProcedureDescriptor& procedure, const PackedShape& shape, std::span<const std::byte> packed) {
  fuzz::AStackMemory memory(kClasses[procedure.astack_class]);
  const bool taken = unpack(shape, packed, memory.astack());
  require(taken || memory.untouched(), "what is refused has not touched the A-stack");
  require(!taken || packed.size() <= shape.most(), "no image is larger than it may be");
  // The peer can also write anything into the A-stack itself.
  memory.fill(packed);
  std::vector<std::byte> out(packed.size());
  const auto size = pack(shape, memory.astack(), out);
  require(!size || (*size <= out.size() && *size <= shape.most()), "an image ends within its bounds");
}

void run(Input input) {
  const std::size_t size = input.two();
  const auto encoded = input.bytes(size);
  auto received = ReceivedDescriptors::decode(encoded, kClasses);
  if (!received) {
    require(received.code() == Errc::bad_message, "what is refused is a bad message");
    return;
  }
  // Bits without a meaning are dropped; the rest is preserved.
  const std::string again = encode_descriptors(received->procedures());
  require(again.size() == encoded.size(), "what was decoded takes as many bytes");
  const auto twice = ReceivedDescriptors::decode(bytes_of(again), kClasses);
  require(bool(twice) && encode_descriptors(twice->procedures()) == again, "descriptors stay what they are");

  while (input.more()) {
    const std::uint8_t which = input.byte();
    const std::uint16_t status = input.byte();
    const auto packed = input.bytes(input.two() % 1024);
    if (received->procedures().empty()) return;
    const ProcedureDescriptor& procedure = received->procedures()[which % received->procedures().size()];
    require(procedure.astack_class < std::size(kClasses), "the class of a procedure exists");
    attack_image(procedure, PackedShape::of_call(procedure), packed);
    if (const auto shape = PackedShape::of_status(procedure, status)) {
      require(shape->most() <= most_returned(procedure), "nothing that returns is larger than the largest");
      attack_image(procedure, *shape, packed);
    }
  }
}

}  // namespace
}  // namespace lrpc::shim

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::shim::run({data, size});
  return 0;
}
