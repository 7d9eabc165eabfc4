// The procedure descriptor list: where each value lies, which A-stacks procedures share, and the declaration itself.
#include <fmt/format.h>

#include <algorithm>

#include "emit.h"

namespace lrpc::stubgen {
namespace {

/// What a literal may have, so that no compiler warns about it (-pedantic).
constexpr std::size_t kMaxLiteral = 65'536;

void emit_variables(Code& code, const Procedure& procedure) {
  std::vector<std::string> names;
  for (const Parameter& parameter : procedure.parameters) {
    if (!parameter.variable()) continue;
    names.push_back(parameter.constant);
    const Window& window = parameter.window;
    code.list(
        fmt::format("inline constexpr lrpc::VariableParameter {}{{", names.back()),
        {fmt::format(".length_offset = {}", parameter.offset), fmt::format(".inline_offset = {}", window.inline_offset),
         fmt::format(".inline_capacity = {}", window.inline_capacity),
         fmt::format(".tail_offset = {}", window.tail_offset),
         fmt::format(".bound = {}", parameter.type->resolved().bound),
         parameter.is_in() && parameter.is_out() ? ".in = true, .out = true"
         : parameter.is_in()                     ? ".in = true"
                                                 : ".out = true"},
        "};");
  }
  if (names.size() < 2) return;
  code.list(fmt::format("inline constexpr lrpc::VariableParameter k{}_variables[] = {{", procedure.name), names, "};");
}

void emit_ranges(Code& code, const std::string& name, const std::vector<ByteRange>& ranges) {
  if (ranges.empty()) return;
  std::vector<std::string> items;
  for (const ByteRange& range : ranges) items.push_back(fmt::format("{{{}, {}}}", range.offset, range.size));
  code.list(fmt::format("inline constexpr lrpc::ImageRange {}[] = {{", name), items, "};");
}

/// One range for each error, in the order of their statuses.
std::vector<ByteRange> raised_ranges(const Procedure& procedure) {
  std::vector<ByteRange> ranges;
  for (const Raised& raised : procedure.raises)
    ranges.push_back({raised.offset, raised.type->fields.empty() ? 0 : raised.type->size});
  return ranges;
}

void emit_descriptor(Code& code, const Procedure& procedure) {
  std::vector<std::string> items{fmt::format(".name = \"{}\"", procedure.name),
                                 fmt::format(".astack_class = {}", procedure.astack_class),
                                 fmt::format(".simultaneous_calls = {}", procedure.astacks),
                                 fmt::format(".image_size = {}", procedure.image_size)};
  if (procedure.may_block) items.emplace_back(".may_block = true");
  if (std::ranges::any_of(procedure.parameters, &Parameter::is_handle)) items.emplace_back(".handles = true");
  items.push_back(fmt::format(".stack_need = {}", procedure.stack_need));
  const auto refer = [&](bool any, std::string_view field, std::string_view what) {
    if (any) items.push_back(fmt::format(".{} = k{}_{}", field, procedure.name, what));
  };
  refer(!procedure.call_ranges.empty(), "call_ranges", "call_ranges");
  refer(!procedure.return_ranges.empty(), "return_ranges", "return_ranges");
  const auto variables = std::ranges::count_if(procedure.parameters, &Parameter::variable);
  refer(variables > 1, "variable_parameters", "variables");
  if (variables == 1) {
    const auto only = std::ranges::find_if(procedure.parameters, &Parameter::variable);
    items.push_back(fmt::format(".variable_parameters = {{&{}, 1}}", only->constant));
  }
  refer(!procedure.raises.empty(), "raised_ranges", "raised_ranges");
  code.fill("{", items, "},");
}

}  // namespace

void emit_descriptors(Code& code, const Interface& interface) {
  for (const Procedure& procedure : interface.procedures) {
    if (procedure.parameters.empty() && procedure.raises.empty()) continue;
    code.comment(fmt::format("{}: an image of {} bytes{}.", procedure.name, procedure.image_size,
                             procedure.tail_size == 0 ? "" : fmt::format(" and a tail of {}", procedure.tail_size)));
    emit_variables(code, procedure);
    emit_ranges(code, fmt::format("k{}_call_ranges", procedure.name), procedure.call_ranges);
    emit_ranges(code, fmt::format("k{}_return_ranges", procedure.name), procedure.return_ranges);
    emit_ranges(code, fmt::format("k{}_raised_ranges", procedure.name), raised_ranges(procedure));
    code.line();
  }
  code.line("/// A-stacks: procedures of similar size share them (LRPC §3.1).");
  code.open("inline constexpr lrpc::AStackClass kClasses[] = {");
  for (const AStackClass& shared : interface.classes)
    code.line("{{.image_size = {}, .tail_size = {}, .count = {}}},", shared.image_size, shared.tail_size, shared.count);
  code.end("};");
  code.line("/// One descriptor a procedure, indexed by procedure identifier.");
  code.open("inline constexpr lrpc::ProcedureDescriptor kProcedures[] = {");
  for (const Procedure& procedure : interface.procedures) emit_descriptor(code, procedure);
  code.end("};");
  code.line("/// The declaration, for tools that list, describe and call.");
  const bool overlong = interface.canonical.size() > kMaxLiteral;
  if (overlong) {
    code.line("#pragma GCC diagnostic push");
    code.line("#pragma GCC diagnostic ignored \"-Woverlength-strings\"");
  }
  code.line("inline constexpr std::string_view kText = R\"lrpc({})lrpc\";", interface.canonical);
  if (overlong) code.line("#pragma GCC diagnostic pop");
  code.line();
  code.last_line("}}  // namespace {}", interface.given->own("layout"));
}

void emit_pdl(Code& code, const Interface& interface) {
  code.line("/// The procedure descriptor list of {} (LRPC §3.1): what both domains are bound by.", interface.name);
  const std::string layout = interface.given->own("layout");
  code.open(fmt::format("inline constexpr lrpc::Pdl {}{{", interface.given->own("kPdl")));
  code.line(".interface = {{.name = \"{}\", .major = {}, .minor = {}, .hash = 0x{:016x}}},", interface.name,
            interface.major, interface.minor, interface.hash);
  code.line(".classes = {}::kClasses,", layout);
  code.line(".procedures = {}::kProcedures,", layout);
  code.line(".text = {}::kText,", layout);
  if (interface.callback != nullptr) code.line(".callback = &{},", in_callback(interface, "kPdl"));
  code.end("};");
}

}  // namespace lrpc::stubgen
