// <stem>.server.h: one entry stub for each procedure (LRPC §3.3), in the order in which a stub runs. What a class must
// offer to serve the interface is in emit_signature.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "emit.h"

namespace lrpc::stubgen {
namespace {

constexpr const char* kBadArgument = "return lrpc::server::failed(lrpc::Errc::argument_out_of_range);";
constexpr const char* kTooLong = "return lrpc::server::failed(lrpc::Errc::argument_too_long);";
constexpr const char* kBadHandle = "return lrpc::server::failed(lrpc::Errc::bad_handle);";
constexpr const char* kRefuseResult = "return lrpc::server::failed(lrpc::Errc::bad_result);";

// --- Entry stubs -----------------------------------------------------------------------------------------------------

class EntryStub : private Stub {
 public:
  EntryStub(Code& code, const Procedure& procedure, std::size_t identifier)
      : Stub(code, procedure, identifier),
        impl_(local_("impl")),
        context_(local_("context")),
        outcome_(local_("outcome")),
        results_(local_("results")),
        copy_(copying('E')),
        write_(copying('F')) {}

  void emit() {
    head();
    copy_arguments();
    open_handles();
    prepare_results();
    run();
    raise();
    write_results();
    code_.line("return 0;");
    code_.end();
  }

 private:
  void head() {
    code_.line("/// Entry stub of procedure {}, {}.", identifier_, procedure_.name);
    code_.open(
        fmt::format("static std::uint16_t {}(void* {}, lrpc::CallContext& {}) {{", procedure_.name, impl_, context_));
    if (touches_image()) code_.line("std::byte* const {} = lrpc::detail::StubAccess::image({});", image_, context_);
    if (procedure_.tail_size != 0)
      code_.line("std::byte* const {} = lrpc::detail::StubAccess::tail({});", tail_, context_);
  }

  void copy_arguments() {
    const auto arguments = procedure_.arguments();
    if (arguments.empty()) return;
    bool blocks = false;
    for (const Parameter* parameter : arguments) {
      copy_argument(*parameter);
      blocks = blocks || (!parameter->uninterpreted && (parameter->is_bytes() || moves_blocks(*parameter->type)));
    }
    if (blocks) code_.line("lrpc::copies_are_made();");
  }

  void copy_argument(const Parameter& parameter) {
    if (in_place(parameter)) return refer_in_place(parameter);
    if (parameter.is_bytes()) return copy_bytes_argument(parameter);
    if (parameter.is_string()) {
      code_.line("{} {};", cpp_type(*parameter.type), parameter.name);
      return get_string(copy_, parameter, parameter.name, kTooLong);
    }
    const std::string& name = parameter.is_handle() ? handle(parameter) : parameter.name;
    copy_.declare(*parameter.type, place(parameter), name, parameter.is_out(), kBadArgument);
  }

  /// Uninterpreted: a copy would not make the procedure safer, so it uses the value on the A-stack (§3.5).
  void refer_in_place(const Parameter& parameter) {
    const std::string type = (parameter.is_out() ? "" : "const ") + cpp_type(*parameter.type);
    code_.line("// {} is uninterpreted: used where it lies, and the caller may change it meanwhile.", parameter.name);
    code_.line("{0}& {1} = *reinterpret_cast<{0}*>({2});", type, parameter.name, place(parameter).text());
  }

  void copy_bytes_argument(const Parameter& parameter) {
    const std::string& name = parameter.name;
    if (!parameter.uninterpreted) {
      code_.line("{} {};", parameter.is_out() ? "lrpc::Buffer" : "std::span<const std::byte>", name);
      code_.line("const lrpc::Errc {} = lrpc::get_argument({}, {}, {}, {}, {});", copied(parameter), context_, image_,
                 tail_, constant(parameter), name);
      return code_.guard(fmt::format("{} != lrpc::Errc::ok", copied(parameter)),
                         fmt::format("return lrpc::server::failed({});", copied(parameter)));
    }
    code_.line("const auto {} = lrpc::locate_variable({}, {}, {});", found(parameter), image_, tail_,
               constant(parameter));
    code_.guard(fmt::format("!{}", found(parameter)), kTooLong);
    code_.line("// {} is uninterpreted: used where it lies, and the caller may change it meanwhile.", name);
    if (!parameter.is_out()) return code_.line("const std::span<const std::byte> {} = *{};", name, found(parameter));
    code_.line("lrpc::Buffer {} = lrpc::result_buffer({}, {}, {}, {}->size());", name, image_, tail_,
               constant(parameter), found(parameter));
  }

