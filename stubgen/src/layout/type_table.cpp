#include "type_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace lrpc::stubgen {
namespace {

constexpr std::array<std::string_view, 8> kNumbersOfC = {"char", "double", "float",  "int",
                                                         "long", "short",  "signed", "unsigned"};

}  // namespace

TypeTable::TypeTable(Interface& interface, Diagnostics& diagnostics)
    : interface_(interface), diagnostics_(diagnostics) {
  for (const bool is_signed : {true, false}) {
    for (const unsigned bits : {8U, 16U, 32U, 64U}) {
      const IntegerKind integer{is_signed, bits};
      Type& type = make(integer.name(), TypeKind::integer);
      type.integer = integer;
      type.size = type.alignment = bits / 8;
    }
  }
  for (const unsigned bits : {32U, 64U}) {
    Type& type = make(fmt::format("float{}", bits), TypeKind::floating);
    type.size = type.alignment = bits / 8;
  }
  make("bool", TypeKind::boolean).size = 1;
  make("byte", TypeKind::byte).size = 1;
  for (const auto& type : interface_.types) {
    type->plain = type->kind != TypeKind::boolean;
    type->fallible = !type->plain;
  }
}

Type& TypeTable::make(std::string name, TypeKind kind) {
  Type& type = *interface_.types.emplace_back(std::make_unique<Type>());
  type.kind = kind;
  type.name = std::move(name);
  by_name_.try_emplace(type.name, &type);
  return type;
}

Type* TypeTable::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

Type& TypeTable::declare(const ast::Name& name, TypeKind kind, const Doc& doc) {
  Type& type = make(name.text, kind);
  type.declared = true;
  type.at = name.at;
  type.doc = doc;
  interface_.declared.push_back(&type);
  return type;
}

// --- Declarations ----------------------------------------------------------------------------------------------------

void TypeTable::define(Type& type, const ast::Enum& declaration) {
  // Of a wrong integer only that is reported, not each value that some other one could not hold.
  type.integer = {false, 8};
  bool integer_known = false;
  if (!declaration.underlying) {
    diagnostics_.error(type.at, fmt::format("the enum '{}' does not say what integer it is", type.name),
                       fmt::format("write 'enum {} : uint8 {{ ... }}'", type.name));
  } else if (const Type* underlying = find(declaration.underlying->text);
             underlying == nullptr || underlying->kind != TypeKind::integer) {
    diagnostics_.error(declaration.underlying->at, fmt::format("'{}' is no integer type", declaration.underlying->text),
                       "an enum is one of int8 .. int64 or uint8 .. uint64");
  } else {
    type.integer = underlying->integer;
    integer_known = true;
  }
  if (declaration.enumerators.empty() && !declaration.incomplete)
    diagnostics_.error(type.at, fmt::format("the enum '{}' has no values", type.name), "no call could ever pass one");
  if (declaration.enumerators.size() > limits::kMaxMembers)
    return diagnostics_.error(type.at, fmt::format("the enum '{}' has {} values; the limit is {}", type.name,
                                                   declaration.enumerators.size(), limits::kMaxMembers));
  Scope names(diagnostics_);
  std::map<Integer, const ast::Enumerator*> by_value;
  std::optional<Integer> next = 0;  // none: no integer type has a larger value
  for (const ast::Enumerator& enumerator : declaration.enumerators) {
    names.declare(enumerator.name, NameUse::member);
    const Location at = enumerator.value ? enumerator.value->at : enumerator.name.at;
    if (!enumerator.value && !next)
      return diagnostics_.error(at, fmt::format("'{}' would be one more than {}, the largest value of all",
                                                enumerator.name.text, Integer(UINT64_MAX).text()));
    const Integer value = enumerator.value ? enumerator.value->value : *next;
    next = value.next();
    if (next == value) next.reset();
    if (integer_known && (value < type.integer.lowest() || value > type.integer.highest())) {
      diagnostics_.error(at, fmt::format("{} is no value of the enum's type, which goes from {} to {}", value.text(),
                                         type.integer.lowest().text(), type.integer.highest().text()));
    } else if (const auto [first, fresh] = by_value.try_emplace(value, &enumerator); !fresh) {
      diagnostics_.error(at, fmt::format("'{}' has the value {} of '{}'", enumerator.name.text, value.text(),
                                         first->second->name.text));
      diagnostics_.note(first->second->name.at, "each value of an enum has one name");
    }
    type.enumerators.push_back({enumerator.doc, enumerator.name.text, value});
  }
}

