// Encodes and decodes procedure descriptors. Little-endian:
//
//   u16 number of procedures, then for each
//     u16 A-stack class · u8 flags (1 may_block, 2 handles) · u32 image size
//     three times, for call, return, raised:  u16 count, then offset u32 · size u32 each
//     u16 count of variable parameters, then  u32 length offset · inline offset · inline capacity · tail offset · bound
//                                             · u8 directions (1 in, 2 out) each
#include "lrpc/detail/shim/call/packed_image.h"
#include "lrpc/detail/shim/system/little_endian.h"

namespace lrpc::shim {
namespace {

constexpr std::uint8_t kMayBlock = 1;
constexpr std::uint8_t kHandles = 2;
constexpr std::uint8_t kIn = 1;
constexpr std::uint8_t kOut = 2;
constexpr std::size_t kMostRows = 256;  ///< In each list of one procedure: more than stubgen allows.
constexpr std::size_t kRangeSize = 8;   ///< Bytes of an encoded range.
constexpr std::size_t kVariableSize = 21;

void put_ranges(std::string& to, std::span<const ImageRange> ranges) {
  append_number(to, static_cast<std::uint16_t>(ranges.size()));
  for (const ImageRange& range : ranges) append_numbers(to, range.offset, range.size);
}

/// Reads a number of rows of at least `row` bytes each. Returns 0, and notes a fault in `reader`, if the number exceeds
/// kMostRows or what the bytes that are left can hold.
std::size_t take_count(ByteReader& reader, std::size_t row) noexcept {
  const std::size_t rows = reader.number<std::uint16_t>();
  const bool plausible = rows <= kMostRows && rows <= reader.left() / row;
  reader.check(plausible);
  return plausible ? rows : 0;
}

/// Whether the ranges ascend, do not overlap, and lie within the image.
bool sound_ranges(std::span<const ImageRange> ranges, std::uint32_t image_size) noexcept {
  std::uint64_t end = 0;
  for (const ImageRange& range : ranges) {
    if (range.offset < end) return false;
    end = std::uint64_t{range.offset} + range.size;
    if (end > image_size) return false;
  }
  return true;
}

bool sound_variable(const VariableParameter& p, const ProcedureDescriptor& procedure, const AStackClass& shared) {
  if (!p.in && !p.out) return false;
  if (p.in && !packed_place(procedure.call_ranges, p.length_offset)) return false;
  if (p.out && !packed_place(procedure.return_ranges, p.length_offset)) return false;
  if (std::uint64_t{p.inline_offset} + p.inline_capacity > procedure.image_size) return false;
  if ((p.bound & VariableParameter::kInTail) != 0) return false;
  return p.never_in_tail() || std::uint64_t{p.tail_offset} + p.bound <= shared.tail_size;
}

}  // namespace

std::string encode_descriptors(std::span<const ProcedureDescriptor> procedures) {
  std::string bytes;
  append_number(bytes, static_cast<std::uint16_t>(procedures.size()));
  for (const ProcedureDescriptor& procedure : procedures) {
    const int flags = (procedure.may_block ? kMayBlock : 0) | (procedure.handles ? kHandles : 0);
    append_numbers(bytes, procedure.astack_class, static_cast<std::uint8_t>(flags), procedure.image_size);
    put_ranges(bytes, procedure.call_ranges);
    put_ranges(bytes, procedure.return_ranges);
    put_ranges(bytes, procedure.raised_ranges);
    append_number(bytes, static_cast<std::uint16_t>(procedure.variable_parameters.size()));
    for (const VariableParameter& p : procedure.variable_parameters) {
      const auto directions = static_cast<std::uint8_t>((p.in ? kIn : 0) | (p.out ? kOut : 0));
      append_numbers(bytes, p.length_offset, p.inline_offset, p.inline_capacity, p.tail_offset, p.bound, directions);
    }
  }
  return bytes;
}

Result<ReceivedDescriptors> ReceivedDescriptors::decode(std::span<const std::byte> bytes,
                                                        std::span<const AStackClass> classes) {
  constexpr std::size_t kLeastProcedure = 15;
  ReceivedDescriptors received;
  ByteReader reader(bytes);
  const auto bad = [](const char* what) {
    return Error{Errc::bad_message, std::string("the server's procedure descriptors: ") + what};
  };
  // The descriptors point into these vectors, which therefore must not grow: reserve all that so many bytes can hold.
  received.ranges_.reserve(bytes.size() / kRangeSize);
  received.variables_.reserve(bytes.size() / kVariableSize);
  const std::size_t count = reader.number<std::uint16_t>();
  if (count > limits::kMaxProcedures || count > bytes.size() / kLeastProcedure) return bad("too many");
  const auto take_ranges = [&]() -> std::span<const ImageRange> {
    const std::size_t rows = take_count(reader, kRangeSize);
    for (std::size_t i = 0; i < rows; ++i)
      received.ranges_.push_back({.offset = reader.number<std::uint32_t>(), .size = reader.number<std::uint32_t>()});
    return std::span(received.ranges_).last(rows);
  };
  for (std::size_t i = 0; i < count; ++i) {
    ProcedureDescriptor procedure;
    procedure.astack_class = reader.number<std::uint16_t>();
    const auto flags = reader.number<std::uint8_t>();
    procedure.may_block = (flags & kMayBlock) != 0;
    procedure.handles = (flags & kHandles) != 0;
    procedure.image_size = reader.number<std::uint32_t>();
    procedure.call_ranges = take_ranges();
    procedure.return_ranges = take_ranges();
    procedure.raised_ranges = take_ranges();
    const std::size_t variables = take_count(reader, kVariableSize);
    for (std::size_t v = 0; v < variables; ++v) {
      VariableParameter p;
      for (std::uint32_t* number : {&p.length_offset, &p.inline_offset, &p.inline_capacity, &p.tail_offset, &p.bound})
        *number = reader.number<std::uint32_t>();
      const auto directions = reader.number<std::uint8_t>();
      p.in = (directions & kIn) != 0;
      p.out = (directions & kOut) != 0;
      received.variables_.push_back(p);
    }
    procedure.variable_parameters = std::span(received.variables_).last(variables);
    received.procedures_.push_back(procedure);
  }
  if (!reader.done()) return bad("they are not as long as they say");

  for (const ProcedureDescriptor& procedure : received.procedures_) {
    if (procedure.astack_class >= classes.size()) return bad("an A-stack class that does not exist");
    const AStackClass& shared = classes[procedure.astack_class];
    if (procedure.image_size > shared.image_size) return bad("an image larger than its A-stacks");
    if (!sound_ranges(procedure.call_ranges, procedure.image_size) ||
        !sound_ranges(procedure.return_ranges, procedure.image_size))
      return bad("a range outside its image, or two that overlap");
    for (const ImageRange& raised : procedure.raised_ranges)
      if (!sound_ranges({&raised, 1}, procedure.image_size)) return bad("an error outside its image");
    for (const VariableParameter& p : procedure.variable_parameters)
      if (!sound_variable(p, procedure, shared)) return bad("a string or bytes parameter outside its A-stack");
  }
  return received;
}

}  // namespace lrpc::shim
