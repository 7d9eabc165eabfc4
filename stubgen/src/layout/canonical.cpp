#include "canonical.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace lrpc::stubgen {
namespace {

std::string declaration(const Type& type) {
  switch (type.kind) {
    case TypeKind::enumeration: {
      std::vector<std::string> values;
      for (const Enumerator& value : type.enumerators)
        values.push_back(fmt::format("{} = {}", value.name, value.value.text()));
      return fmt::format("enum {} : {} {{ {} }}", type.name, type.integer.name(), fmt::join(values, ", "));
    }
    case TypeKind::alias: {
      const std::string range = type.low || type.high ? " range " + type.range_text(" .. ") : "";
      return fmt::format("type {} = {}{};", type.name, type.target->name, range);
    }
    case TypeKind::record: {
      std::string fields;
      for (const Field& field : type.fields) fields += fmt::format("{}: {}; ", field.name, field.type->name);
      if (fields.empty()) return fmt::format("error {};", type.name);
      return fmt::format("{} {} {{ {}}}", type.is_error ? "error" : "record", type.name, fields);
    }
    default: return fmt::format("handle {};", type.name);
  }
}

std::string parameter(const Parameter& parameter) {
  constexpr std::string_view kDirections[] = {"in ", "inout ", ""};
  return fmt::format("{}{}: {}{}{}", kDirections[static_cast<std::size_t>(parameter.direction)], parameter.name,
                     parameter.type->name, parameter.uninterpreted ? " uninterpreted" : "",
                     parameter.closes ? " closes" : "");
}

std::string procedure(const Interface& interface, const Procedure& procedure) {
  std::vector<std::string> arguments;
  std::vector<std::string> results;
  std::vector<std::string> raises;
  for (const Parameter& item : procedure.parameters) (item.is_in() ? arguments : results).push_back(parameter(item));
  for (const Raised& raised : procedure.raises) raises.push_back(raised.type->name);
  std::string text =
      fmt::format("{}procedure {}({})", procedure.one_way ? "oneway " : "", procedure.name, fmt::join(arguments, ", "));
  if (!results.empty()) text += fmt::format(" -> ({})", fmt::join(results, ", "));
  if (!raises.empty()) text += fmt::format(" raises ({})", fmt::join(raises, ", "));
  if (procedure.may_block) text += " may_block";
  if (procedure.astacks != interface.astacks) text += fmt::format(" astacks {}", procedure.astacks);
  // If every size is known, the A-stack's size is exact, whatever astack_size is asked for.
  if (procedure.any_variable() && procedure.astack_size != interface.astack_size)
    text += fmt::format(" astack_size {}", procedure.astack_size);
  return text + ";";
}

}  // namespace

std::string canonical_text(const Interface& interface) {
  std::string text = fmt::format("interface {} version {}.{} {{\n", interface.name, interface.major, interface.minor);
  text += fmt::format("  option astacks = {};\n  option astack_size = {};\n", interface.astacks, interface.astack_size);
  for (const Type* type : interface.declared) text += fmt::format("  {}\n", declaration(*type));
  for (const Procedure& item : interface.procedures) text += fmt::format("  {}\n", procedure(interface, item));
  if (interface.callback != nullptr) {
    text += "  callback {\n";
    for (const Procedure& item : interface.callback->procedures)
      text += fmt::format("    {}\n", procedure(interface, item));
    text += "  }\n";
  }
  return text + "}\n";
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x0000'0100'0000'01b3;
  }
  return hash;
}

}  // namespace lrpc::stubgen
