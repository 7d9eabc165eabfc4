#include "call_stub.h"

#include <fmt/format.h>

#include <algorithm>

namespace lrpc::stubgen {
namespace {

constexpr const char* kBadResult = "return lrpc::Errc::bad_result;";
constexpr const char* kArgumentTooLong = "lrpc::Errc::argument_too_long";
constexpr const char* kArgumentOutOfRange = "lrpc::Errc::argument_out_of_range";
constexpr const char* kResultTooLong = "lrpc::Errc::result_too_long";

/// The error text for a value that does not conform to its constrained type.
std::string not_conforming(const Type& type, const std::string& value) {
  const Type* with_range = &type;
  while (with_range->kind == TypeKind::alias && !with_range->low && !with_range->high) with_range = with_range->target;
  if (with_range->kind == TypeKind::alias) return value + " is not in " + with_range->range_text(" .. ");
  switch (with_range->kind) {
    case TypeKind::enumeration: return fmt::format("{} is no value of {}", value, with_range->name);
    case TypeKind::array: {
      const Type* element = with_range;
      while (element->resolved().kind == TypeKind::array) element = element->resolved().target;
      return not_conforming(*element, "an element of " + value);
    }
    default: return fmt::format("a field of {} does not conform to {}", value, with_range->name);
  }
}

/// An argument as the function that pushes it takes it: const or by value, so that nothing of the caller's changes yet.
std::string argument(const Parameter& parameter) {
  if (!parameter.is_out()) return passed_declaration(parameter);
  return parameter.is_bytes() ? "const lrpc::Buffer& " + parameter.name : unchanging_declaration(parameter);
}

std::string destination_type(const Parameter& parameter) {
  return parameter.is_bytes() ? "lrpc::Buffer" : cpp_type(*parameter.type);
}

}  // namespace

void CallStub::emit_procedure() {
  code_.open(fmt::format("struct {} {{", type_));
  code_.line("using Result_ = {};", result_type(procedure_));
  const auto arguments = procedure_.arguments();
  const bool tail =
      procedure_.tail_size != 0 && std::ranges::any_of(arguments, [](const Parameter* one) { return one->variable(); });
  code_.line("static constexpr lrpc::client::CallSite kProcedure_{{{}, {}, {}, {}}};", identifier_,
             procedure_.astack_class, tail, procedure_.may_block);
  for (const Parameter& parameter : procedure_.parameters)
    if (parameter.comes_back()) code_.line("{}* {}_to_ = nullptr;", destination_type(parameter), parameter.name);
  code_.line();
  check_arguments();
  if (!arguments.empty()) push_arguments(tail);
  take_results();
  code_.end("};");
}

void CallStub::emit_call() {
  code_.doc(procedure_doc(procedure_));
  for (const Raised& raised : procedure_.raises) code_.line("/// Raises {}.", raised.type->name);
  if (procedure_.one_way) {
    code_.line("/// One-way: returns when the call is rung; what can fail is its being sent.");
    forward(result_type(procedure_), "noexcept", fmt::format("lrpc::client::send<{}>(", type_), "object_()", false);
  } else {
    forward(result_type(procedure_), "noexcept", "lrpc::client::invoke(", "object_()", true);
  }
}

void CallStub::emit_start() {
  forward(fmt::format("lrpc::Pending<{}>", type_), "&& noexcept", "lrpc::client::start(", "object_", true);
}

void CallStub::emit_all() {
  std::string passed_back;
  for (const Parameter& parameter : procedure_.parameters)
    if (parameter.comes_back())
      passed_back += ", " + (parameter.is_bytes() ? "std::vector<std::byte>" : cpp_type(*parameter.type));
  forward(fmt::format("lrpc::Replies<{}{}>", result_type(procedure_), passed_back), "&& noexcept",
          fmt::format("lrpc::client::invoke_all<{}{}>(", type_, passed_back), "object_", false);
}

/// Emits a member function that only calls the runtime's stub for `object`, with the arguments and, if `results`, the
/// destinations of what comes back by reference.
void CallStub::forward(const std::string& type, std::string_view qualifiers, const std::string& call,
                       const std::string& object, bool results) {
  std::vector<std::string> parameters;
  for (const Parameter* parameter : results ? given_parameters(procedure_) : procedure_.arguments())
    parameters.push_back(results ? passed_declaration(*parameter) : argument(*parameter));
  std::vector<std::string> arguments{object};
  std::vector<std::string> destinations;
  for (const Parameter& parameter : procedure_.parameters)
    if (parameter.comes_back()) destinations.push_back("&" + parameter.name);
  if (results) arguments.push_back(fmt::format("{}{{{}}}", type_, fmt::join(destinations, ", ")));
  for (const Parameter* parameter : procedure_.arguments()) arguments.push_back(parameter->name);
  code_.function(fmt::format("[[nodiscard]] {} {}(", type, procedure_.name), parameters,
                 fmt::format(") {}", qualifiers), "return " + call, arguments, ");");
}

void CallStub::check_arguments() {
  // An inout string is passed as an object that cannot be longer.
  const auto may_be_long = [](const Parameter& one) { return one.is_bytes() || (one.is_string() && !one.is_out()); };
  const auto checked = [&](const Parameter& one) { return may_be_long(one) || one.type->constrained; };
  const auto arguments = procedure_.arguments();
  if (std::ranges::none_of(arguments, [&](const Parameter* one) { return checked(*one); })) return;
  arguments_head("static lrpc::client::Refusal check_(", {}, checked);
  const auto refusal = [&](const char* code, const std::string& what) {
    return fmt::format("return {{{},\n\"{}: {}\"}};", code, called_, what);
  };
  for (const Parameter* parameter : arguments) {
    const std::string quoted = fmt::format("'{}'", parameter->name);
    if (may_be_long(*parameter)) {
      code_.guard(fmt::format("{}.size() > {}.bound", parameter->name, constant(*parameter)),
                  refusal(kArgumentTooLong,
                          fmt::format("{} is longer than {} bytes", quoted, parameter->type->resolved().bound)));
    } else if (parameter->type->constrained) {
      push_.check(*parameter->type, parameter->name,
                  refusal(kArgumentOutOfRange, not_conforming(*parameter->type, quoted)));
    }
  }
  code_.line("return {};");
  code_.close();
}

/// Emits the head of a function of the arguments; those for which `used` is false have no name.
template <class Used>
void CallStub::arguments_head(const std::string& start, std::vector<std::string> first, const Used& used) {
  for (const Parameter* parameter : procedure_.arguments()) {
    const std::string declared = argument(*parameter);
    first.push_back(used(*parameter) ? declared : declared.substr(0, declared.size() - parameter->name.size() - 1));
  }
  code_.open(start, first, ") noexcept {");
}

void CallStub::push_arguments(bool tail) {
  arguments_head("static void push_(",
                 {"std::byte* " + image_, tail ? "std::byte* " + tail_ : "std::byte* /*no tail*/"},
                 [](const Parameter&) { return true; });
  for (const Parameter* parameter : procedure_.arguments()) put(push_, *parameter, parameter->name);
  code_.close();
}

void CallStub::take_results() {
  const auto& all = procedure_.parameters;
  const bool image = std::ranges::any_of(all, &Parameter::is_out);
  const bool tail = procedure_.tail_size != 0 &&
                    std::ranges::any_of(all, [](const Parameter& one) { return one.is_out() && one.variable(); });
  code_.open("[[nodiscard]] Result_ operator()(", {"std::uint16_t " + status_, "const auto& " + call_},
             ") const noexcept {");
  if (image) code_.line("std::byte* const {} = {}.image();", image_, call_);
  if (tail) code_.line("std::byte* const {} = {}.tail();", tail_, call_);
  for (const Parameter& parameter : all)
    if (parameter.comes_back()) code_.line("{0}& {1} = *{1}_to_;", destination_type(parameter), parameter.name);
  judge_status();
  copy_results();
  code_.close();
}

void CallStub::judge_status() {
  if (procedure_.raises.empty()) {
    return code_.guard(fmt::format("{} != 0", status_),
                       fmt::format("return {}.failure({},\n\"{}\");", call_, status_, called_));
  }
  code_.open(fmt::format("if ({} != 0) [[unlikely]]", status_));
  std::vector<std::string> items{call_, status_, fmt::format("\"{}\"", called_), raised_places(procedure_)};
  for (const Raised& raised : procedure_.raises)
    items.push_back(raised.type->fields.empty() ? "nullptr"
                                                : fmt::format("{}{}<lrpc::CopyCode::F>", layout_of(procedure_),
                                                              local_.function("get_" + raised.type->name)));
  code_.list("return lrpc::client::no_results<Result_>(", items, ");");
  code_.outdent();
}

void CallStub::copy_results() {
  std::vector<const Parameter*> buffers;
  const bool several = procedure_.results().size() > 1;
  const std::string results = local_("results");
  if (several) code_.line("{} {};", procedure_.results_class(), results);
  bool blocks = false;
  for (const Parameter& parameter : procedure_.parameters) {
    if (!parameter.is_out()) continue;
    blocks = blocks || parameter.is_bytes() || moves_blocks(*parameter.type);
    if (parameter.is_bytes()) {
      buffers.push_back(&parameter);
    } else if (several && !parameter.is_in()) {
      copy_fixed(parameter, fmt::format("{}.{}", results, parameter.name));
    } else if (parameter.is_string()) {
      code_.line("{} {};", cpp_type(*parameter.type), copy_name(parameter));
      copy_fixed(parameter, copy_name(parameter));
    } else {
      copy_.declare(*parameter.type, place(parameter), copy_name(parameter), false, kBadResult);
    }
  }
  copy_buffers(buffers);
  if (blocks) code_.line("lrpc::copies_are_made();");
  give_results();
}

void CallStub::copy_fixed(const Parameter& parameter, const std::string& target) {
  if (parameter.is_string()) return get_string(copy_, parameter, target, kBadResult);
  copy_.get(*parameter.type, place(parameter), target, kBadResult);
}

/// Buffers are written last, when nothing else can fail; several of them only when each is known to fit.
void CallStub::copy_buffers(const std::vector<const Parameter*>& buffers) {
  const auto does_not_fit = [&](const Parameter& buffer) {
    return fmt::format("{}: '{}' does not fit the caller's buffer", called_, buffer.name);
  };
  if (buffers.size() == 1) {
    const std::string copied = local_("copied");
    code_.line("const lrpc::Errc {} = lrpc::get_buffer<lrpc::CopyCode::F>({}, {}, {}, {});", copied, image_, tail_,
               constant(*buffers.front()), buffers.front()->name);
    return code_.guard(
        fmt::format("{} != lrpc::Errc::ok", copied),
        fmt::format("return lrpc::client::not_copied({},\n\"{}\");", copied, does_not_fit(*buffers.front())));
  }
  for (const Parameter* buffer : buffers) {
    const std::string found = local_(buffer->name + "_found");
    code_.line("const auto {} = lrpc::locate_variable({}, {}, {});", found, image_, tail_, constant(*buffer));
    code_.guard(fmt::format("!{}", found), kBadResult);
    code_.guard(fmt::format("{}->size() > {}.capacity()", found, buffer->name),
                fmt::format("return lrpc::client::refused({},\n\"{}\");", kResultTooLong, does_not_fit(*buffer)));
  }
  for (const Parameter* buffer : buffers) {
    const std::string found = local_(buffer->name + "_found");
    code_.line("lrpc::count_copy(lrpc::CopyCode::F, {}->size());", found);
    code_.line("(void){}.assign(*{});", buffer->name, found);
  }
}

/// Nothing can fail any more: now the caller's inout arguments change.
void CallStub::give_results() {
  for (const Parameter& parameter : procedure_.parameters) {
    if (parameter.is_in() && parameter.is_out() && !parameter.is_bytes())
      code_.line("{} = {};", parameter.name, copy_name(parameter));
  }
  const auto results = procedure_.results();
  if (results.empty()) return code_.line("return {};");
  code_.line("return {};", results.size() == 1 ? results.front()->name : local_("results"));
}

}  // namespace lrpc::stubgen
