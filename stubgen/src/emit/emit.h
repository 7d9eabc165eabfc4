// Emits the three headers of a .lrpc file. Each emitter's functions stand in the order of its output.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "code.h"
#include "lrpc/stubgen/layout/model.h"
#include "moves.h"

namespace lrpc::stubgen {

/// `stem` is the interface file's name without `.lrpc`; the headers are <stem>.types.h, <stem>.client.h,
/// <stem>.server.h.
[[nodiscard]] std::string emit_types(const Interface& interface, std::string_view stem);
[[nodiscard]] std::string emit_client(const Interface& interface, std::string_view stem);
[[nodiscard]] std::string emit_server(const Interface& interface, std::string_view stem);

// What is emitted for an interface and for its callback, each in its own namespace.

/// Class Client: into the client header; the callback's into the server header. `by_name`: with the functions that bind
/// by a name and call groups. A callback has no name.
void emit_client_class(Code& code, const Interface& interface, bool by_name);
/// The concepts and the entry stubs: into the server header; the callback's into the client header.
void emit_entry(Code& code, const Interface& interface);
/// One concept for each procedure, and the concept Implementation.
void emit_signatures(Code& code, const Interface& interface);
/// First the PDL's parts and the end of namespace `layout`, then the PDL itself: into the types header (LRPC §3.1).
void emit_descriptors(Code& code, const Interface& interface);
void emit_pdl(Code& code, const Interface& interface);
/// Opens and closes the callback's namespace, within that of its interface.
void open_callback(Code& code, const Interface& interface);
void close_callback(Code& code, const Interface& interface);

/// `Callback::kPdl`: a name of the callback's generated code, from outside of its namespace.
[[nodiscard]] std::string in_callback(const Interface& interface, std::string_view name);

// What the emitters share.

/// The file's first lines: where it comes from, `summary` and, in a header, `#pragma once`.
void emit_head(Code& code, const Interface& interface, std::string_view stem, std::string_view summary,
               bool header = true);
/// The lrpc headers that a header for a client, a server, or both includes, and the opening of its namespace.
void emit_own_includes(Code& code, const Interface& interface, std::string_view stem, bool client, bool server);
void open_namespace(Code& code, const Interface& interface);
void close_namespace(Code& code, const Interface& interface);

/// What stands behind a field of the type, so that it begins with a value that conforms: " = 0", "{}", or nothing if
/// the type's own constructor provides one.
[[nodiscard]] std::string initializer(const Type& type);
/// `lrpc::Result<OpenResults, NotFound>`.
[[nodiscard]] std::string result_type(const Procedure& procedure);
/// What the caller passes, and what the procedure receives after its context: arguments, then bytes results.
[[nodiscard]] std::vector<const Parameter*> given_parameters(const Procedure& procedure);
/// A parameter as the caller passes it.
[[nodiscard]] std::string passed_declaration(const Parameter& parameter);
/// By value or, what is large, as a reference to const.
[[nodiscard]] std::string unchanging_declaration(const Parameter& parameter);
/// A parameter as the procedure receives it; `impl` names the class whose member types are the handles' objects.
[[nodiscard]] std::string received_declaration(const Parameter& parameter, std::string_view impl);
/// Whether all members of a group can be called and can answer: not by one-way calls, nor with handles, which belong to
/// one server. And whether the interface has such a procedure.
[[nodiscard]] bool collates(const Procedure& procedure);
[[nodiscard]] bool calls_groups(const Interface& interface);
/// The procedure's doc comment, and those of its parameters.
[[nodiscard]] Doc procedure_doc(const Procedure& procedure);
[[nodiscard]] Locals locals_of(const Procedure& procedure);
/// The prefix by which the procedure's stubs reach namespace `layout`: `layout::`.
[[nodiscard]] std::string layout_of(const Procedure& procedure);
/// Where the errors that it raises lie: `layout::kOpen_raised_ranges`.
[[nodiscard]] std::string raised_places(const Procedure& procedure);

/// What a procedure's stubs on both sides have in common: names in their code, and moves of parameters.
class Stub {
 protected:
  Stub(Code& code, const Procedure& procedure, std::size_t identifier);

  [[nodiscard]] Place place(const Parameter& parameter) const { return {image_, parameter.offset, ""}; }
  /// `layout::kOpen_name`, of a variable parameter.
  [[nodiscard]] std::string constant(const Parameter& parameter) const;
  /// Moves of the copy `letter` of LRPC Table III.
  [[nodiscard]] Moves copying(char letter) const;
  /// Writes a parameter; bytes that come back where the result will be.
  void put(const Moves& with, const Parameter& parameter, const std::string& value) const;
  void get_string(const Moves& with, const Parameter& parameter, const std::string& target,
                  std::string_view on_failure) const;

  Code& code_;
  const Procedure& procedure_;
  const std::size_t identifier_;
  const Locals local_;
  const std::string image_, tail_;
};

}  // namespace lrpc::stubgen