  /// Handles are opened after all other arguments. Handles that the call closes come last and are closed all at once,
  /// so that a refused call takes nothing out of the table.
  void open_handles() {
    std::vector<std::string> closed;
    for (const Parameter* parameter : procedure_.arguments())
      if (parameter->closes) closed.push_back(handle(*parameter));
    for (const bool closes : {false, true}) {
      for (const Parameter* parameter : procedure_.arguments()) {
        if (!parameter->is_handle() || parameter->closes != closes) continue;
        const std::string object = closes ? parameter->name : local_(parameter->name + "_object");
        code_.line("{}auto {} = {}.{}<typename Impl_::{}>({});", closes ? "" : "const ", object, context_,
                   closes && closed.size() == 1 ? "close" : "resolve", parameter->type->name, handle(*parameter));
        code_.guard(fmt::format("{} == nullptr", object), kBadHandle);
      }
    }
    if (closed.size() < 2) return;
    code_.open(fmt::format("if (!{}.close_together(", context_), closed, ")) [[unlikely]]");
    code_.line(kBadHandle);
    code_.outdent();
  }

  /// The procedure writes results of bytes where the client copies them from.
  void prepare_results() {
    for (const Parameter* buffer : procedure_.buffers())
      code_.line("lrpc::Buffer {} = lrpc::result_buffer({}, {}, {});", buffer->name, image_, tail_, constant(*buffer));
  }

  void run() {
    std::vector<std::string> arguments = {context_};
    for (const Parameter* parameter : given_parameters(procedure_)) {
      if (parameter->closes) {
        arguments.push_back(fmt::format("std::move({})", parameter->name));
      } else if (parameter->is_handle()) {
        arguments.push_back(fmt::format("*{}", local_(parameter->name + "_object")));
      } else {
        arguments.push_back(parameter->name);
      }
    }
    code_.function(fmt::format("const auto {} = lrpc::server::run<{}>([&]", outcome_, result_type(procedure_)), {}, "",
                   fmt::format("return static_cast<Impl_*>({})->{}(", impl_, procedure_.name), arguments, ");", "});");
  }

  void raise() {
    if (procedure_.raises.empty())
      return code_.guard("!" + outcome_, fmt::format("return lrpc::server::failed({}, {});", context_, outcome_));
    std::vector<std::string> items{context_, outcome_, touches_image() ? image_ : "nullptr", raised_places(procedure_)};
    const std::string layout = layout_of(procedure_);
    for (const Raised& raised : procedure_.raises) {
      const Type& type = *raised.type;
      const std::string put = layout + local_.function("put_" + type.name) + "<lrpc::CopyCode::F>";
      items.push_back(type.fields.empty() ? "nullptr"
                      : type.constrained  ? fmt::format("lrpc::detail::Checked{{{}{}, {}}}", layout,
                                                        local_.function("is_" + type.name), put)
                                          : put);
    }
    code_.open(fmt::format("if (!{}) [[unlikely]]", outcome_));
    code_.list("return lrpc::server::failed(", items, ");");
    code_.outdent();
  }

  void write_results() {
    if (!procedure_.results().empty())
      code_.line("const auto& {} = lrpc::detail::checked_value({});", results_, outcome_);
    const bool only_one = procedure_.results().size() == 1;
    const auto value = [&](const Parameter& p) {
      return p.is_in() ? p.name : only_one ? results_ : results_ + "." + p.name;
    };
    for (const Parameter& parameter : procedure_.parameters) {
      if (!parameter.is_out() || in_place(parameter)) continue;
      if (parameter.is_bytes()) {
        const std::string& name = parameter.name;
        code_.guard(copied_out(parameter)
                        ? fmt::format("{}.size() > {}.bound", name, constant(parameter))
                        : fmt::format("!lrpc::is_result({}, {}, {}, {})", image_, tail_, constant(parameter), name),
                    kRefuseResult);
      } else {
        write_.check(*parameter.type, value(parameter), kRefuseResult);
      }
    }
    for (const Parameter& parameter : procedure_.parameters) {
      if (!parameter.is_out() || in_place(parameter)) continue;
      if (parameter.is_bytes() && !copied_out(parameter)) {
        code_.line("lrpc::put_result_length({}, {}, {}.size());", image_, constant(parameter), parameter.name);
      } else {
        put(write_, parameter, value(parameter));
      }
    }
  }

  [[nodiscard]] bool touches_image() const {
    return !procedure_.parameters.empty() ||
           std::ranges::any_of(procedure_.raises, [](const Raised& raised) { return !raised.type->fields.empty(); });
  }
  [[nodiscard]] std::string found(const Parameter& p) const { return local_(p.name + "_found"); }
  [[nodiscard]] std::string copied(const Parameter& p) const { return local_(p.name + "_copied"); }
  /// The variable that holds a handle until its object is found.
  [[nodiscard]] std::string handle(const Parameter& p) const { return local_(p.name + "_handle"); }
  /// Whether the procedure changes these bytes in the call's private memory, from which they are then copied out.
  [[nodiscard]] bool copied_out(const Parameter& p) const { return p.is_in() && !p.uninterpreted; }
  [[nodiscard]] bool in_place(const Parameter& p) const { return p.uninterpreted && !p.is_bytes(); }