void TypeTable::define(Type& type, const ast::Alias& declaration) {
  Type* target = type_of(declaration.type);
  if (target != nullptr && !may_be_inside(*target, declaration.type.name.at, "named by 'type'")) target = nullptr;
  type.target = target != nullptr ? target : find("int32");
  // complete() checks whether the range fits, once the target's own range is known.
  if (target != nullptr && declaration.range) aliases_[&type] = &declaration;
}

void TypeTable::define(Type& type, const ast::Record& declaration) {
  if (declaration.fields.empty() && !declaration.incomplete && !declaration.is_error)
    diagnostics_.error(type.at, fmt::format("the record '{}' has no fields", type.name),
                       "leave it out: there is nothing to pass");
  if (declaration.fields.size() > limits::kMaxMembers)
    return diagnostics_.error(type.at, fmt::format("'{}' has {} fields; the limit is {}", type.name,
                                                   declaration.fields.size(), limits::kMaxMembers));
  Scope names(diagnostics_);
  for (const ast::Field& field : declaration.fields) {
    names.declare(field.name, NameUse::member);
    const Type* field_type = type_of(field.type);
    if (field_type == nullptr || !may_be_inside(*field_type, field.type.name.at, "a field")) continue;
    type.fields.push_back({field.doc, field.name.text, field_type, 0});
  }
}

/// Reports a type that cannot be a field, an element or an alias: bytes<N> and handles are only for parameters and
/// results, errors only for `raises`.
bool TypeTable::may_be_inside(const Type& type, Location at, std::string_view inside) {
  if (type.kind == TypeKind::bytes) {
    diagnostics_.error(at, fmt::format("bytes<N> cannot be {}, only a parameter or a result", inside),
                       "use byte[N] with a length beside it, or a parameter of its own");
  } else if (type.kind == TypeKind::handle) {
    diagnostics_.error(at, fmt::format("a handle cannot be {}, only a parameter or a result", inside),
                       "pass the handle as a parameter of its own");
  } else if (type.kind == TypeKind::record && type.is_error) {
    diagnostics_.error(at, fmt::format("the error '{}' cannot be {}: errors are for 'raises'", type.name, inside),
                       "declare a record with the same fields");
  } else {
    return true;
  }
  return false;
}

// --- Types spelled in place ------------------------------------------------------------------------------------------

Type* TypeTable::type_of(const ast::TypeRef& ref) {
  Type* type = named(ref);
  if (type == nullptr) return nullptr;
  if (ref.extents.size() > limits::kMaxExtents) {
    diagnostics_.error(ref.extents[limits::kMaxExtents].at,
                       fmt::format("an array has at most {} dimensions", limits::kMaxExtents));
    diagnostics_.note(ref.name.at, "put the inner arrays into a record");
    return nullptr;
  }
  // T[2][3] is two arrays of three: the innermost extent is the last one.
  if (!ref.extents.empty() && !may_be_inside(*type, ref.name.at, "an array's element")) return nullptr;
  for (auto extent = ref.extents.rbegin(); extent != ref.extents.rend(); ++extent) {
    type = array_of(type, *extent);
    if (type == nullptr) return nullptr;
  }
  return type;
}

