// Descriptors as bytes. Little-endian:
//
//   u16 number of procedures, then for each
//     u16 A-stack class · u8 flags (1 may_block, 2 handles) · u32 image size
//     three times, for call, return, raised:  u16 count, then offset u32 · size u32 each
//     u16 count of variable parameters, then  u32 length offset · inline offset · inline capacity · tail offset · bound
//                                             · u8 directions (1 in, 2 out) each
#include <algorithm>

#include "lrpc/detail/shim/call/packed_image.h"
#include "lrpc/detail/shim/system/little_endian.h"

namespace lrpc::shim {
namespace {

constexpr std::uint8_t kMayBlock = 1;
constexpr std::uint8_t kHandles = 2;
constexpr std::uint8_t kIn = 1;
constexpr std::uint8_t kOut = 2;
constexpr std::size_t kMostRows = 1024;  ///< Of one procedure's lists, each.

void put_ranges(std::string& to, std::span<const ImageRange> ranges) {
  append_number(to, static_cast<std::uint16_t>(ranges.size()));
  for (const ImageRange& range : ranges) {
    append_number(to, range.offset);
    append_number(to, range.size);
  }
}

/// A number of rows, each of at least `row` bytes.
std::size_t take_count(ByteReader& reader, std::size_t row) noexcept {
  const std::size_t rows = reader.number<std::uint16_t>();
  const bool plausible = rows <= kMostRows && rows <= reader.left() / row;
  reader.check(plausible);
  return plausible ? rows : 0;
}

/// Ascending, apart from each other, within the image.
bool sound_ranges(std::span<const ImageRange> ranges, std::uint32_t image_size) noexcept {
  std::uint64_t end = 0;
  for (const ImageRange& range : ranges) {
    if (range.offset < end) return false;
    end = std::uint64_t{range.offset} + range.size;
    if (end > image_size) return false;
  }
  return true;
}

bool holds_word(std::span<const ImageRange> ranges, std::uint32_t offset) noexcept {
  return std::ranges::any_of(ranges, [&](const ImageRange& range) {
    return offset >= range.offset && std::uint64_t{offset} + 4 <= std::uint64_t{range.offset} + range.size;
  });
}

bool sound_variable(const VariableParameter& p, const ProcedureDescriptor& procedure, const AStackClass& shared) {
  if (!p.in && !p.out) return false;
  if (p.in && !holds_word(procedure.call_ranges, p.length_offset)) return false;
  if (p.out && !holds_word(procedure.return_ranges, p.length_offset)) return false;
  if (std::uint64_t{p.inline_offset} + p.inline_capacity > procedure.image_size) return false;
  if ((p.bound & VariableParameter::kInTail) != 0) return false;
  return p.bound <= p.inline_capacity || std::uint64_t{p.tail_offset} + p.bound <= shared.tail_size;
}

}  // namespace

std::string encode_descriptors(std::span<const ProcedureDescriptor> procedures) {
  std::string bytes;
  append_number(bytes, static_cast<std::uint16_t>(procedures.size()));
  for (const ProcedureDescriptor& procedure : procedures) {
    append_number(bytes, procedure.astack_class);
    append_number(
        bytes, static_cast<std::uint8_t>((procedure.may_block ? kMayBlock : 0) | (procedure.handles ? kHandles : 0)));
    append_number(bytes, procedure.image_size);
    put_ranges(bytes, procedure.call_ranges);
    put_ranges(bytes, procedure.return_ranges);
    put_ranges(bytes, procedure.raised_ranges);
    append_number(bytes, static_cast<std::uint16_t>(procedure.variable_parameters.size()));
    for (const VariableParameter& p : procedure.variable_parameters) {
      for (const std::uint32_t number : {p.length_offset, p.inline_offset, p.inline_capacity, p.tail_offset, p.bound})
        append_number(bytes, number);
      append_number(bytes, static_cast<std::uint8_t>((p.in ? kIn : 0) | (p.out ? kOut : 0)));
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
  /// Rows are numbered while the vectors still grow; the descriptors point at them in the end.
  struct Counts {
    std::size_t call, returned, raised, variables;
  };
  std::vector<Counts> counts;
  const std::size_t count = reader.number<std::uint16_t>();
  if (count > limits::kMaxProcedures || count > bytes.size() / kLeastProcedure) return bad("too many");
  const auto take_ranges = [&] {
    const std::size_t rows = take_count(reader, 8);
    for (std::size_t i = 0; i < rows; ++i) {
      ImageRange range;
      range.offset = reader.number<std::uint32_t>();
      range.size = reader.number<std::uint32_t>();
      received.ranges_.push_back(range);
    }
    return rows;
  };
  for (std::size_t i = 0; i < count; ++i) {
    ProcedureDescriptor procedure;
    procedure.astack_class = reader.number<std::uint16_t>();
    const auto flags = reader.number<std::uint8_t>();
    procedure.may_block = (flags & kMayBlock) != 0;
    procedure.handles = (flags & kHandles) != 0;
    procedure.image_size = reader.number<std::uint32_t>();
    Counts rows{};
    rows.call = take_ranges();
    rows.returned = take_ranges();
    rows.raised = take_ranges();
    rows.variables = take_count(reader, 21);
    for (std::size_t v = 0; v < rows.variables; ++v) {
      VariableParameter p;
      for (std::uint32_t* number : {&p.length_offset, &p.inline_offset, &p.inline_capacity, &p.tail_offset, &p.bound})
        *number = reader.number<std::uint32_t>();
      const auto directions = reader.number<std::uint8_t>();
      p.in = (directions & kIn) != 0;
      p.out = (directions & kOut) != 0;
      received.variables_.push_back(p);
    }
    received.procedures_.push_back(procedure);
    counts.push_back(rows);
  }
  if (!reader.done()) return bad("they are not as long as they say");

  std::span<const ImageRange> ranges = received.ranges_;
  std::span<const VariableParameter> variables = received.variables_;
  const auto next = [](auto& from, std::size_t rows) {
    const auto taken = from.first(rows);
    from = from.subspan(rows);
    return taken;
  };
  for (std::size_t i = 0; i < count; ++i) {
    ProcedureDescriptor& procedure = received.procedures_[i];
    procedure.call_ranges = next(ranges, counts[i].call);
    procedure.return_ranges = next(ranges, counts[i].returned);
    procedure.raised_ranges = next(ranges, counts[i].raised);
    procedure.variable_parameters = next(variables, counts[i].variables);
    if (procedure.astack_class >= classes.size()) return bad("an A-stack class that does not exist");
    const AStackClass& shared = classes[procedure.astack_class];
    if (procedure.image_size > shared.image_size) return bad("an image larger than its A-stacks");
    if (!sound_ranges(procedure.call_ranges, procedure.image_size) ||
        !sound_ranges(procedure.return_ranges, procedure.image_size))
      return bad("a range outside its image, or two that overlap");
    for (const ImageRange& raised : procedure.raised_ranges) {
      if (std::uint64_t{raised.offset} + raised.size > procedure.image_size) return bad("an error outside its image");
    }
    for (const VariableParameter& p : procedure.variable_parameters) {
      if (!sound_variable(p, procedure, shared)) return bad("a string or bytes parameter outside its A-stack");
    }
  }
  return received;
}

}  // namespace lrpc::shim
