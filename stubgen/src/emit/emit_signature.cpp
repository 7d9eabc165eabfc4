// The concepts of the server's side: what a class must offer to serve the interface.
#include <fmt/format.h>

#include <algorithm>

#include "emit.h"

namespace lrpc::stubgen {

std::vector<const Parameter*> given_parameters(const Procedure& procedure) {
  std::vector<const Parameter*> all = procedure.arguments();
  for (const Parameter* buffer : procedure.buffers()) all.push_back(buffer);
  return all;
}

std::string unchanging_declaration(const Parameter& parameter) {
  const TypeKind kind = parameter.type->resolved().kind;
  const bool large = kind == TypeKind::string || kind == TypeKind::record || kind == TypeKind::array;
  return fmt::format("{}{}{} {}", large ? "const " : "", cpp_type(*parameter.type), large ? "&" : "", parameter.name);
}

std::string passed_declaration(const Parameter& parameter) {
  if (parameter.is_bytes())
    return (parameter.is_out() ? "lrpc::Buffer& " : "std::span<const std::byte> ") + parameter.name;
  if (parameter.is_out()) return fmt::format("{}& {}", cpp_type(*parameter.type), parameter.name);
  return parameter.is_string() ? "std::string_view " + parameter.name : unchanging_declaration(parameter);
}

std::string received_declaration(const Parameter& parameter, std::string_view impl) {
  if (parameter.is_string() && !parameter.is_out()) return unchanging_declaration(parameter);
  if (!parameter.is_handle()) return passed_declaration(parameter);
  const std::string object = fmt::format("typename {}::{}", impl, parameter.type->name);
  return (parameter.closes ? "std::shared_ptr<" + object + "> " : object + "& ") + parameter.name;
}

namespace {

/// The types of the parameters that are numbers, with `void` for each other parameter. Empty if none is a number.
std::vector<std::string> given_numbers(const Procedure& procedure) {
  std::vector<std::string> types;
  for (const Parameter* parameter : given_parameters(procedure)) {
    const TypeKind kind = parameter->type->resolved().kind;
    const bool number = kind == TypeKind::integer || kind == TypeKind::floating;
    types.push_back(number ? cpp_type(*parameter->type) : "void");
  }
  const bool none = std::ranges::all_of(types, [](const std::string& one) { return one == "void"; });
  return none ? std::vector<std::string>() : types;
}

void emit_signature(Code& code, const Procedure& procedure) {
  const Locals local = locals_of(procedure);
  const std::string impl = local("impl");
  const std::string context = local("context");
  std::vector<std::string> parameters = {fmt::format("Impl_& {}", impl), fmt::format("lrpc::CallContext& {}", context)};
  std::vector<std::string> arguments = {context};
  for (const Parameter* parameter : given_parameters(procedure)) {
    parameters.push_back(received_declaration(*parameter, "Impl_"));
    arguments.push_back(parameter->closes ? fmt::format("std::move({})", parameter->name) : parameter->name);
  }
  code.doc(procedure_doc(procedure));
  code.line("template <class Impl_>");
  code.open(fmt::format("concept {} = requires(", procedure.name), parameters, ") {");
  code.list(fmt::format("{{ {}.{}(", impl, procedure.name), arguments,
            fmt::format(") }} -> lrpc::detail::Returns<{}>;", result_type(procedure)));
  std::vector<std::string> types = given_numbers(procedure);
  if (!types.empty()) {
    // A name that is overloaded, or a template's, has no address: then the requirement within fails.
    types.insert(types.begin(), fmt::format("decltype(&Impl_::{})", procedure.name));
    code.outdent();
    code.open("} && !requires {");
    code.list("requires lrpc::detail::Narrows<", types, ">;");
  }
  code.end("};");
}

}  // namespace

void emit_signatures(Code& code, const Interface& interface) {
  code.comment(
      "One concept a procedure, so that a wrong signature is reported by the procedure's name. A procedure takes its "
      "call's context first and returns its result, an lrpc::Result, or lrpc::raise(...) of an error that it "
      "declares. It takes no number as a type that narrows it.");
  code.last_line("namespace signature_ {");
  for (const Procedure& procedure : interface.procedures) emit_signature(code, procedure);
  code.last_line("}  // namespace signature_");
  code.line("/// A class that can serve {}. For each handle it names the type of the objects behind it.",
            interface.name);
  code.line("template <class Impl_>");
  std::string all = fmt::format("concept {} =", interface.given->own("Implementation"));
  for (std::size_t i = 0; i < interface.procedures.size(); ++i) {
    const std::string term = fmt::format(" signature_::{}<Impl_>{}", interface.procedures[i].name,
                                         i + 1 == interface.procedures.size() ? ";" : " &&");
    if (all.size() + term.size() > Code::kWidth) {
      code.line(all);
      all = "   ";
    }
    all += term;
  }
  code.last_line(all);
}

}  // namespace lrpc::stubgen
