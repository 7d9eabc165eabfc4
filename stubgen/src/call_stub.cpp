#include "call_stub.h"

#include <fmt/format.h>

#include <algorithm>

namespace lrpc::stubgen {
namespace {

constexpr const char* kBadResult = "return lrpc::Errc::bad_result;";
constexpr const char* kArgumentTooLong = "lrpc::Errc::argument_too_long";
constexpr const char* kArgumentOutOfRange = "lrpc::Errc::argument_out_of_range";
constexpr const char* kResultTooLong = "lrpc::Errc::result_too_long";

/// What is wrong with a value of a constrained type that does not conform to it, for a person.
std::string not_conforming(const Type& type, const std::string& value) {
  const Type* with_range = &type;
  while (with_range->kind == TypeKind::alias && !with_range->low && !with_range->high) with_range = with_range->target;
  if (with_range->kind == TypeKind::alias) {
    const IntegerKind& integer = with_range->resolved().integer;
    return fmt::format("{} is not in {} .. {}", value, with_range->low.value_or(integer.lowest()).text(),
                       with_range->high.value_or(integer.highest()).text());
  }
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

}  // namespace

std::string declaration(const Parameter& parameter) {
  const Type& type = parameter.type->resolved();
  std::string spelled = cpp_type(*parameter.type);
  if (parameter.is_bytes()) {
    spelled = parameter.is_out() ? "lrpc::Buffer&" : "std::span<const std::byte>";
  } else if (parameter.is_out()) {
    spelled += "&";
  } else if (parameter.is_string()) {
    spelled = "std::string_view";
  } else if (type.kind == TypeKind::record || type.kind == TypeKind::array) {
    spelled = fmt::format("const {}&", spelled);
  }
  return fmt::format("{} {}", spelled, parameter.name);
}

std::vector<const Parameter*> passed(const Procedure& procedure) {
  std::vector<const Parameter*> all = procedure.arguments();
  for (const Parameter* buffer : procedure.buffers()) all.push_back(buffer);
  return all;
}

void CallStub::emit_call() {
  code_.doc(procedure_doc(procedure_));
  for (const Raised& raised : procedure_.raises) code_.line("/// Raises {}.", raised.type->name);
  if (procedure_.one_way) code_.line("/// One-way: returns when the call is rung; what can fail is its being sent.");
  head(result_type(procedure_), ") noexcept {");
  remote_bit();
  check_arguments();
  take_astack(procedure_.one_way ? "PendingCall" : "Call", local_("object"));
  push_arguments();
  if (procedure_.one_way) {
    send();
  } else {
    transfer();
    copy_results("// 7: ~Call puts the A-stack back on top.");
  }
  code_.close();
  code_.line();
}

void CallStub::emit_remote() {
  std::vector<std::string> parameters;
  for (const Parameter* parameter : passed(procedure_)) parameters.push_back(declaration(*parameter));
  code_.list(
      fmt::format("[[nodiscard, gnu::cold, gnu::noinline]] {} {}_remote(", result_type(procedure_), procedure_.name),
      parameters, ") noexcept {");
  code_.indent();
  check_arguments();
  take_astack("RemoteCall", "binding_.object()");
  push_arguments();
  if (procedure_.one_way) {
    code_.line("// 4: hand them to the network domain. Nobody waits for the return.");
    code_.line("const std::uint16_t {} = {}.send({});", status_, call_, identifier_);
    judge_status();
    code_.line("return {};");
  } else {
    code_.line("// 4, 5: hand them to the network domain, and wait for the return.");
    code_.line("const std::uint16_t {} = {}.transfer({});", status_, call_, identifier_);
    judge_status();
    copy_results("// 7: ~RemoteCall puts the A-stack back on top.");
  }
  code_.close();
  code_.line();
}

void CallStub::emit_outcome() {
  code_.line("/// Takes the results of a started {} off its A-stack.", procedure_.name);
  code_.open(fmt::format("struct {}_outcome {{", procedure_.name));
  code_.line("using Result_ = {};", result_type(procedure_));
  std::vector<const Parameter*> kept;
  for (const Parameter* parameter : passed(procedure_)) {
    if (!parameter->is_out()) continue;
    kept.push_back(parameter);
    const std::string type = parameter->is_bytes() ? "lrpc::Buffer" : cpp_type(*parameter->type);
    code_.line("{}* {}_to_ = nullptr;", type, parameter->name);
  }
  code_.line();
  const auto& all = procedure_.parameters;
  const bool image =
      std::ranges::any_of(all, &Parameter::is_out) ||
      std::ranges::any_of(procedure_.raises, [](const Raised& one) { return !one.type->fields.empty(); });
  const bool tail = std::ranges::any_of(all, [](const Parameter& one) { return one.is_out() && one.variable(); });
  code_.list("[[nodiscard]] Result_ operator()(",
             {"std::uint16_t " + status_, "const lrpc::client::PendingCall& " + call_}, ") const noexcept {");
  code_.indent();
  find_image(image, tail);
  for (const Parameter* parameter : kept) {
    code_.line("{0}& {1} = *{1}_to_;", parameter->is_bytes() ? "lrpc::Buffer" : cpp_type(*parameter->type),
               parameter->name);
  }
  judge_status();
  copy_results("// 7: the caller of this puts the A-stack back.");
  code_.close();
  code_.close("};");
  code_.line();
}

void CallStub::emit_start() {
  head(fmt::format("lrpc::Pending<{}_outcome>", procedure_.name), ") const noexcept {");
  // 1, the remote bit, is for the ring: until then a remote call does just the same.
  check_arguments(Refusal::pending);
  take_astack("PendingCall", "object_");
  push_arguments();
  code_.line("// 4: ring. 5, 6, 7 are for Pending::finish().");
  code_.guard(fmt::format("!{}.ring({}{})", call_, identifier_, procedure_.may_block ? ", true" : ""),
              fmt::format("return {}.error();", call_));
  std::vector<std::string> kept;
  for (const Parameter* parameter : passed(procedure_)) {
    if (parameter->is_out()) kept.push_back(fmt::format("&{}", parameter->name));
  }
  code_.list(fmt::format("return {{std::move({}), {}_outcome{{", call_, procedure_.name), kept, "}};");
  code_.close();
  code_.line();
}

void CallStub::head(const std::string& type, std::string_view tail) {
  std::vector<std::string> parameters;
  for (const Parameter* parameter : passed(procedure_)) parameters.push_back(declaration(*parameter));
  code_.list(fmt::format("[[nodiscard]] {} {}(", type, procedure_.name), parameters, tail);
  code_.indent();
}

void CallStub::remote_bit() {
  std::vector<std::string> names;
  for (const Parameter* parameter : passed(procedure_)) names.push_back(parameter->name);
  const std::string object = local_("object");
  code_.line("// 1: the remote bit (§5.1).");
  code_.line("lrpc::client::BindingObject& {} = binding_.object();", object);
  code_.list(fmt::format("if ({}.remote()) [[unlikely]] return {}_remote(", object, procedure_.name), names, ");");
}

void CallStub::check_arguments(Refusal how) {
  bool said = false;
  const auto say = [&] {
    if (!said) code_.line("// An argument that does not conform to its declared type stays here: nothing is rung.");
    said = true;
  };
  const auto refusal = [&](const char* code, const std::string& what) {
    const bool pending = how == Refusal::pending;
    return fmt::format("return {}{},\n\"{}: {}\"{};", pending ? "{" : "lrpc::client::refused(", code, called_, what,
                       pending ? "}" : ")");
  };
  for (const Parameter* parameter : procedure_.arguments()) {
    const std::string quoted = fmt::format("'{}'", parameter->name);
    if (parameter->variable()) {
      say();
      code_.guard(fmt::format("{}.size() > {}.bound", parameter->name, constant(*parameter)),
                  refusal(kArgumentTooLong,
                          fmt::format("{} is longer than {} bytes", quoted, parameter->type->resolved().bound)));
    } else if (parameter->type->constrained) {
      say();
      push_.check(*parameter->type, parameter->name,
                  refusal(kArgumentOutOfRange, not_conforming(*parameter->type, quoted)));
    }
  }
}

void CallStub::take_astack(std::string_view kind, std::string_view from) {
  code_.line("// 2: take an A-stack: this thread's own, else the top of the class's LIFO (§3.2).");
  code_.line("lrpc::client::{} {}({}, {});", kind, call_, from, procedure_.astack_class);
  code_.line("if (!{0}.taken()) [[unlikely]] return {0}.error();", call_);
  const auto arguments = procedure_.arguments();
  const bool both_ways = kind != "PendingCall" && !procedure_.one_way;
  const bool variable = std::ranges::any_of(arguments, [](const Parameter* one) { return one->variable(); });
  find_image(both_ways ? touches_image(procedure_) : !arguments.empty(), both_ways || variable);
}

void CallStub::find_image(bool image, bool tail) {
  if (image) code_.line("std::byte* const {} = {}.image();", image_, call_);
  if (tail && procedure_.tail_size != 0) code_.line("std::byte* const {} = {}.tail();", tail_, call_);
}

void CallStub::push_arguments() {
  const auto arguments = procedure_.arguments();
  if (arguments.empty()) return;
  code_.line("// 3: push the arguments.");
  for (const Parameter* parameter : arguments) {
    if (parameter->is_string()) {
      code_.line("lrpc::put_variable<lrpc::CopyCode::A>({}, {}, {}, lrpc::as_bytes({}));", image_, tail_,
                 constant(*parameter), parameter->name);
    } else if (parameter->is_bytes() && parameter->is_out()) {
      push_in_place(*parameter);
    } else if (parameter->is_bytes()) {
      code_.line("lrpc::put_variable<lrpc::CopyCode::A>({}, {}, {}, {});", image_, tail_, constant(*parameter),
                 parameter->name);
    } else {
      push_.put(*parameter->type, place(parameter->offset), parameter->name);
    }
  }
}

/// bytes that the procedure changes lie where its result will be.
void CallStub::push_in_place(const Parameter& parameter) {
  const std::string window = local_(parameter.name + "_window");
  code_.line("std::byte* const {} = lrpc::result_window({}, {}, {});", window, image_, tail_, constant(parameter));
  code_.line("if ({0}.size() != 0) lrpc::copy_bytes<lrpc::CopyCode::A>({1}, {0}.data(), {0}.size());", parameter.name,
             window);
  code_.line("lrpc::put_result_length({}, {}, {}.size());", image_, constant(parameter), parameter.name);
}

void CallStub::transfer() {
  code_.line("// 4, 5: ring, and wait for the return.");
  code_.line("const std::uint16_t {} = {}.transfer({});", status_, call_, identifier_);
  judge_status();
}

/// Nobody waits: the A-stack comes back by itself.
void CallStub::send() {
  code_.line("// 4: ring. Nobody waits for the return: the A-stack comes back by itself.");
  code_.guard(fmt::format("!{}.ring({}{})", call_, identifier_, procedure_.may_block ? ", true" : ""),
              fmt::format("return {}.error();", call_));
  code_.line("{}.leave();", call_);
  code_.line("return {};");
}

void CallStub::judge_status() {
  const std::string failure = fmt::format("return {}.failure({},\n\"{}\");", call_, status_, called_);
  if (procedure_.raises.empty()) return code_.guard(fmt::format("{} != 0", status_), failure);
  code_.open(fmt::format("if ({} != 0) [[unlikely]] {{", status_));
  const std::string raised = local_("raised");
  for (std::size_t i = 0; i < procedure_.raises.size(); ++i) {
    const Type& type = *procedure_.raises[i].type;
    if (type.fields.empty()) {
      code_.line("if ({} == {}) return lrpc::raise({}{{}});", status_, i + 1, type.name);
      continue;
    }
    code_.open(fmt::format("if ({} == {}) {{", status_, i + 1));
    code_.line("{} {};", type.name, raised);
    copy_.get(type, place(procedure_.raises[i].offset), raised, kBadResult);
    code_.line("return lrpc::raise({});", raised);
    code_.close();
  }
  code_.list(fmt::format("return {}.failure(", call_), {status_, fmt::format("\"{}\"", called_)}, ");");
  code_.close();
}

void CallStub::copy_results(std::string_view end) {
  std::vector<const Parameter*> values;
  std::vector<const Parameter*> buffers;
  for (const Parameter& parameter : procedure_.parameters) {
    if (parameter.is_out()) (parameter.is_bytes() ? buffers : values).push_back(&parameter);
  }
  const bool several = procedure_.results().size() > 1;
  const std::string results = local_("results");
  if (!values.empty() || !buffers.empty())
    code_.line("// 6: copy the results to their destination, checking them (§3.5).");
  if (several) code_.line("{}Results {};", procedure_.name, results);
  bool blocks = !buffers.empty();
  for (const Parameter* parameter : values) {
    blocks = blocks || moves_blocks(*parameter->type);
    if (several && !parameter->is_in()) {
      copy_fixed(*parameter, fmt::format("{}.{}", results, parameter->name));
      continue;
    }
    if (parameter->is_string()) {
      code_.line("{} {};", cpp_type(*parameter->type), copy_name(*parameter));
      copy_fixed(*parameter, copy_name(*parameter));
    } else {
      copy_.declare(*parameter->type, place(parameter->offset), copy_name(*parameter), false, kBadResult);
    }
  }
  copy_buffers(buffers);
  if (blocks) {
    code_.comment("The copies are made here, once: the compiler must not read the shared image again later.");
    code_.line("std::atomic_signal_fence(std::memory_order_seq_cst);");
  }
  give_results(end);
}

void CallStub::copy_fixed(const Parameter& parameter, const std::string& target) {
  if (parameter.is_string()) {
    code_.guard(
        fmt::format("!lrpc::get_string<lrpc::CopyCode::F>({}, {}, {}, {})", image_, tail_, constant(parameter), target),
        kBadResult);
  } else {
    copy_.get(*parameter.type, place(parameter.offset), target, kBadResult);
  }
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
void CallStub::give_results(std::string_view end) {
  for (const Parameter& parameter : procedure_.parameters) {
    if (parameter.is_in() && parameter.is_out() && !parameter.is_bytes()) {
      code_.line("{} = {};", parameter.name, copy_name(parameter));
    }
  }
  const auto results = procedure_.results();
  code_.line(end);
  if (results.empty()) return code_.line("return {};");
  code_.line("return {};", results.size() == 1 ? results.front()->name : local_("results"));
}

}  // namespace lrpc::stubgen
