// A hand-written parser by panic mode: a mistake is reported where it is seen, SyntaxError unwinds to the innermost
// list (of declarations or of fields), and that list goes on behind the next ';' or block (token_stream.h). The grammar
// stands in docs/INTERFACE.md; each function here is one of its rules.
#include "parser.h"

#include <fmt/format.h>

#include <utility>

#include "token_stream.h"

namespace lrpc::stubgen {
namespace {

class Parser : private TokenStream {
 public:
  using TokenStream::TokenStream;

  std::optional<ast::Interface> interface_file();

 private:
  void head(ast::Interface& interface);
  void declarations(ast::Interface& interface);
  ast::Declaration declaration();
  ast::Option option();
  ast::Enum enumeration(Doc doc);
  ast::Enumerator enumerator();
  ast::Alias alias(Doc doc);
  ast::Record record(Doc doc, bool is_error);
  ast::Field field();
  ast::Handle handle(Doc doc);
  ast::Procedure procedure(Doc doc);
  ast::Callback callback(Doc doc);
  std::vector<ast::Parameter> parameters(bool results);
  ast::Parameter parameter(bool results);
  void clauses(ast::Procedure& procedure);
  ast::TypeRef type();
  ast::Number number();
  ast::Name name(std::string_view what);
};

// --- The interface ---------------------------------------------------------------------------------------------------

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
      diagnostics_.error(current_.at, "the interface is not closed: '}' is missing");
      return interface;
    }
    take();
    take_if(TokenKind::semicolon);
    if (!at(TokenKind::end)) {
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
  if (!at(TokenKind::dot)) {
    fail(fmt::format("expected '.' between the version's two numbers, found {}", describe(current_)),
         "write it as 'version 1.0'");
  }
  take();
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
  if (take_word("procedure")) return procedure(std::move(doc));
  if (at_word("callback")) return callback(std::move(doc));
  if (at_word("oneway")) {
    const Location where = take().at;
    if (!take_word("procedure")) {
      fail(fmt::format("expected 'procedure' after 'oneway', found {}", describe(current_)),
           "write 'oneway procedure Name(...);'");
    }
    ast::Procedure result = procedure(std::move(doc));
    result.one_way = where;
    return result;
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

// --- Types -----------------------------------------------------------------------------------------------------------

ast::Enum Parser::enumeration(Doc doc) {
  ast::Enum result;
  result.doc = std::move(doc);
  result.name = name("the enum");
  if (take_if(TokenKind::colon)) result.underlying = name("the enum's underlying type");
  expect(TokenKind::open_brace, "before the enum's values");
  try {
    while (!at(TokenKind::close_brace) && !at(TokenKind::end)) {
      result.enumerators.push_back(enumerator());
      if (!take_if(TokenKind::comma)) break;
    }
    expect(TokenKind::close_brace, "after the enum's values, which commas separate");
  } catch (const SyntaxError&) {
    // The rest of the block is this enum's; its name is known, so that its users are not reported as well.
    result.incomplete = true;
    while (!at(TokenKind::close_brace) && !at(TokenKind::semicolon) && !at(TokenKind::end)) take();
    take_if(TokenKind::close_brace);
  }
  take_if(TokenKind::semicolon);
  return result;
}

ast::Enumerator Parser::enumerator() {
  ast::Enumerator result;
  result.doc = std::move(current_.doc);
  result.name = name("the enum's value");
  if (take_if(TokenKind::equals)) result.value = number();
  return result;
}

ast::Alias Parser::alias(Doc doc) {
  ast::Alias result;
  result.doc = std::move(doc);
  result.name = name("the type");
  expect(TokenKind::equals, "after the type's name");
  result.type = type();
  if (take_word("range")) {
    ast::Range range;
    range.low = number();
    expect(TokenKind::dots, "between the range's ends");
    range.high = number();
    result.range = range;
  }
  expect_semicolon("the type");
  return result;
}

ast::Record Parser::record(Doc doc, bool is_error) {
  ast::Record result;
  result.doc = std::move(doc);
  result.is_error = is_error;
  result.name = name(is_error ? "the error" : "the record");
  if (is_error && take_if(TokenKind::semicolon)) return result;
  expect(TokenKind::open_brace, "before the fields");
  while (!at(TokenKind::close_brace) && !at(TokenKind::end)) {
    if (at_item() && following_.kind == TokenKind::identifier) {
      diagnostics_.error(current_.at, fmt::format("'}}' is missing before {}: the fields of '{}' are not closed",
                                                  describe(current_), result.name.text));
      return result;
    }
    try {
      result.fields.push_back(field());
    } catch (const SyntaxError&) {
      recover();
    }
  }
  expect(TokenKind::close_brace, "after the fields");
  take_if(TokenKind::semicolon);
  return result;
}

ast::Field Parser::field() {
  ast::Field result;
  result.doc = std::move(current_.doc);
  result.name = name("the field");
  expect(TokenKind::colon, "between the field's name and its type");
  result.type = type();
  expect_semicolon("the field");
  return result;
}

ast::Handle Parser::handle(Doc doc) {
  ast::Handle result;
  result.doc = std::move(doc);
  result.name = name("the handle");
  expect_semicolon("the handle");
  return result;
}

ast::TypeRef Parser::type() {
  if (at_word("sequence") && following_.kind == TokenKind::less) {
    unsupported(current_.at, "sequence<T, N>", "use an array T[N] with a count beside it, or bytes<N>");
  }
  if (at_word("optional") && following_.kind == TokenKind::less) {
    unsupported(current_.at, "optional<T>", "put a bool beside the value that says whether it counts");
  }
  if (at_word("ref") && (following_.kind == TokenKind::less || following_.kind == TokenKind::identifier)) {
    unsupported(current_.at, "ref",
                "pass the value itself: a record or array reaches the procedure by reference, unmoved");
  }
  if (at_word("fd") && (following_.kind != TokenKind::colon)) {
    unsupported(current_.at, "fd", "pass a handle to what the server opened, or a name that it can open");
  }
  if (at_word("union") && following_.kind == TokenKind::open_brace) {
    unsupported(current_.at, "union", "use a record with one field per case and an enum that says which one counts");
  }
  ast::TypeRef result;
  result.name = name("a type");
  if (take_if(TokenKind::less)) {
    result.bound = number();
    expect(TokenKind::greater, "after the bound");
  }
  while (take_if(TokenKind::open_square)) {
    if (at(TokenKind::close_square)) {
      fail("the array says no length", "arrays are of fixed length, T[N]; for bytes of varying length use bytes<N>");
    }
    result.extents.push_back(number());
    expect(TokenKind::close_square, "after the array's length");
  }
  return result;
}

// --- Procedures ------------------------------------------------------------------------------------------------------

ast::Procedure Parser::procedure(Doc doc) {
  ast::Procedure result;
  result.doc = std::move(doc);
  result.name = name("the procedure");
  expect(TokenKind::open_paren, "before the parameters");
  result.parameters = parameters(false);
  if (take_if(TokenKind::arrow)) {
    if (!at(TokenKind::open_paren)) {
      fail(fmt::format("expected '(' after '->', found {}", describe(current_)),
           "results have names: write '-> (name: type)'");
    }
    take();
    result.results = parameters(true);
  }
  clauses(result);
  expect_semicolon("the procedure");
  return result;
}

ast::Callback Parser::callback(Doc doc) {
  ast::Callback result;
  result.doc = std::move(doc);
  result.at = take().at;
  expect(TokenKind::open_brace, "before the procedures through which clients are called back");
  while (!at(TokenKind::close_brace) && !at(TokenKind::end)) {
    try {
      Doc procedure_doc = std::move(current_.doc);
      if (!take_word("procedure")) {
        const Token found = current_;
        if (at_item()) take();                                      // recover() would stay before such a word
        if (found.kind == TokenKind::invalid) throw SyntaxError{};  // the lexer has reported it
        diagnostics_.error(found.at, fmt::format("expected a procedure, found {}", describe(found)));
        diagnostics_.note(found.at, "a callback holds procedures only; types, errors and options stand beside it");
        throw SyntaxError{};
      }
      result.procedures.push_back(procedure(std::move(procedure_doc)));
    } catch (const SyntaxError&) {
      recover();
    }
  }
  expect(TokenKind::close_brace, "after the callback's procedures");
  take_if(TokenKind::semicolon);
  return result;
}

std::vector<ast::Parameter> Parser::parameters(bool results) {
  std::vector<ast::Parameter> list;
  if (take_if(TokenKind::close_paren)) return list;
  do {
    list.push_back(parameter(results));
  } while (take_if(TokenKind::comma));
  expect(TokenKind::close_paren,
         results ? "after the results, which commas separate" : "after the parameters, which commas separate");
  return list;
}

ast::Parameter Parser::parameter(bool results) {
  ast::Parameter result;
  result.doc = std::move(current_.doc);
  result.direction = results ? ast::Direction::out : ast::Direction::in;
  // `in`, `out` and `inout` are directions before a name, and names before a ':'.
  if (following_.kind == TokenKind::identifier) {
    const Location where = current_.at;
    bool given = true;
    if (take_word("in")) {
      result.direction = ast::Direction::in;
    } else if (take_word("inout")) {
      result.direction = ast::Direction::inout;
    } else if (take_word("out")) {
      result.direction = ast::Direction::out;
    } else {
      given = false;
    }
    if (given && results && result.direction != ast::Direction::out) {
      diagnostics_.error(where, "a result cannot be 'in' or 'inout'");
      diagnostics_.note(where, "declare it among the parameters, before '->'");
      result.direction = ast::Direction::out;
    }
  }
  result.name = name(results ? "the result" : "the parameter");
  expect(TokenKind::colon,
         results ? "between the result's name and its type" : "between the parameter's name and its type");
  result.type = type();
  while (at(TokenKind::identifier)) {
    const Location where = current_.at;
    if (take_word("uninterpreted")) {
      result.uninterpreted = where;
    } else if (take_word("closes")) {
      result.closes = where;
    } else {
      fail(fmt::format("{} means nothing behind a parameter", describe(current_)),
           "known here: 'uninterpreted' and 'closes'; a ',' separates parameters");
    }
  }
  return result;
}

void Parser::clauses(ast::Procedure& procedure) {
  const auto once = [&](bool already, std::string_view word) {
    if (already) diagnostics_.error(current_.at, fmt::format("'{}' is said twice", word));
  };
  while (at(TokenKind::identifier)) {
    if (at_word("raises")) {
      once(!procedure.raises.empty(), "raises");
      take();
      expect(TokenKind::open_paren, "before the errors that the procedure raises");
      do {
        procedure.raises.push_back(name("the error"));
      } while (take_if(TokenKind::comma));
      expect(TokenKind::close_paren, "after the errors, which commas separate");
    } else if (at_word("may_block")) {
      once(procedure.may_block, "may_block");
      take();
      procedure.may_block = true;
    } else if (at_word("astacks")) {
      once(procedure.astacks.has_value(), "astacks");
      take();
      procedure.astacks = number();
    } else if (at_word("astack_size")) {
      once(procedure.astack_size.has_value(), "astack_size");
      take();
      procedure.astack_size = number();
    } else if (at_item() && current_.first_on_line) {
      return;  // the ';' is missing: the caller says so
    } else {
      fail(fmt::format("{} means nothing behind a procedure", describe(current_)),
           "known here: '-> (...)' first, then 'raises (...)', 'may_block', 'astacks N' and 'astack_size N'");
    }
  }
}

// --- Words -----------------------------------------------------------------------------------------------------------

ast::Number Parser::number() {
  ast::Number result;
  result.at = current_.at;
  const bool negative = take_if(TokenKind::minus);
  if (!at(TokenKind::integer)) fail(fmt::format("expected a number, found {}", describe(current_)));
  result.value = Integer(negative, take().value);
  return result;
}

ast::Name Parser::name(std::string_view what) {
  if (!at(TokenKind::identifier)) {
    fail(what == "a type" ? fmt::format("expected a type, found {}", describe(current_))
                          : fmt::format("expected the name of {}, found {}", what, describe(current_)));
  }
  const Token token = take();
  return {std::string(token.text), token.at};
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
