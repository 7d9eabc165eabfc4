#include "xdr_values.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/stubgen/layout/xdr_subset.h"

namespace lrpc::sun {
namespace {

static_assert(std::endian::native == std::endian::little, "images are little-endian");

using netrpc::XdrReader;
using netrpc::XdrWriter;
using stubgen::Integer;
using stubgen::IntegerKind;
using stubgen::Parameter;
using stubgen::Procedure;
using stubgen::Type;
using stubgen::TypeKind;

constexpr IntegerKind kWord{.is_signed = true, .bits = 32};
constexpr std::size_t kLengthWord = 4;

// ---- integers ----

/// Stores the lowest `size` bytes.
void store(std::byte* at, std::uint64_t value, std::size_t size) noexcept { std::memcpy(at, &value, size); }
std::uint64_t load(const std::byte* at, std::size_t size) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, at, size);
  return value;
}

Integer meant(std::uint64_t bits, IntegerKind kind) {
  const unsigned unused = 64 - kind.bits;
  const auto extended = static_cast<std::int64_t>(bits << unused) >> unused;
  if (kind.is_signed && extended < 0) return {true, ~static_cast<std::uint64_t>(extended) + 1};
  return bits << unused >> unused;
}
std::uint64_t bits_of(const Integer& value) noexcept { return value.negative ? ~value.magnitude + 1 : value.magnitude; }

/// The XDR type of an interface's integer: a word, or a hyper.
IntegerKind in_xdr(const Type& type) {
  if (stubgen::is_xdr_enum(type)) return kWord;
  return {.is_signed = type.integer.is_signed, .bits = type.integer.bits == 64 ? 64U : 32U};
}

// ---- what conforms ----

/// Whether the image of a value is valid for its type: the same checks as the generated ones (docs/INTERFACE.md,
/// "Types").
bool conforms(const Type& type, const std::byte* at) {
  if (!type.fallible) return true;
  switch (type.kind) {
    case TypeKind::boolean: return load(at, 1) <= 1;
    case TypeKind::string: return load(at, kLengthWord) <= type.bound;
    case TypeKind::enumeration: {
      const Integer value = meant(load(at, type.size), type.integer);
      return std::any_of(type.enumerators.begin(), type.enumerators.end(),
                         [&](const stubgen::Enumerator& one) { return one.value == value; });
    }
    case TypeKind::alias: {
      if (!conforms(*type.target, at)) return false;
      if (!type.low && !type.high) return true;
      const Integer value = meant(load(at, type.size), type.resolved().integer);
      return (!type.low || *type.low <= value) && (!type.high || value <= *type.high);
    }
    case TypeKind::record:
      return std::all_of(type.fields.begin(), type.fields.end(),
                         [&](const stubgen::Field& field) { return conforms(*field.type, at + field.offset); });
    case TypeKind::array:
      for (std::uint64_t i = 0; i < type.bound; ++i)
        if (!conforms(*type.target, at + i * type.target->size)) return false;
      return true;
    default: return true;
  }
}

// ---- from XDR ----

bool read_integer(const Type& type, XdrReader& xdr, std::byte* at) {
  const IntegerKind kind = in_xdr(type);
  const Integer value = meant(kind.bits == 64 ? xdr.hyper() : xdr.word(), kind);
  store(at, bits_of(value), type.size);
  return value >= type.integer.lowest() && value <= type.integer.highest();
}

/// Reads what the image can hold; the caller then checks conforms(). Leaves the image's padding as it is.
bool read(const Type& named, XdrReader& xdr, std::byte* at) {
  const Type& type = named.resolved();
  switch (type.kind) {
    case TypeKind::integer:
    case TypeKind::enumeration: return read_integer(type, xdr, at);
    case TypeKind::floating: store(at, type.size == 4 ? xdr.word() : xdr.hyper(), type.size); break;
    case TypeKind::boolean: store(at, xdr.boolean() ? 1 : 0, 1); break;
    case TypeKind::byte: {
      const std::uint32_t value = xdr.word();
      store(at, value, 1);
      return xdr.right() && value <= 0xff;
    }
    case TypeKind::record:
      for (const stubgen::Field& field : type.fields)
        if (!read(*field.type, xdr, at + field.offset)) return false;
      break;
    case TypeKind::string: {
      const auto text = xdr.opaque(type.bound);
      store(at, text.size(), kLengthWord);
      if (!text.empty()) std::memcpy(at + kLengthWord, text.data(), text.size());
      break;
    }
    case TypeKind::array:
      if (stubgen::is_xdr_opaque(type)) {
        const auto bytes = xdr.fixed(type.bound);
        if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
        break;
      }
      for (std::uint64_t i = 0; i < type.bound; ++i)
        if (!read(*type.target, xdr, at + i * type.target->size)) return false;
      break;
    default: return false;  // handles, which no procedure here passes; bytes are in no image
  }
  return xdr.right();
}