  std::string impl_, context_, outcome_, results_;
  Moves copy_;
  Moves write_;
};

// --- The table and the export helpers --------------------------------------------------------------------------------

void emit_table(Code& code, const Interface& interface) {
  std::vector<std::string> stubs;
  for (const Procedure& procedure : interface.procedures)
    stubs.push_back("lrpc::server::kEntry<&" + procedure.name + ">");
  code.line("/// Indexed by procedure identifier; the addresses of the procedure descriptors (LRPC §3.1).");
  code.list(fmt::format("static constexpr std::array<lrpc::EntryStub, {}> kStubs_ = {{", stubs.size()), stubs, "};");
}

void emit_export(Code& code, const Interface& interface) {
  const GivenNames& given = *interface.given;
  // A function that gives `impl` to the server's function `called`, behind `first`.
  const auto function = [&](std::string_view type, std::string_view name, const std::string& declared,
                            std::string_view called, const std::string& first) {
    code.line("template <{} Impl_>", given.own("Implementation"));
    code.open(fmt::format("[[nodiscard]] lrpc::{} {}(", type, given.own(name)),
              {"lrpc::Server& server", declared, "Impl_& impl", "lrpc::ExportOptions options = {}"}, ") {");
    code.list(fmt::format("return server.{}(", called),
              {first, given.own("kPdl"), "Entry_<Impl_>::kStubs_", "std::addressof(impl)", "std::move(options)"}, ");");
    code.end();
  };
  code.line(
      "/// Exports {} as `name` on `server` (LRPC §3.1). `impl` is called from the server's E-stacks, from several",
      interface.name);
  code.line("/// at once; it stays the caller's and must outlive the export.");
  function("Result<lrpc::ExportId>", "export_to", "std::string name", "export_interface", "std::move(name)");
  code.line("/// Serves {} to the process at the other end of `socket`; no name, no nameserver.", interface.name);
  function("Status", "serve_over", "lrpc::UniqueFd socket", "serve_over", "std::move(socket)");
}

void emit_callback_function(Code& code, const Interface& interface) {
  const std::string client = in_callback(interface, "Client");
  for (const char* line :
       {"/// The client whose call `context` is, to be called back now, or later from any thread. The first time this",
        // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one line, too long for this source
        "/// binds, waiting at most options.timeout for the client; afterwards it gives the same stub. Calls through "
        "it",
        "/// fail once the client's binding has ended. A procedure that calls back waits: declare it may_block.",
        "/// Errors: not_supported (the client serves no callbacks), not_permitted, binding_revoked, and those of",
        "/// import_over()."})
    code.line(line);
  code.line("[[nodiscard]] inline lrpc::Result<std::shared_ptr<{}>> {}(", client, interface.given->own("callback"));
  code.line("    lrpc::CallContext& context,");
  code.line("    const lrpc::ImportOptions& options = {.timeout = std::chrono::seconds(1),");
  code.open("                                          .call_timeout = std::chrono::seconds(10)}) {");
  const GivenNames& given = *interface.callback->given;
  code.list("return lrpc::detail::StubAccess::callback_port(context).bound<",
            {client, fmt::format("&{}::{}", client, given.own("import_over")),
             fmt::format("&{}::{}", client, given.own("binding"))},
            ">(options);");
  code.end();
}

}  // namespace

void emit_entry(Code& code, const Interface& interface) {
  emit_signatures(code, interface);
  code.line("/// The entry stubs of {} for one implementation. The runtime enters them directly, on an E-stack, after",
            interface.name);
  code.line(
      "/// it has claimed the call: there is no dispatch (LRPC §3.3). Each returns the call's status. The image is");
  code.line(
      "/// hostile: a stub copies each argument into private memory once, checking it in the same move (§3.5), and");
  code.line("/// looks only at its copy. A result that breaks its own declaration goes nowhere.");
  code.line("template <class Impl_>");
  code.open("struct Entry_ {");
  for (std::size_t i = 0; i < interface.procedures.size(); ++i) EntryStub(code, interface.procedures[i], i).emit();
  emit_table(code, interface);
  code.end("};");
}

std::string emit_server(const Interface& interface, std::string_view stem) {
  const bool callback = interface.callback != nullptr;
  Code code;
  emit_head(code, interface, stem,
            callback ? "the server's entry stubs, and its call stubs for the callback." : "the server's entry stubs.");
  for (const std::string_view header :
       {"array", "chrono", "cstddef", "cstdint", "memory", "span", "string", "string_view", "utility"}) {
    if (callback || (header != "chrono" && header != "string_view")) code.line("#include <{}>", header);
  }
  emit_own_includes(code, interface, stem, callback, true);
  if (callback) {
    open_callback(code, interface);
    emit_client_class(code, *interface.callback, false);
    close_callback(code, interface);
  }
  emit_entry(code, interface);
  if (callback) emit_callback_function(code, interface);
  emit_export(code, interface);
  close_namespace(code, interface);
  return code.take();
}

}  // namespace lrpc::stubgen
