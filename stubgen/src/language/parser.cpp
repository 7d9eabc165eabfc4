// A hand-written parser with panic-mode recovery: a mistake is reported where it is seen, SyntaxError unwinds to the
// innermost list (of declarations or of fields), and that list goes on behind the next ';' or block (token_stream.h).
// The grammar is in docs/INTERFACE.md; each function is one of its rules: here those of the interface and of
// procedures, in type_parser.cpp those of names, numbers and types.
#include "parser.h"

#include <fmt/format.h>

#include <utility>

#include "type_parser.h"

namespace lrpc::stubgen {
namespace {

constexpr std::string_view kClauses =
    "known here: '-> (...)' first, then 'raises (...)', 'may_block', 'astacks N' and 'astack_size N'";

bool is_direction(std::string_view word) { return word == "in" || word == "inout" || word == "out"; }

class Parser : private TypeParser {
 public:
  using TypeParser::TypeParser;

  std::optional<ast::Interface> interface_file() {
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
      items([&] { interface.declarations.push_back(declaration()); });
      if (at(TokenKind::end)) {
        if (!reported()) diagnostics_.error(current_.at, "the interface is not closed: '}' is missing");
        return interface;
      }
      take();
      take_if(TokenKind::semicolon);
      if (!at(TokenKind::end) && !reported())
        diagnostics_.error(current_.at, fmt::format("{} stands behind the interface's end", describe(current_)),
                           at_word("interface") ? "one file holds one interface: move the second to its own"
                                                : "is there one '}' too many above?");
      return interface;
    } catch (const SyntaxError&) {
      return std::nullopt;
    }
  }

 private:
  void head(ast::Interface& interface) {
    interface.name.at = current_.at;
    interface.name = name("the interface");
    if (!take_word("version")) {
      const bool qualified = at(TokenKind::colon) || at(TokenKind::dot) || at(TokenKind::minus);
      fail("expected 'version' after the interface's name",
           qualified ? "the name is one word; for a C++ namespace there is 'option namespace = \"a::b\";'"
                     : "write it as 'version 1.0'");
    }
    interface.major = number();
    expect(TokenKind::dot, "between the version's two numbers", "write it as 'version 1.0'");
    interface.minor = number();
    expect(TokenKind::open_brace, "before the interface's declarations");
  }

  /// A list up to its '}'. A mistake costs only the item in which it is.
  template <class Item>
  void items(const Item& item) {
    while (!at(TokenKind::close_brace) && !at(TokenKind::end)) {
      try {
        item();
      } catch (const SyntaxError&) {
        recover();
      }
    }
  }

  ast::Declaration declaration() {
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
    if (at_word("union"))
      unsupported(current_.at, "union", "use a record with one field per case and an enum that says which one counts");
    fail(fmt::format("expected a declaration, found {}", describe(current_)),
         "declarations begin with option, enum, type, record, error, handle, procedure, oneway or callback");
  }