// ---- to XDR ----

/// Precondition: the value conforms.
void write(const Type& named, const std::byte* at, XdrWriter& xdr) {
  const Type& type = named.resolved();
  switch (type.kind) {
    case TypeKind::integer:
    case TypeKind::enumeration: {
      const std::uint64_t bits = bits_of(meant(load(at, type.size), type.integer));
      in_xdr(type).bits == 64 ? xdr.hyper(bits) : xdr.word(static_cast<std::uint32_t>(bits));
      return;
    }
    case TypeKind::floating:
      type.size == 4 ? xdr.word(static_cast<std::uint32_t>(load(at, 4))) : xdr.hyper(load(at, 8));
      return;
    case TypeKind::boolean:
    case TypeKind::byte: xdr.word(static_cast<std::uint32_t>(load(at, 1))); return;
    case TypeKind::record:
      for (const stubgen::Field& field : type.fields) write(*field.type, at + field.offset, xdr);
      return;
    case TypeKind::string: xdr.opaque({at + kLengthWord, load(at, kLengthWord)}); return;
    case TypeKind::array:
      if (stubgen::is_xdr_opaque(type)) {
        xdr.fixed({at, type.bound});
        return;
      }
      for (std::uint64_t i = 0; i < type.bound; ++i) write(*type.target, at + i * type.target->size, xdr);
      return;
    default: return;
  }
}

// ---- whole images ----

/// The length word of a value, which says where the value lies on an A-stack (lrpc/detail/shim/call/variable.h). As
/// put_variable() makes it, except for bytes that are results: the procedure reads and writes them in one place.
std::uint32_t length_word(const Parameter& parameter, std::size_t size) {
  const bool whole = parameter.is_bytes() && parameter.is_out();
  const std::uint64_t placed = whole ? parameter.type->resolved().bound : size;
  return static_cast<std::uint32_t>(size) |
         (placed > parameter.window.inline_capacity ? VariableParameter::kInTail : 0);
}

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Whether a parameter is passed in a given direction.
using Goes = bool (Parameter::*)() const;

/// Converts the values of one direction from XDR to their packed image.
bool pack(const Procedure& procedure, Goes goes, const std::vector<stubgen::ByteRange>& ranges, XdrReader& reader,
          Scratch& scratch, std::vector<std::byte>& packed) {
  scratch.image.assign(procedure.fixed_size, std::byte{0});
  scratch.windows.clear();
  for (const Parameter& parameter : procedure.parameters) {
    if (!(parameter.*goes)()) continue;
    std::byte* const at = scratch.image.data() + parameter.offset;
    if (!parameter.variable()) {
      if (!read(*parameter.type, reader, at) || !conforms(*parameter.type, at)) return false;
      continue;
    }
    scratch.windows.push_back(reader.opaque(parameter.type->resolved().bound));
    store(at, length_word(parameter, scratch.windows.back().size()), kLengthWord);
  }
  if (!reader.at_end()) return false;
  packed.clear();
  for (const stubgen::ByteRange& range : ranges)
    append(packed, std::span(scratch.image).subspan(range.offset, range.size));
  for (const std::span<const std::byte> window : scratch.windows) append(packed, window);
  return true;
}