Type* TypeTable::named(const ast::TypeRef& ref) {
  const std::string& name = ref.name.text;
  const bool bounded = name == "string" || name == "bytes";
  if (!bounded) {
    Type* type = find(name);
    if (type == nullptr) {
      diagnostics_.error(ref.name.at, fmt::format("there is no type '{}'", name),
                         std::ranges::find(kNumbersOfC, name) != kNumbersOfC.end() || name.ends_with("_t")
                             ? "types say their size: int8 .. int64, uint8 .. uint64, float32, float64, byte"
                             : "declare it with 'type', 'enum', 'record' or 'handle' in this interface");
    } else if (ref.bound) {
      diagnostics_.error(ref.bound->at, fmt::format("'{}' takes no bound", name),
                         fmt::format("an array is written {}[N]", name));
      return nullptr;
    }
    return type;
  }
  const std::uint64_t limit = name == "string" ? limits::kMaxStringBound : limits::kMaxTailSize;
  if (!ref.bound) {
    diagnostics_.error(ref.name.at, fmt::format("'{}' says no bound", name),
                       fmt::format("write {}<255> for at most 255 bytes", name));
    return nullptr;
  }
  if (ref.bound->value < Integer(1) || ref.bound->value > Integer(limit)) {
    diagnostics_.error(ref.bound->at,
                       fmt::format("the bound of {} is from 1 to {}, not {}", name, limit, ref.bound->value.text()));
    if (name == "string" && ref.bound->value > Integer(limit)) {
      diagnostics_.note(ref.bound->at,
                        fmt::format("a parameter or result bytes<N> holds up to {}", limits::kMaxTailSize));
    }
    return nullptr;
  }
  std::string spelled = fmt::format("{}<{}>", name, ref.bound->value.text());
  if (Type* known = find(spelled)) return known;
  Type& type = make(std::move(spelled), name == "string" ? TypeKind::string : TypeKind::bytes);
  type.bound = ref.bound->value.magnitude;
  if (type.kind == TypeKind::string) {
    // Inside a record: a length word and N bytes.
    type.alignment = 4;
    type.size = align_up(4 + type.bound, 4);
    type.fallible = true;
  }
  return &type;
}

Type* TypeTable::array_of(Type* element, const ast::Number& extent) {
  if (extent.value < Integer(1)) {
    diagnostics_.error(extent.at, fmt::format("an array cannot have {} elements", extent.value.text()),
                       "leave it out: there is nothing to pass");
    return nullptr;
  }
  if (extent.value > Integer(limits::kMaxImageSize)) {
    diagnostics_.error(extent.at,
                       fmt::format("an array of {} elements does not fit an A-stack of at most {} bytes",
                                   extent.value.text(), limits::kMaxImageSize),
                       "use bytes<N>, which can lie in the out-of-band tail");
    return nullptr;
  }
  // byte[2][3] is byte[3], twice: the extent of the outer array goes before those of its elements.
  const std::size_t bracket = element->kind == TypeKind::array ? element->name.find('[') : std::string::npos;
  std::string spelled = fmt::format("{}[{}]{}", element->name.substr(0, bracket), extent.value.text(),
                                    bracket == std::string::npos ? "" : element->name.substr(bracket));
  if (Type* known = find(spelled)) return known;
  Type& type = make(std::move(spelled), TypeKind::array);
  type.target = element;
  type.bound = extent.value.magnitude;
  type.at = extent.at;
  if (completed_) complete(type);
  return &type;
}

// --- Sizes and order -------------------------------------------------------------------------------------------------

void TypeTable::complete() {
  // The list also has built-in types and those spelled in place. Nothing is added to it meanwhile.
  for (std::size_t i = 0; i < interface_.types.size(); ++i) complete(*interface_.types[i]);
  completed_ = true;
}

/// Depth first. The depth is bounded by limits::kMaxNesting.
void TypeTable::complete(Type& type) {
  if (!progress_.try_emplace(&type, Progress::begun).second) return;
  ++depth_;
  if (type.target != nullptr) complete_link(type.target, type);
  for (Field& field : type.fields) complete_link(field.type, type);
  --depth_;
  measure(type);
  nest(type);
  progress_[&type] = Progress::done;
  if (type.declared) interface_.ordered.push_back(&type);
}

/// Completes what `from` is made of. A link that closes a cycle is reported and cut.
void TypeTable::complete_link(const Type*& link, const Type& from) {
  const auto found = progress_.find(link);
  if (found != progress_.end() && found->second == Progress::begun) {
    diagnostics_.error(link->at, fmt::format("'{}' contains itself", link->name));
    diagnostics_.note(from.declared ? from.at : link->at,
                      "an A-stack has a fixed size: refer to other values by a handle or a number");
  } else if (found == progress_.end() && depth_ > limits::kMaxNesting) {
    report_nesting(*link);
  } else {
    return complete(const_cast<Type&>(*link));  // interface_ owns it and is not const
  }
  link = find("int32");
}

