// <stem>.client.h: class Client, one call stub a procedure (LRPC §3.3), in the order in which a stub runs.
#include <fmt/format.h>

#include "emit.h"
#include "moves.h"

namespace lrpc::stubgen {
namespace {

constexpr const char* kBadResult = "return lrpc::Errc::bad_result;";

/// A parameter as the caller passes it. `named` false: as the remote branch, which does not look at it yet, takes it.
std::string declaration(const Parameter& parameter, bool named) {
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
  return named ? fmt::format("{} {}", spelled, parameter.name) : fmt::format("{} /*{}*/", spelled, parameter.name);
}

/// What the caller passes: arguments, then the destinations of bytes results.
std::vector<const Parameter*> passed(const Procedure& procedure) {
  std::vector<const Parameter*> all = procedure.arguments();
  for (const Parameter* buffer : procedure.buffers()) all.push_back(buffer);
  return all;
}

/// Emits one call stub.
class CallStub {
 public:
  CallStub(Code& code, const Procedure& procedure, std::size_t identifier)
      : code_(code),
        procedure_(procedure),
        identifier_(identifier),
        local_(locals_of(procedure)),
        image_(local_("image")),
        tail_(procedure.tail_size == 0 ? "nullptr" : local_("tail")),
        call_(local_("call")),
        status_(local_("status")),
        push_(code, "lrpc::CopyCode::A", "layout::", local_),
        copy_(code, "lrpc::CopyCode::F", "layout::", local_) {}

  void emit() {
    head();
    remote_bit();
    check_arguments();
    take_astack();
    push_arguments();
    transfer();
    copy_results();
    code_.close();
    code_.line();
  }

 private:
  void head();
  void remote_bit();
  void check_arguments();
  void take_astack();
  void push_arguments();
  void push_in_place(const Parameter& parameter);
  void transfer();
  void copy_results();
  void copy_fixed(const Parameter& parameter, const std::string& target);
  void copy_buffers(const std::vector<const Parameter*>& buffers);
  void give_results();

  [[nodiscard]] Place place(std::uint64_t offset) const { return {image_, offset, ""}; }
  [[nodiscard]] std::string constant(const Parameter& parameter) const {
    return variable_constant(procedure_, parameter);
  }
  /// Where a result waits until all are known to be good: nothing is handed out on failure.
  [[nodiscard]] std::string copy_name(const Parameter& parameter) const {
    return parameter.is_in() ? local_(parameter.name + "_copy") : parameter.name;
  }

