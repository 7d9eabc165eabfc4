// A hand-written parser with panic-mode recovery: a mistake is reported where it is seen, SyntaxError unwinds to the
// innermost list (of declarations or of fields), and that list goes on behind the next ';' or block (token_stream.h).
// The grammar is in docs/INTERFACE.md; each function is one of its rules: here those of the interface, in
// procedure_parser.cpp and type_parser.cpp those of its parts.
#include "parser.h"

#include <fmt/format.h>

#include <utility>

#include "procedure_parser.h"

namespace lrpc::stubgen {
namespace {

class Parser : private ProcedureParser {
 public:
  using ProcedureParser::ProcedureParser;

  std::optional<ast::Interface> interface_file();

 private:
  void head(ast::Interface& interface);
  void declarations(ast::Interface& interface);
  ast::Declaration declaration();
  ast::Option option();
};

std::optional<ast::Interface> Parser::interface_file() {
  try {
    if (!at_word("interface")) {
      fail(fmt::format("expected 'interface', found {}", describe(current_)),
           "an interface file holds one 'interface Name version 1.0 { ... }'");
    }
    ast::Interface interface;
    interface.doc = std::move(current_.doc);
    take();
    try {
      head(interface);
    } catch (const SyntaxError&) {
      recover_head();
      if (at(TokenKind::end)) return std::nullopt;
    }
    declarations(interface);
    if (at(TokenKind::end)) {
      if (!reported()) diagnostics_.error(current_.at, "the interface is not closed: '}' is missing");
      return interface;
    }
    take();
    take_if(TokenKind::semicolon);
    if (!at(TokenKind::end) && !reported()) {
      diagnostics_.error(current_.at, fmt::format("{} stands behind the interface's end", describe(current_)));
      diagnostics_.note(current_.at, at_word("interface") ? "one file holds one interface: move the second to its own"
                                                          : "is there one '}' too many above?");
    }
    return interface;
  } catch (const SyntaxError&) {
    return std::nullopt;
  }
}

void Parser::head(ast::Interface& interface) {
  interface.name.at = current_.at;
  interface.name = name("the interface");
  if (!take_word("version")) fail("expected 'version' after the interface's name", "write it as 'version 1.0'");
  interface.major = number();
  expect(TokenKind::dot, "between the version's two numbers", "write it as 'version 1.0'");
  interface.minor = number();
  expect(TokenKind::open_brace, "before the interface's declarations");
}

void Parser::declarations(ast::Interface& interface) {
  while (!at(TokenKind::close_brace) && !at(TokenKind::end)) {
    try {
      interface.declarations.push_back(declaration());
    } catch (const SyntaxError&) {
      recover();
    }
  }
}

ast::Declaration Parser::declaration() {
  Doc doc = std::move(current_.doc);
  if (take_word("option")) return option();
  if (take_word("enum")) return enumeration(std::move(doc));
  if (take_word("type")) return alias(std::move(doc));
  if (take_word("record")) return record(std::move(doc), false);
  if (take_word("error")) return record(std::move(doc), true);
  if (take_word("handle")) return handle(std::move(doc));
  if (auto declared = procedure_here(doc)) return *std::move(declared);
  if (at_word("callback")) return callback(std::move(doc));
  if (take_word("oneway")) {
    fail(fmt::format("expected 'procedure' after 'oneway', found {}", describe(current_)),
         "write 'oneway procedure Name(...);'");
  }
  if (at_word("union")) {
    unsupported(current_.at, "union", "use a record with one field per case and an enum that says which one counts");
  }
  fail(fmt::format("expected a declaration, found {}", describe(current_)),
       "declarations begin with option, enum, type, record, error, handle, procedure, oneway or callback");
}

ast::Option Parser::option() {
  ast::Option option;
  option.name = name("the option");
  expect(TokenKind::equals, "before the option's value");
  option.value_at = current_.at;
  if (at(TokenKind::string)) {
    option.value = std::string(take().text);
  } else {
    option.value = number();
  }
  expect_semicolon("the option");
  return option;
}

}  // namespace

std::optional<ast::Interface> parse(const Source& source, Diagnostics& diagnostics) {
  if (source.text.size() > Source::kMaxBytes) {
    diagnostics.error({}, fmt::format("the file has {} bytes; the limit is {}", source.text.size(), Source::kMaxBytes));
    return std::nullopt;
  }
  return Parser(source, diagnostics).interface_file();
}

}  // namespace lrpc::stubgen