void TypeTable::nest(Type& type) {
  if (type.target != nullptr) type.nesting = type.target->nesting + 1;
  for (const Field& field : type.fields) type.nesting = std::max(type.nesting, field.type->nesting + 1);
  if (type.nesting == limits::kMaxNesting + 1) report_nesting(type);
}

void TypeTable::report_nesting(const Type& type) {
  diagnostics_.error(type.at,
                     fmt::format("'{}': more than {} types lie within each other", type.name, limits::kMaxNesting));
}

void TypeTable::measure(Type& type) {
  switch (type.kind) {
    case TypeKind::enumeration:
      type.size = type.alignment = type.integer.bits / 8;
      type.constrained = type.fallible = true;
      return;
    case TypeKind::handle: type.size = type.alignment = 8; return;
    case TypeKind::alias:
      type.size = type.target->size;
      type.alignment = type.target->alignment;
      type.dimensions = type.target->dimensions;
      if (const auto declaration = aliases_.find(&type); declaration != aliases_.end())
        narrow(type, *declaration->second);
      type.constrained = type.low || type.high || type.target->constrained;
      type.plain = !type.constrained && type.target->plain;
      type.fallible = type.constrained || type.target->fallible;
      return;
    case TypeKind::array:
      type.alignment = type.target->alignment;
      type.size = type.target->size * type.bound;
      type.constrained = type.target->constrained;
      type.plain = type.target->plain;
      type.fallible = type.target->fallible;
      type.dimensions = type.target->dimensions + 1;
      if (type.dimensions == limits::kMaxExtents + 1)
        diagnostics_.error(type.at, fmt::format("'{}' has more than {} dimensions", type.name, limits::kMaxExtents),
                           "put the inner arrays into a record");
      break;
    case TypeKind::record:
      type.size = 0;
      for (Field& field : type.fields) {
        field.offset = align_up(type.size, field.type->alignment);
        type.size = field.offset + field.type->size;
        type.alignment = std::max(type.alignment, field.type->alignment);
        type.constrained = type.constrained || field.type->constrained;
        type.fallible = type.fallible || field.type->fallible;
      }
      type.size = align_up(type.size, type.alignment);
      break;
    default: return;
  }
  if (type.size > limits::kMaxImageSize) {
    diagnostics_.error(
        type.at,
        fmt::format("'{}' has {} bytes; an A-stack holds at most {}", type.name, type.size, limits::kMaxImageSize),
        "use bytes<N>, which can lie in the out-of-band tail");
    type.size = type.alignment;  // keeps the sizes of types that contain it small
  }
}

/// Checks `range a .. b` against the type that it narrows.
void TypeTable::narrow(Type& alias, const ast::Alias& declaration) {
  const Type& base = alias.target->resolved();
  if (base.kind != TypeKind::integer) {
    diagnostics_.error(declaration.range->low.at, fmt::format("'{}' has no range: it is no integer", base.name));
    diagnostics_.note(declaration.type.name.at, "a range narrows one of int8 .. int64 or uint8 .. uint64");
    return;
  }
  Integer lowest = base.integer.lowest();
  Integer highest = base.integer.highest();
  for (const Type* step = alias.target; step->kind == TypeKind::alias; step = step->target) {
    lowest = std::max(lowest, step->low.value_or(lowest));
    highest = std::min(highest, step->high.value_or(highest));
  }
  const ast::Number& low = declaration.range->low;
  const ast::Number& high = declaration.range->high;
  if (low.value > high.value)
    return diagnostics_.error(
        low.at, fmt::format("the range is empty: {} is more than {}", low.value.text(), high.value.text()));
  for (const ast::Number* end : {&low, &high}) {
    if (end->value >= lowest && end->value <= highest) continue;
    diagnostics_.error(end->at, fmt::format("{} is outside of {}, which goes from {} to {}", end->value.text(),
                                            alias.target->name, lowest.text(), highest.text()));
    return;
  }
  // An end that is also the end of the C++ type needs no check.
  if (low.value > base.integer.lowest()) alias.low = low.value;
  if (high.value < base.integer.highest()) alias.high = high.value;
}

}  // namespace lrpc::stubgen
