#include "moves.h"

#include <algorithm>

namespace lrpc::stubgen {

std::string cpp_type(const Type& type) {
  if (type.declared) return type.spelled;
  switch (type.kind) {
    case TypeKind::integer: return fmt::format("std::{}_t", type.name);
    case TypeKind::floating: return type.size == 4 ? "float" : "double";
    case TypeKind::boolean: return "bool";
    case TypeKind::byte: return "std::byte";
    case TypeKind::string: return fmt::format("lrpc::String<{}>", type.bound);
    case TypeKind::array: return fmt::format("std::array<{}, {}>", cpp_type(*type.target), type.bound);
    default: return type.name;
  }
}

std::string cpp_constant(const Integer& value) {
  // The smallest int64 has no literal, because its magnitude does not fit an int64. The largest uint64s have only an
  // unsigned literal.
  if (value.negative && value.magnitude == std::uint64_t{1} << 63) return "-9223372036854775807 - 1";
  return value.text() + (value.magnitude >> 63 != 0 ? "U" : "");
}

std::string Place::text() const { return fmt::format("{} + {}{}", base, offset, stride); }

Place Place::element(std::string_view index, std::uint64_t size) const {
  return {base, offset, fmt::format("{} + {} * {}", stride, index, size)};
}

template <class Body>
void Moves::for_each(const Type& array, const Body& body) const {
  static_assert(limits::kMaxExtents == 4, "a loop variable for each dimension");
  const std::string index = locals_(std::string_view("ijkl").substr(depth_, 1));
  ++depth_;
  code_.open(fmt::format("for (std::size_t {0} = 0; {0} < {1}; ++{0}) {{", index, array.bound));
  body(index);
  code_.close();
  --depth_;
}

void Moves::put(const Type& type, const Place& place, const std::string& value) const {
  const Type& resolved = type.resolved();
  switch (resolved.kind) {
    case TypeKind::handle: return code_.line("lrpc::put_scalar<{}>({}, {}.value);", copy_code_, place.text(), value);
    case TypeKind::string: return code_.line("lrpc::put_string_field<{}>({}, {});", copy_code_, place.text(), value);
    case TypeKind::record:
      if (resolved.fields.empty()) return;
      return code_.line("{}<{}>({}, {});", function("put_" + resolved.name), copy_code_, place.text(), value);
    case TypeKind::array:
      if (resolved.plain)
        return code_.line("lrpc::copy_bytes<{}>({}, {}.data(), {});", copy_code_, place.text(), value, resolved.size);
      return for_each(resolved, [&](const std::string& index) {
        put(*resolved.target, place.element(index, resolved.target->size), fmt::format("{}[{}]", value, index));
      });
    default: return code_.line("lrpc::put_scalar<{}>({}, {});", copy_code_, place.text(), value);
  }
}

void Moves::get(const Type& type, const Place& place, const std::string& target, const std::string& on_failure) const {
  const Type& resolved = type.resolved();
  const auto load = [&](const std::string& loader) {
    code_.guard(fmt::format("!{}<{}>({}, {})", loader, copy_code_, place.text(), target), on_failure);
  };
  switch (resolved.kind) {
    case TypeKind::handle:
      return code_.line("{}.value = lrpc::get_scalar<{}, std::uint64_t>({});", target, copy_code_, place.text());
    case TypeKind::boolean: return load("lrpc::get_bool");
    case TypeKind::string: return load("lrpc::get_string_field");
    case TypeKind::record:
      if (resolved.fields.empty()) return;
      if (resolved.fallible) return load(function("get_" + resolved.name));
      return code_.line("{}<{}>({}, {});", function("get_" + resolved.name), copy_code_, place.text(), target);
    case TypeKind::array:
      if (resolved.plain)
        return code_.line("lrpc::copy_bytes<{}>({}.data(), {}, {});", copy_code_, target, place.text(), resolved.size);
      return for_each(resolved, [&](const std::string& index) {
        get(*resolved.target, place.element(index, resolved.target->size), fmt::format("{}[{}]", target, index),
            on_failure);
      });
    default:
      code_.line("{} = lrpc::get_scalar<{}, {}>({});", target, copy_code_, cpp_type(type), place.text());
      return check(type, target, on_failure);
  }
}

void Moves::declare(const Type& type, const Place& place, const std::string& name, bool changes,
                    const std::string& on_failure) const {
  const std::string spelled = cpp_type(type);
  switch (type.resolved().kind) {
    case TypeKind::integer:
    case TypeKind::floating:
    case TypeKind::byte:
    case TypeKind::enumeration:
      code_.line("{}auto {} = lrpc::get_scalar<{}, {}>({});", changes ? "" : "const ", name, copy_code_, spelled,
                 place.text());
      return check(type, name, on_failure);
    case TypeKind::handle:
      return code_.line("const {} {}{{lrpc::get_scalar<{}, std::uint64_t>({})}};", spelled, name, copy_code_,
                        place.text());
    default:
      code_.line("{} {}{};", spelled, name, type.resolved().kind == TypeKind::boolean ? " = false" : "");
      return get(type, place, name, on_failure);
  }
}

void Moves::check(const Type& type, const std::string& value, const std::string& on_failure) const {
  if (!type.constrained) return;
  if (type.declared) return code_.guard(fmt::format("!{}({})", function("is_" + type.name), value), on_failure);
  for_each(type,
           [&](const std::string& index) { check(*type.target, fmt::format("{}[{}]", value, index), on_failure); });
}

bool moves_blocks(const Type& type) {
  const Type& resolved = type.resolved();
  switch (resolved.kind) {
    case TypeKind::string: return true;
    case TypeKind::array: return resolved.plain || moves_blocks(*resolved.target);
    case TypeKind::record:
      return std::ranges::any_of(resolved.fields, [](const Field& field) { return moves_blocks(*field.type); });
    default: return false;
  }
}

}  // namespace lrpc::stubgen