  Code& code_;
  const Procedure& procedure_;
  std::size_t identifier_;
  Locals local_;
  std::string image_, tail_, call_, status_;
  Moves push_;
  Moves copy_;
};

void CallStub::head() {
  code_.doc(procedure_doc(procedure_));
  for (const Raised& raised : procedure_.raises) code_.line("/// Raises {}.", raised.type->name);
  std::vector<std::string> parameters;
  for (const Parameter* parameter : passed(procedure_)) parameters.push_back(declaration(*parameter, true));
  code_.list(fmt::format("[[nodiscard]] {} {}(", result_type(procedure_), procedure_.name), parameters, ") noexcept {");
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

void CallStub::check_arguments() {
  bool said = false;
  const auto say = [&] {
    if (!said) code_.line("// An argument that does not conform to its declared type stays here: nothing is rung.");
    said = true;
  };
  for (const Parameter* parameter : procedure_.arguments()) {
    if (parameter->variable()) {
      say();
      code_.guard(fmt::format("{}.size() > {}.bound", parameter->name, constant(*parameter)),
                  "return lrpc::Errc::argument_too_long;");
    } else if (parameter->type->constrained) {
      say();
      push_.check(*parameter->type, parameter->name, "return lrpc::Errc::argument_out_of_range;");
    }
  }
}

void CallStub::take_astack() {
  code_.line("// 2: take an A-stack: this thread's own, else the top of the class's LIFO (§3.2).");
  code_.line("lrpc::client::Call {}({}, {});", call_, local_("object"), procedure_.astack_class);
  code_.line("if (!{0}.taken()) [[unlikely]] return {0}.error();", call_);
  if (touches_image(procedure_)) code_.line("std::byte* const {} = {}.image();", image_, call_);
  if (procedure_.tail_size != 0) code_.line("std::byte* const {} = {}.tail();", tail_, call_);
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
  const std::string failure = fmt::format("return lrpc::client::Call::failure({});", status_);
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
  code_.line("{}", failure);
  code_.close();
}

void CallStub::copy_results() {
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
  give_results();
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
  if (buffers.size() == 1) {
    const std::string copied = local_("copied");
    code_.line("const lrpc::Errc {} = lrpc::get_buffer<lrpc::CopyCode::F>({}, {}, {}, {});", copied, image_, tail_,
               constant(*buffers.front()), buffers.front()->name);
    return code_.line("if ({0} != lrpc::Errc::ok) [[unlikely]] return {0};", copied);
  }
  for (const Parameter* buffer : buffers) {
    const std::string found = local_(buffer->name + "_found");
    code_.line("const auto {} = lrpc::locate_variable({}, {}, {});", found, image_, tail_, constant(*buffer));
    code_.guard(fmt::format("!{}", found), kBadResult);
    code_.guard(fmt::format("{}->size() > {}.capacity()", found, buffer->name), "return lrpc::Errc::result_too_long;");
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
    if (parameter.is_in() && parameter.is_out() && !parameter.is_bytes()) {
      code_.line("{} = {};", parameter.name, copy_name(parameter));
    }
  }
  const auto results = procedure_.results();
  code_.line("// 7: ~Call puts the A-stack back on top.");
  if (results.empty()) return code_.line("return {};");
  code_.line("return {};", results.size() == 1 ? results.front()->name : local_("results"));
}

// --- The class -------------------------------------------------------------------------------------------------------

void emit_binding(Code& code, const Interface& interface) {
  code.line("/// Binds to what is exported as `name` (LRPC §3.1). May block until the server's clerk has answered.");
  code.list("[[nodiscard]] static lrpc::Result<Client> import(",
            {"std::string_view name", "const lrpc::ImportOptions& options = {}"}, ") {");
  code.indent();
  code.line("auto bound = lrpc::Binding::import(name, kPdl, options);");
  code.line("if (!bound) return bound.error();");
  code.line("return Client(std::move(*bound));");
  code.close();
  code.line();
  code.line("/// Binds over a socket to a process that serves {} at its other end; no name, no nameserver.",
            interface.name);
  code.list("[[nodiscard]] static lrpc::Result<Client> import_over(",
            {"lrpc::UniqueFd socket", "const lrpc::ImportOptions& options = {}"}, ") {");
  code.indent();
  code.line("auto bound = lrpc::Binding::import_over(std::move(socket), kPdl, options);");
  code.line("if (!bound) return bound.error();");
  code.line("return Client(std::move(*bound));");
  code.close();
  code.line();
  code.line("/// Takes over a binding that was made with this interface's kPdl.");
  code.line("explicit Client(lrpc::Binding binding) noexcept : binding_(std::move(binding)) {}");
  code.line();
  code.line("/// The binding that the calls go through. Owned by this Client.");
  code.line("[[nodiscard]] lrpc::Binding& binding() noexcept { return binding_; }");
  code.line();
}

void emit_serve_callbacks(Code& code) {
  for (const char* line :
       {"/// From here on the server may call this client back: `impl` is called from the E-stacks of `server`, from",
        "/// several at once, and must outlive it. Blocks until the other side has accepted, at most 10 s. Once a",
        "/// binding; again only when an earlier `server` is gone.",
        "/// Errors: those of Binding::offer_callback() and Server::serve_over()."})
    code.line(line);
  code.line("template <Callback::Implementation Impl>");
  code.list("[[nodiscard]] lrpc::Status serve_callbacks(",
            {"lrpc::Server& server", "Impl& impl", "lrpc::ExportOptions options = {}"}, ") {");
  code.indent();
  code.line("auto offered = binding_.offer_callback();");
  code.line("if (!offered) return offered.error();");
  code.list("return server.serve_over(",
            {"std::move(*offered)", "Callback::kPdl", "Callback::Entry<Impl>::kStubs", "std::addressof(impl)",
             "std::move(options)"},
            ");");
  code.close();
  code.line();
}

void emit_remote(Code& code, const Procedure& procedure) {
  std::vector<std::string> parameters;
  for (const Parameter* parameter : passed(procedure)) parameters.push_back(declaration(*parameter, false));
  code.list(
      fmt::format("[[nodiscard, gnu::cold, gnu::noinline]] {} {}_remote(", result_type(procedure), procedure.name),
      parameters, ") noexcept {");
  code.indent();
  code.line("return lrpc::Errc::remote_unavailable;");
  code.close();
}

}  // namespace

void emit_client_class(Code& code, const Interface& interface) {
  code.doc(interface.doc);
  if (!interface.doc.empty()) code.line("///");
  code.line("/// One binding to {}. Its stubs may be called from any thread, from several at once. Each returns the",
            interface.name);
  code.line(
      "/// procedure's results or why there are none; on failure nothing that was passed by reference has changed.");
  code.line("class Client {");
  code.open(" public:");
  emit_binding(code, interface);
  if (interface.callback != nullptr) emit_serve_callbacks(code);
  for (std::size_t i = 0; i < interface.procedures.size(); ++i) CallStub(code, interface.procedures[i], i).emit();
  code.close(" private:");
  code.open("  // The remote branches (LRPC §5.1). This build has no network path: they say so.");
  for (const Procedure& procedure : interface.procedures) emit_remote(code, procedure);
  code.line();
  code.line("lrpc::Binding binding_;");
  code.close("};");
  code.line();
}

std::string emit_client(const Interface& interface, std::string_view stem) {
  const bool callback = interface.callback != nullptr;
  Code code;
  emit_head(code, interface, stem,
            callback ? "the client's call stubs, and its entry stubs for the callback." : "the client's call stubs.");
  for (const std::string_view header :
       {"array", "atomic", "concepts", "cstddef", "cstdint", "memory", "span", "string_view", "utility"}) {
    if (callback || (header != "concepts" && header != "memory")) code.line("#include <{}>", header);
  }
  code.line();
  code.line("#include <lrpc/client.h>");
  if (callback) code.line("#include <lrpc/server.h>");
  code.line();
  code.line("#include \"lrpc/shim/fd.h\"");
  code.line("#include \"lrpc/shim/variable.h\"");
  code.line("#include \"{}.types.h\"", stem);
  code.line();
  code.line(open_namespace(interface));
  code.line();
  if (callback) {
    open_callback(code, interface);
    emit_entry(code, *interface.callback);
    close_callback(code);
  }
  emit_client_class(code, interface);
  code.line(close_namespace(interface));
  return code.take();
}

}  // namespace lrpc::stubgen
