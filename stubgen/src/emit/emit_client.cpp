// <stem>.client.h: class Client, one call stub for each procedure (LRPC §3.3), in the order in which a stub runs.
#include <fmt/format.h>

#include "call_stub.h"
#include "emit.h"

namespace lrpc::stubgen {
namespace {

void emit_binding(Code& code, const Interface& interface, bool by_name) {
  const GivenNames& given = *interface.given;
  const std::string client = given.own("Client");
  const std::string pdl = given.own("kPdl");
  const std::string client_of = fmt::format("return lrpc::client::client_of<{}>(", client);
  const std::string options = "const lrpc::ImportOptions& options = {}";
  if (by_name) {
    code.line("/// Binds to what is exported as `name` (LRPC §3.1). May block until the server's clerk has answered.");
    code.function(fmt::format("[[nodiscard]] static lrpc::Result<{}> import(", client),
                  {"std::string_view name", options}, ")", client_of,
                  {fmt::format("lrpc::Binding::import(name, {}, options)", pdl)}, ");");
    code.line();
  }
  code.line("/// Binds over a socket to a process that serves {} at its other end; no name, no nameserver.",
            interface.name);
  code.function(fmt::format("[[nodiscard]] static lrpc::Result<{}> {}(", client, given.own("import_over")),
                {"lrpc::UniqueFd socket", options}, ")", client_of,
                {fmt::format("lrpc::Binding::import_over(std::move(socket), {}, options)", pdl)}, ");");
  code.line();
  code.line("/// Takes over a binding that was made with this interface's {}.", pdl);
  code.last_line("explicit {}(lrpc::Binding binding) noexcept : bound_(std::move(binding)) {{}}", client);
  code.line("/// Starts calls that are finished later, several at a time: `auto sum = client.{}().Add(1, 2);`.",
            given.own("start"));
  code.last_line("[[nodiscard]] Starter_ {}() noexcept {{ return Starter_(object_()); }}", given.own("start"));
  if (by_name && calls_groups(interface)) {
    code.line("/// Of a binding to a group (NAME@GROUP): `auto sums = client.{}().Add(1, 2);`.", given.own("all"));
    code.last_line("[[nodiscard]] All_ {}() noexcept {{ return All_(object_()); }}", given.own("all"));
  }
  code.line("/// The binding that the calls go through. Owned by this {}.", client);
  code.last_line("[[nodiscard]] lrpc::Binding& {}() noexcept {{ return bound_; }}", given.own("binding"));
}

void emit_serve_callbacks(Code& code, const Interface& interface) {
  for (const char* line :
       {"/// From here on the server may call this client back: `impl` is called from the E-stacks of `server`, from",
        "/// several at once, and must outlive it. Blocks until the other side has accepted, at most 10 s. Once a",
        "/// binding; again only when an earlier `server` is gone.",
        "/// Errors: binding_revoked, peer_gone (it has been offered already, or the server declares none),",
        "/// not_supported (a remote binding), timed_out, system_error, and those of Server::serve_over()."})
    code.line(line);
  code.line("template <{} Impl_>", in_callback(interface, "Implementation"));
  code.open(fmt::format("[[nodiscard]] lrpc::Status {}(", interface.given->own("serve_callbacks")),
            {"lrpc::Server& server", "Impl_& impl", "lrpc::ExportOptions options = {}"}, ") {");
  code.line("auto offered = lrpc::detail::StubAccess::offer_callback(bound_);");
  code.line("if (!offered) return offered.error();");
  code.list(
      "return server.serve_over(",
      {"std::move(*offered)", in_callback(interface, "kPdl"),
       interface.given->own("Callback") + "::Entry_<Impl_>::kStubs_", "std::addressof(impl)", "std::move(options)"},
      ");");
  code.end();
}

/// Emits a class with a function for each procedure that is `offered`, for one call.
void emit_for_one_call(Code& code, const Interface& interface, std::string_view name, bool (*offered)(const Procedure&),
                       void (CallStub::*emit)()) {
  code.line("class {} : lrpc::client::ForOneCall_ {{", name);
  code.open(" public:");
  code.last_line("using lrpc::client::ForOneCall_::ForOneCall_;");
  for (std::size_t i = 0; i < interface.procedures.size(); ++i)
    if (offered(interface.procedures[i])) (CallStub(code, interface, i).*emit)();
  code.end("};");
}

}  // namespace

void emit_client_class(Code& code, const Interface& interface, bool by_name) {
  code.line(
      "// One class a procedure: what its stubs do with the A-stack. The steps around that, and what the names mean:");
  code.last_line("// lrpc/detail/client/call/stub.h.");
  for (std::size_t i = 0; i < interface.procedures.size(); ++i) CallStub(code, interface, i).emit_procedure();
  code.line(
      "/// Starts calls: each function rings and returns at once (it waits at most for an A-stack); finish() of what "
      "it returns");
  code.line(
      "/// waits and gives the results. `in` arguments are copied here. What is passed by reference must stay until "
      "then.");
  emit_for_one_call(
      code, interface, "Starter_", [](const Procedure& one) { return !one.one_way; }, &CallStub::emit_start);
  if (by_name && calls_groups(interface)) {
    code.line("/// Calls to all members of a group: each function returns what every member has answered.");
    emit_for_one_call(code, interface, "All_", collates, &CallStub::emit_all);
  }
  code.doc(interface.doc);
  if (!interface.doc.empty()) code.line("///");
  code.line("/// One binding to {}. Its stubs may be called from any thread, from several at once. Each returns the",
            interface.name);
  code.line(
      "/// procedure's results or why there are none; on failure nothing that was passed by reference has changed.");
  code.line("class {} {{", interface.given->own("Client"));
  code.open(" public:");
  emit_binding(code, interface, by_name);
  if (interface.callback != nullptr) emit_serve_callbacks(code, interface);
  for (std::size_t i = 0; i < interface.procedures.size(); ++i) {
    if (i != 0) code.line();
    CallStub(code, interface, i).emit_call();
  }
  code.line();
  code.outdent();
  code.open(" private:");
  code.function("[[nodiscard]] lrpc::client::BindingObject& object_(", {}, ") const noexcept",
                "return lrpc::detail::StubAccess::object(", {"bound_"}, ");");
  code.line("lrpc::Binding bound_;");
  code.end("};");
}

std::string emit_client(const Interface& interface, std::string_view stem) {
  const bool callback = interface.callback != nullptr;
  Code code;
  emit_head(code, interface, stem,
            callback ? "the client's call stubs, and its entry stubs for the callback." : "the client's call stubs.");
  for (const std::string_view header : {"array", "cstddef", "cstdint", "memory", "span", "string_view", "utility"}) {
    if (callback || header != "memory") code.line("#include <{}>", header);
  }
  emit_own_includes(code, interface, stem, true, callback);
  if (callback) {
    open_callback(code, interface);
    emit_entry(code, *interface.callback);
    close_callback(code, interface);
  }
  emit_client_class(code, interface, true);
  close_namespace(code, interface);
  return code.take();
}

}  // namespace lrpc::stubgen