  ast::Option option() {
    ast::Option option{.name = name("the option")};
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

  /// At `procedure` or `oneway procedure`: takes the whole declaration. Nothing, and `doc` as it was, at anything else.
  std::optional<ast::Procedure> procedure_here(Doc& doc) {
    std::optional<Location> one_way;
    if (at_word("oneway") && following_.kind == TokenKind::identifier && following_.text == "procedure")
      one_way = take().at;
    if (!take_word("procedure")) return std::nullopt;
    ast::Procedure result{.doc = std::move(doc), .name = name("the procedure")};
    expect(TokenKind::open_paren, "before the parameters");
    result.parameters = parameters(false);
    if (take_if(TokenKind::arrow)) {
      expect(TokenKind::open_paren, "after '->'", "results have names: write '-> (name: type)'");
      result.results = parameters(true);
    }
    clauses(result);
    result.one_way = one_way;
    expect_semicolon("the procedure", at(TokenKind::arrow) ? kClauses : "");
    return result;
  }

  ast::Callback callback(Doc doc) {
    ast::Callback result{.doc = std::move(doc), .at = take().at};
    expect(TokenKind::open_brace, "before the procedures through which clients are called back");
    items([&] {
      Doc procedure_doc = std::exchange(current_.doc, {});
      if (auto declared = procedure_here(procedure_doc)) return result.procedures.push_back(*std::move(declared));
      if (reported()) throw SyntaxError{};
      const Token found = current_;
      if (at_item()) take();  // recover() would not skip this word
      diagnostics_.error(found.at, fmt::format("expected a procedure, found {}", describe(found)),
                         "a callback holds procedures only; types, errors and options stand beside it");
      throw SyntaxError{};
    });
    expect(TokenKind::close_brace, "after the callback's procedures");
    take_if(TokenKind::semicolon);
    return result;
  }

  std::vector<ast::Parameter> parameters(bool results) {
    std::vector<ast::Parameter> list;
    if (take_if(TokenKind::close_paren)) return list;
    const std::string_view where =
        results ? "after the results, which commas separate" : "after the parameters, which commas separate";
    bool semicolons = false;
    do {
      list.push_back(parameter(results));
    } while (take_comma(where, semicolons));
    expect(TokenKind::close_paren, where);
    return list;
  }

  ast::Parameter parameter(bool results) {
    ast::Parameter result{.doc = std::exchange(current_.doc, {}),
                          .direction = results ? ast::Direction::out : ast::Direction::in};
    // `in`, `out` and `inout` are directions before a name, and names before a ':'.
    if (following_.kind == TokenKind::identifier) {
      const Location where = current_.at;
      if (take_word("in")) {
        result.direction = ast::Direction::in;
      } else if (take_word("inout")) {
        result.direction = ast::Direction::inout;
      } else if (take_word("out")) {
        result.direction = ast::Direction::out;
      }
      if (results && result.direction != ast::Direction::out) {
        diagnostics_.error(where, "a result cannot be 'in' or 'inout'", "declare it among the parameters, before '->'");
        result.direction = ast::Direction::out;
      }
    }
    result.name = name(results ? "the result" : "the parameter");
    expect(TokenKind::colon,
           results ? "between the result's name and its type" : "between the parameter's name and its type",
           at(TokenKind::identifier) && is_direction(result.name.text)
               ? "a parameter has one direction: 'in', 'inout' or 'out'"
               : "write 'name: type'");
    result.type = type();
    while (at(TokenKind::identifier)) {
      const Location where = current_.at;
      if (take_word("uninterpreted")) {
        result.uninterpreted = where;
      } else if (take_word("closes")) {
        result.closes = where;
      } else {
        fail(fmt::format("{} means nothing behind a parameter", describe(current_)),
             at_word("range") ? std::string(kNameTheRange)
                              : "known here: 'uninterpreted' and 'closes'; a ',' separates parameters");
      }
    }
    if (at(TokenKind::equals))
      fail(results ? "a result has no default value" : "a parameter has no default value",
           results ? "the procedure returns each result" : "callers pass each argument");
    return result;
  }

  void clauses(ast::Procedure& procedure) {
    const auto clause = [&](std::string_view word, bool already) {
      if (at_word(word) && already) diagnostics_.error(current_.at, fmt::format("'{}' is said twice", word));
      return take_word(word);
    };
    while (at(TokenKind::identifier)) {
      if (clause("raises", !procedure.raises.empty())) {
        expect(TokenKind::open_paren, "before the errors that the procedure raises", "write 'raises (Name, Name)'");
        constexpr std::string_view kWhere = "after the errors, which commas separate";
        bool semicolons = false;
        do {
          procedure.raises.push_back(name("the error"));
        } while (take_comma(kWhere, semicolons));
        expect(TokenKind::close_paren, kWhere);
      } else if (clause("may_block", procedure.may_block)) {
        procedure.may_block = true;
      } else if (clause("astacks", procedure.astacks.has_value())) {
        procedure.astacks = number();
      } else if (clause("astack_size", procedure.astack_size.has_value())) {
        procedure.astack_size = number();
      } else if (at_item() && current_.first_on_line) {
        return;  // the ';' is missing: the caller says so
      } else {
        fail(fmt::format("{} means nothing behind a procedure", describe(current_)),
             at_word("oneway") ? "write 'oneway procedure Name(...);'" : std::string(kClauses));
      }
    }
  }
};

}  // namespace

std::optional<ast::Interface> parse(const Source& source, Diagnostics& diagnostics) {
  if (source.text.size() > Source::kMaxBytes) {
    diagnostics.error({}, fmt::format("the file has more than {} bytes", Source::kMaxBytes),
                      "move some of its procedures to an interface of their own");
    return std::nullopt;
  }
  return Parser(source, diagnostics).interface_file();
}

}  // namespace lrpc::stubgen
