// <stem>_fuzzer.cpp: a libFuzzer harness for the server's entry stubs. lrpc/entry_fuzzer.h runs the stubs and checks
// them. Emitted here is what depends on the interface: an implementation that takes any input, and where handles lie.
#include <fmt/format.h>

#include "emit.h"
#include "generator.h"

namespace lrpc::stubgen {
namespace {

/// An expression for a value that conforms to the type: the one that a record's field of the type begins with.
std::string conforming(const Type& type) {
  const std::string value = initializer(type);
  return fmt::format("{}{{{}}}", cpp_type(type), value.starts_with(" = ") ? value.substr(3) : "");
}

/// A result as the default implementation returns it.
std::string result_value(const Parameter& parameter, const std::string& context) {
  if (parameter.is_handle()) {
    const Type& handle = *parameter.type;
    return fmt::format("{}.grant<{}>(std::make_shared<typename Held_::{}>())", context, handle.spelled, handle.name);
  }
  if (parameter.is_string()) return fmt::format("lrpc::fuzz::text<{}>()", parameter.type->resolved().bound);
  return conforming(*parameter.type);
}

void emit_looks(Code& code, const Procedure& procedure) {
  const Locals local = locals_of(procedure);
  const Moves moves(code, "", layout_of(procedure), local);
  for (const Parameter* parameter : procedure.arguments()) {
    code.line("lrpc::fuzz::look_at({}{});", parameter->closes ? "*" : "", parameter->name);
    // An uninterpreted argument, which may change at any time, has no constraint.
    moves.check(*parameter->type, parameter->name,
                fmt::format("lrpc::fuzz::fail(\"{}: {} does not conform\");", procedure.name, parameter->name));
  }
}

void emit_return(Code& code, const Procedure& procedure, const std::string& context) {
  const auto results = procedure.results();
  if (results.size() == 1) return code.line("return {};", result_value(*results.front(), context));
  if (results.empty()) {
    if (!procedure.raises.empty()) code.line("return {};");
    return;
  }
  std::vector<std::string> values;
  for (const Parameter* result : results)
    values.push_back(fmt::format(".{} = {}", result->name, result_value(*result, context)));
  code.list(fmt::format("return {}{{", procedure.results_class()), values, "};");
}

void emit_procedure(Code& code, const Procedure& procedure) {
  const std::string context = locals_of(procedure)("context");
  std::vector<std::string> parameters = {fmt::format("lrpc::CallContext& {}", context)};
  for (const Parameter* parameter : given_parameters(procedure))
    parameters.push_back(received_declaration(*parameter, "Held_"));
  const bool plain = procedure.results().empty() && procedure.raises.empty();
  code.open(fmt::format("{} {}(", plain ? "void" : result_type(procedure), procedure.name), parameters, ") {");
  emit_looks(code, procedure);
  code.line("lrpc::fuzz::interfere({});", context);
  for (const Parameter* parameter : given_parameters(procedure))
    if (parameter->is_bytes() && parameter->is_out()) code.line("lrpc::fuzz::fill({});", parameter->name);
  if (!procedure.raises.empty()) {
    code.open(fmt::format("switch (lrpc::fuzz::choose({})) {{", procedure.raises.size() + 2));
    for (std::size_t i = 0; i < procedure.raises.size(); ++i)
      code.line("case {}: return lrpc::raise({});", i + 1, conforming(*procedure.raises[i].type));
    code.line("default: break;");
    code.close();
  }
  emit_return(code, procedure, context);
  code.close();
}

void emit_implementation(Code& code, const Interface& interface) {
  code.line("/// What stands behind the handles of the implementation below.");
  code.open("struct Objects_ {");
  for (const Type* type : interface.declared)
    if (type->kind == TypeKind::handle) code.line("struct {} {{}};", type->name);
  code.end("};");
  code.comment(
      "Serves the interface for inputs of no meaning: it looks at every byte that it is given, and returns what "
      "conforms, or raises an error, as the input chooses. The objects are its base's, so that a handle's name means "
      "the handle here.");
  code.line("template <class Held_>");
  code.open("struct Default_ : Held_ {");
  for (std::size_t i = 0; i < interface.procedures.size(); ++i) {
    if (i != 0) code.line();
    emit_procedure(code, interface.procedures[i]);
  }
  code.end("};");
}

void emit_handles(Code& code, const Interface& interface) {
  std::vector<std::string> places;
  for (std::size_t i = 0; i < interface.procedures.size(); ++i) {
    for (const Parameter& parameter : interface.procedures[i].parameters) {
      if (!parameter.is_handle()) continue;
      places.push_back(fmt::format("lrpc::fuzz::HandlePlace{{{}, {}, {}, {}}}", i, parameter.offset,
                                   parameter.type->tag, !parameter.is_in()));
    }
  }
  code.line("/// Where handles lie: procedure, offset in its image, tag, whether it is a result.");
  code.list(fmt::format("constexpr std::array<lrpc::fuzz::HandlePlace, {}> kHandles_ = {{", places.size()), places,
            "};");
  code.line();
}

}  // namespace

std::string fuzzer_name(std::string_view stem) { return std::string(stem) + "_fuzzer.cpp"; }

Header generate_fuzzer(const Interface& interface, std::string_view stem) {
  Code code;
  emit_head(code, interface, stem, "a fuzzer of the server's entry stubs, a function for libFuzzer.", false);
  for (const std::string_view header : {"array", "cstddef", "cstdint", "memory", "span"})
    code.line("#include <{}>", header);
  code.line();
  code.last_line("#include <lrpc/entry_fuzzer.h>");
  code.line("#include \"{}.server.h\"", stem);
  code.line("// Both or none: a class that serves the interface and is made anew for each input, and its header.");
  code.line("#ifdef LRPC_FUZZ_HEADER");
  code.line("#include LRPC_FUZZ_HEADER");
  code.last_line("#endif");
  open_namespace(code, interface);
  code.last_line("namespace {");
  emit_implementation(code, interface);
  emit_handles(code, interface);
  code.last_line("}  // namespace");
  code.line("#ifdef LRPC_FUZZ_IMPLEMENTATION");
  code.line("using Fuzzed_ = LRPC_FUZZ_IMPLEMENTATION;");
  code.line("#else");
  code.line("using Fuzzed_ = Default_<Objects_>;");
  code.last_line("#endif");
  code.open("static void fuzz_(std::span<const std::byte> input) {");
  code.line("Fuzzed_ implementation;");
  code.line("lrpc::fuzz::EntryFuzzer fuzzer({}, Entry_<Fuzzed_>::kStubs_, &implementation, kHandles_);",
            interface.given->own("kPdl"));
  code.line("fuzzer.run(input);");
  code.end();
  close_namespace(code, interface);
  code.line();
  code.open("extern \"C\" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {");
  code.line("{}::fuzz_(std::as_bytes(std::span(data, size)));", interface.cpp_namespace().substr(2));
  code.line("return 0;");
  code.close();
  return {fuzzer_name(stem), code.take()};
}

}  // namespace lrpc::stubgen
