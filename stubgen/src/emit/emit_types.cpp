// <stem>.types.h: the declared types, then namespace layout with their checks and codecs, then the PDL.
#include <fmt/format.h>

#include <algorithm>

#include "emit.h"
#include "generator.h"

namespace lrpc::stubgen {
namespace {

// --- Types -----------------------------------------------------------------------------------------------------------

void emit_enum(Code& code, const Type& type) {
  code.open(fmt::format("enum class {} : std::{}_t {{", type.name, type.integer.name()));
  for (const Enumerator& value : type.enumerators) {
    code.doc(value.doc);
    code.line("{} = {},", value.name, cpp_constant(value.value));
  }
  code.close("};");
}

/// initializer() of an array: empty braces where zeros conform.
std::string array_initializer(const Type& array) {
  const Type* element = &array;
  while (element->resolved().kind == TypeKind::array) element = element->resolved().target;
  const std::string value = initializer(*element);
  if (value.empty()) return "";
  const auto& enumerators = element->resolved().enumerators;
  const bool zeros = enumerators.empty() ? value == "{}" || value == " = 0" : enumerators.front().value.magnitude == 0;
  return zeros ? "{}" : fmt::format(" = lrpc::filled<{}>({})", cpp_type(array), value.substr(3));
}

void emit_equality(Code& code, const std::string& name) {
  const std::string operand = fmt::format("const {}&", name);
  code.list("friend bool operator==(", {operand, operand}, ") = default;");
}

/// Whether it is, or has in it, an array of texts or records, of which braces write every byte first.
bool has_bare_array(const Type& named) {
  const Type& type = named.resolved();
  if (type.kind == TypeKind::array) return initializer(type).empty();
  return type.kind == TypeKind::record &&
         std::ranges::any_of(type.fields, [](const Field& field) { return has_bare_array(*field.type); });
}

/// A text or a record gets braces, too, where it needs none: g++ warns of `{.other = 1}` if a member has no
/// initializer. Not where braces would cost time.
void emit_member(Code& code, const Type& type, const std::string& name) {
  const std::string value = initializer(type);
  const bool braces = value.empty() && !has_bare_array(type);
  code.line("{} {}{};", cpp_type(type), name, braces ? "{}" : value);
}

void emit_record(Code& code, const Type& type) {
  code.open(fmt::format("struct {} {{", type.name));
  for (const Field& field : type.fields) {
    code.doc(field.doc);
    emit_member(code, *field.type, field.name);
  }
  emit_equality(code, type.spelled);
  code.close("};");
}

void emit_alias(Code& code, const Type& type) {
  if (type.low || type.high) code.line("/// From {}; checked on both sides of a call.", type.range_text(" to "));
  code.line("using {} = {};", type.name, cpp_type(*type.target));
}

void emit_handle(Code& code, const Interface& interface, const Type& type) {
  const std::string tag = interface.given->own(type.name + "_tag");
  code.line("struct {} {{ static constexpr std::uint32_t kTag = {}; }};", tag, type.tag);
  code.doc(type.doc);  // documents the name that is used, not its tag
  code.line("using {} = lrpc::Handle<{}>;", type.name, tag);
}

void emit_declared_types(Code& code, const Interface& interface) {
  for (const Type* type : interface.ordered) {
    if (type->kind != TypeKind::handle) code.doc(type->doc);
    switch (type->kind) {
      case TypeKind::enumeration: emit_enum(code, *type); break;
      case TypeKind::record: emit_record(code, *type); break;
      case TypeKind::alias: emit_alias(code, *type); break;
      default: emit_handle(code, interface, *type); break;
    }
    code.line();
  }
}

void emit_results(Code& code, const Interface& interface) {
  for (const Procedure& procedure : interface.procedures) {
    const auto results = procedure.results();
    if (results.size() < 2) continue;
    code.line("/// What {} returns.", procedure.name);
    code.open(fmt::format("struct {} {{", procedure.results_class()));
    for (const Parameter* result : results) {
      code.doc(result->doc);
      emit_member(code, *result->type, result->name);
    }
    emit_equality(code, procedure.results_class());
    code.end("};");
  }
}

// --- Checks: is_X(value) ---------------------------------------------------------------------------------------------

void emit_enum_check(Code& code, const Type& type, const std::string& head) {
  std::vector<Integer> values;
  for (const Enumerator& value : type.enumerators) values.push_back(value.value);
  std::ranges::sort(values);
  const auto gap = [](const Integer& one, const Integer& next) { return next != one.next(); };
  if (std::ranges::adjacent_find(values, gap) != values.end()) {
    code.line();
    code.open(fmt::format("{}{} value) noexcept {{", head, type.name));
    code.open("switch (value) {");
    for (const Enumerator& value : type.enumerators) code.line("case {}::{}:", type.name, value.name);
    code.line("  return true;");
    code.close();
    code.line("return false;");
    return code.close();
  }
  const std::string number = fmt::format("static_cast<std::{}_t>(value)", type.integer.name());
  std::string test;
  if (values.front() > type.integer.lowest()) test = fmt::format("{} >= {}", number, cpp_constant(values.front()));
  if (values.back() < type.integer.highest())
    test += fmt::format("{}{} <= {}", test.empty() ? "" : " && ", number, cpp_constant(values.back()));
  code.function(head, {type.name + (test.empty() ? "" : " value")}, ") noexcept", "return ",
                {test.empty() ? "true" : test}, ";");
}

void emit_range_check(Code& code, const Type& type, const std::string& head) {
  std::string test;
  if (type.low) test += fmt::format("value >= {}", cpp_constant(*type.low));
  if (type.high) test += fmt::format("{}value <= {}", test.empty() ? "" : " && ", cpp_constant(*type.high));
  code.function(head, {type.name + " value"}, ") noexcept", "return ", {test}, ";");
}

/// Of a record, or of an alias without a range of its own.
void emit_parts_check(Code& code, const Type& type, const std::string& head, const Locals& local) {
  const bool by_reference = type.resolved().kind == TypeKind::array || type.resolved().kind == TypeKind::record;
  code.line();
  code.open(fmt::format("{}{}{}{} value) noexcept {{", head, by_reference ? "const " : "", type.name,
                        by_reference ? "&" : ""));
  const Moves moves(code, "", "", local);
  if (type.target != nullptr) moves.check(*type.target, "value", "return false;");
  for (const Field& field : type.fields) moves.check(*field.type, "value." + field.name, "return false;");
  code.line("return true;");
  code.close();
}

void emit_checks(Code& code, const Interface& interface) {
  const Locals local(interface.given);
  if (std::ranges::none_of(interface.ordered, [](const Type* type) { return type->constrained; })) return;
  code.line("// Whether a value conforms to its type.");
  for (const Type* type : interface.ordered) {
    if (!type->constrained) continue;
    const std::string head = fmt::format("[[nodiscard]] constexpr bool {}(", local.function("is_" + type->name));
    if (type->kind == TypeKind::enumeration) {
      emit_enum_check(code, *type, head);
    } else if (type->low || type->high) {
      emit_range_check(code, *type, head);
    } else {
      emit_parts_check(code, *type, head, local);
    }
  }
  code.line();
}

// --- Codecs: put_X and get_X -----------------------------------------------------------------------------------------

void emit_put_record(Code& code, const Type& type, const Locals& local) {
  const std::string copy_code = local("Code");
  const std::string to = local("to");
  const std::string value = local("value");
  code.line("template <lrpc::CopyCode {}>", copy_code);
  code.open(fmt::format("inline void {}(std::byte* {}, const {}& {}) noexcept {{", local.function("put_" + type.name),
                        to, type.name, value));
  const Moves moves(code, copy_code, "", local);
  std::uint64_t end = 0;
  const auto zero = [&](std::uint64_t until) {
    if (end < until) code.line("std::memset({} + {}, 0, {});  // padding", to, end, until - end);
  };
  for (const Field& field : type.fields) {
    zero(field.offset);
    moves.put(*field.type, {to, field.offset, ""}, value + "." + field.name);
    end = field.offset + field.type->size;
  }
  zero(type.size);
  code.end();
}

void emit_get_record(Code& code, const Type& type, const Locals& local) {
  const std::string copy_code = local("Code");
  const std::string from = local("from");
  const std::string out = local("out");
  code.line("template <lrpc::CopyCode {}>", copy_code);
  code.open(fmt::format("{} {}(const std::byte* {}, {}& {}) noexcept {{",
                        type.fallible ? "[[nodiscard]] inline bool" : "inline void", local.function("get_" + type.name),
                        from, type.name, out));
  const Moves moves(code, copy_code, "", local);
  for (const Field& field : type.fields)
    moves.get(*field.type, {from, field.offset, ""}, out + "." + field.name, "return false;");
  if (type.fallible) code.line("return true;");
  code.end();
}

void emit_codecs(Code& code, const Interface& interface) {
  const Locals local(interface.given);
  const auto has_codec = [](const Type* type) { return type->kind == TypeKind::record && !type->fields.empty(); };
  if (std::ranges::none_of(interface.ordered, has_codec)) return;
  code.comment(
      "Codecs: put_ writes a record into an image; get_ loads each field once, into private memory, and is false if "
      "one does not conform to its type.");
  for (const Type* type : interface.ordered) {
    if (!has_codec(type)) continue;
    emit_put_record(code, *type, local);
    emit_get_record(code, *type, local);
  }
}

/// The callback's results, places and PDL. Its types, their checks and codecs are the interface's.
void emit_callback(Code& code, const Interface& interface) {
  const Interface& callback = *interface.callback;
  open_callback(code, interface);
  emit_results(code, callback);
  code.last_line("namespace {} {{", callback.given->own("layout"));
  code.last_line("using namespace {}::{};", interface.cpp_namespace(), interface.given->own("layout"));
  emit_descriptors(code, callback);
  emit_pdl(code, callback);
  close_callback(code, interface);
}

}  // namespace

std::string initializer(const Type& type) {
  const Type& resolved = type.resolved();
  switch (resolved.kind) {
    case TypeKind::enumeration: return fmt::format(" = {}::{}", resolved.spelled, resolved.enumerators.front().name);
    case TypeKind::string:
    case TypeKind::record: return "";
    case TypeKind::array: return array_initializer(type);
    case TypeKind::integer:
      for (const Type* step = &type; step->kind == TypeKind::alias; step = step->target) {
        if (step->low && !step->low->negative) return fmt::format(" = {}", cpp_constant(*step->low));
        if (step->high && step->high->negative) return fmt::format(" = {}", cpp_constant(*step->high));
        if (step->low || step->high) break;
      }
      return " = 0";
    default: return "{}";
  }
}

std::string emit_types(const Interface& interface, std::string_view stem) {
  Code code;
  emit_head(code, interface, stem, "its types, their places in an A-stack, and its procedure descriptor list.");
  for (const std::string_view header : {"array", "cstddef", "cstdint", "cstring", "string_view"})
    code.line("#include <{}>", header);
  code.line();
  for (const std::string_view header : {"call/pdl", "result", "call/value"})
    code.line("#include \"lrpc/detail/shim/{}.h\"", header);
  code.line();
  code.last_line(
      "static_assert(lrpc::detail::kStubRevision == {}, \"made by another version of lrpc-stubgen: generate it "
      "again\");",
      kStubRevision);
  code.doc(interface.doc);
  open_namespace(code, interface);
  code.line();
  emit_declared_types(code, interface);
  emit_results(code, interface);
  code.comment("What the stubs need to know: checks, codecs and places. Images are little-endian; padding is zero.");
  code.last_line("namespace {} {{", interface.given->own("layout"));
  emit_checks(code, interface);
  emit_codecs(code, interface);
  emit_descriptors(code, interface);
  if (interface.callback != nullptr) emit_callback(code, interface);
  emit_pdl(code, interface);
  close_namespace(code, interface);
  return code.take();
}

}  // namespace lrpc::stubgen
