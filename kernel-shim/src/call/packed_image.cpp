#include "lrpc/detail/shim/call/packed_image.h"

#include <algorithm>
#include <cstring>

#include "lrpc/detail/shim/call/variable.h"

namespace lrpc::shim {
namespace {

std::uint64_t size_of(std::span<const ImageRange> ranges) noexcept {
  std::uint64_t size = 0;
  for (const ImageRange& range : ranges) size += range.size;
  return size;
}

/// Where on the A-stack the value of `p` lies, according to its length word among the packed bytes; nullopt if that
/// breaks the bounds.
std::optional<std::span<std::byte>> place_of(std::span<const ImageRange> ranges, std::span<const std::byte> packed,
                                             const VariableParameter& p, const AStack& astack) noexcept {
  const auto at = packed_place(ranges, p.length_offset);
  if (!at) return std::nullopt;
  std::uint32_t word = 0;  // among packed bytes it need not be aligned
  std::memcpy(&word, packed.data() + *at, sizeof word);
  const auto said = judge_length(word, p);
  if (!said || (said->in_tail && astack.tail == nullptr)) return std::nullopt;
  return std::span(said->in_tail ? astack.tail + p.tail_offset : astack.image + p.inline_offset, said->size);
}

}  // namespace

std::optional<std::size_t> packed_place(std::span<const ImageRange> ranges, std::uint32_t offset) noexcept {
  std::size_t before = 0;
  for (const ImageRange& range : ranges) {
    if (offset >= range.offset &&
        std::uint64_t{offset} + sizeof(std::uint32_t) <= std::uint64_t{range.offset} + range.size)
      return before + (offset - range.offset);
    before += range.size;
  }
  return std::nullopt;
}

std::uint64_t PackedShape::most() const noexcept {
  std::uint64_t size = size_of(ranges);
  for (const VariableParameter& p : variables) size += p.*goes ? p.bound : 0;
  return size;
}

std::uint64_t most_returned(const ProcedureDescriptor& procedure) noexcept {
  std::uint64_t most = PackedShape::of_return(procedure).most();
  for (const ImageRange& raised : procedure.raised_ranges) most = std::max<std::uint64_t>(most, raised.size);
  return most;
}

std::optional<std::size_t> pack(const PackedShape& shape, const AStack& astack, std::span<std::byte> out) noexcept {
  std::size_t size = 0;
  for (const ImageRange& range : shape.ranges) {
    if (range.size > out.size() - size) return std::nullopt;
    if (range.size != 0) std::memcpy(out.data() + size, astack.image + range.offset, range.size);
    size += range.size;
  }
  const auto fixed = out.first(size);
  for (const VariableParameter& p : shape.variables) {
    if (!(p.*shape.goes)) continue;
    const auto value = place_of(shape.ranges, fixed, p, astack);
    if (!value || value->size() > out.size() - size) return std::nullopt;
    if (!value->empty()) std::memcpy(out.data() + size, value->data(), value->size());
    size += value->size();
  }
  return size;
}

bool unpack(const PackedShape& shape, std::span<const std::byte> packed, const AStack& astack) noexcept {
  const std::uint64_t fixed = size_of(shape.ranges);
  if (packed.size() < fixed) return false;
  // Check the lengths first, so that nothing has been written if one of them is wrong.
  std::uint64_t wanted = fixed;
  const auto for_each = [&](auto&& with) {
    for (const VariableParameter& p : shape.variables) {
      if (!(p.*shape.goes)) continue;
      const auto place = place_of(shape.ranges, packed, p, astack);
      if (!place) return false;
      with(*place);
    }
    return true;
  };
  if (!for_each([&](std::span<std::byte> place) { wanted += place.size(); }) || wanted != packed.size()) return false;

  const std::byte* from = packed.data();
  for (const ImageRange& range : shape.ranges) {
    if (range.size != 0) std::memcpy(astack.image + range.offset, from, range.size);
    from += range.size;
  }
  return for_each([&](std::span<std::byte> place) {
    if (!place.empty()) std::memcpy(place.data(), from, place.size());
    from += place.size();
  });
}

}  // namespace lrpc::shim