/// The reverse.
bool unpack(const Procedure& procedure, Goes goes, const std::vector<stubgen::ByteRange>& ranges,
            std::span<const std::byte> packed, Scratch& scratch, XdrWriter& xdr) {
  scratch.image.assign(procedure.fixed_size, std::byte{0});
  for (const stubgen::ByteRange& range : ranges) {
    if (range.size > packed.size()) return false;
    std::memcpy(scratch.image.data() + range.offset, packed.data(), range.size);
    packed = packed.subspan(range.size);
  }
  for (const Parameter& parameter : procedure.parameters) {
    if (!(parameter.*goes)()) continue;
    const std::byte* const at = scratch.image.data() + parameter.offset;
    if (!parameter.variable()) {
      if (!conforms(*parameter.type, at)) return false;
      write(*parameter.type, at, xdr);
      continue;
    }
    const std::size_t size = load(at, kLengthWord) & ~std::uint64_t{VariableParameter::kInTail};
    if (size > parameter.type->resolved().bound || size > packed.size()) return false;
    xdr.opaque(packed.first(size));
    packed = packed.subspan(size);
  }
  return packed.empty();
}

/// The size of an error's image; an error without fields has none.
std::size_t packed_size(const Type& error) { return error.fields.empty() ? 0 : error.size; }

}  // namespace

bool pack_arguments(const Procedure& procedure, std::span<const std::byte> xdr, Scratch& scratch,
                    std::vector<std::byte>& packed) {
  XdrReader reader(xdr);
  return pack(procedure, &Parameter::is_in, procedure.call_ranges, reader, scratch, packed);
}

bool unpack_results(const Procedure& procedure, std::uint16_t status, std::span<const std::byte> packed,
                    Scratch& scratch, XdrWriter& xdr) {
  if (status > procedure.raises.size()) return false;
  if (!procedure.raises.empty()) xdr.word(status);
  if (status == 0) return unpack(procedure, &Parameter::is_out, procedure.return_ranges, packed, scratch, xdr);
  const Type& error = *procedure.raises[status - 1U].type;
  if (packed.size() != packed_size(error) || !conforms(error, packed.data())) return false;
  write(error, packed.data(), xdr);
  return true;
}

bool unpack_arguments(const Procedure& procedure, std::span<const std::byte> packed, Scratch& scratch, XdrWriter& xdr) {
  return unpack(procedure, &Parameter::is_in, procedure.call_ranges, packed, scratch, xdr);
}

std::optional<std::uint16_t> pack_results(const Procedure& procedure, std::span<const std::byte> xdr, Scratch& scratch,
                                          std::vector<std::byte>& packed) {
  XdrReader reader(xdr);
  const std::uint32_t status = procedure.raises.empty() ? 0 : reader.word();
  if (!reader.right() || status > procedure.raises.size()) return std::nullopt;
  if (status == 0) {
    if (!pack(procedure, &Parameter::is_out, procedure.return_ranges, reader, scratch, packed)) return std::nullopt;
    return 0;
  }
  const Type& error = *procedure.raises[status - 1U].type;
  packed.assign(packed_size(error), std::byte{0});
  if (!read(error, reader, packed.data()) || !reader.at_end() || !conforms(error, packed.data())) return std::nullopt;
  return static_cast<std::uint16_t>(status);
}

std::uint64_t ArgumentSizes::most(const Procedure& procedure) {
  std::uint64_t size = 0;
  for (const Parameter& parameter : procedure.parameters)
    if (parameter.is_in()) size += most_of(*parameter.type);
  return size;
}

/// The depth is bounded by limits::kMaxNesting.
std::uint64_t ArgumentSizes::most_of(const Type& named) {
  ++looked_;
  const Type& type = named.resolved();
  if (const auto known = known_.find(&type); known != known_.end()) return known->second;
  std::uint64_t size = 4;  // bool, byte
  switch (type.kind) {
    case TypeKind::integer:
    case TypeKind::enumeration: size = in_xdr(type).bits / 8; break;
    case TypeKind::floating: size = type.size; break;
    case TypeKind::record:
      size = 0;
      for (const stubgen::Field& field : type.fields) size += most_of(*field.type);
      break;
    case TypeKind::string:
    case TypeKind::bytes: size = kLengthWord + netrpc::xdr_padded(type.bound); break;
    case TypeKind::array:
      size = stubgen::is_xdr_opaque(type) ? netrpc::xdr_padded(type.bound) : type.bound * most_of(*type.target);
      break;
    default: break;
  }
  return known_[&type] = size;
}

}  // namespace lrpc::sun
