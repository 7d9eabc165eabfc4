#include "procedure_parser.h"

#include <fmt/format.h>

#include <utility>

namespace lrpc::stubgen {

std::optional<ast::Procedure> ProcedureParser::procedure_here(Doc& doc) {
  std::optional<Location> one_way;
  if (at_word("oneway") && following_.kind == TokenKind::identifier && following_.text == "procedure")
    one_way = take().at;
  if (!take_word("procedure")) return std::nullopt;
  ast::Procedure result = procedure(std::move(doc));
  result.one_way = one_way;
  return result;
}

ast::Procedure ProcedureParser::procedure(Doc doc) {
  ast::Procedure result;
  result.doc = std::move(doc);
  result.name = name("the procedure");
  expect(TokenKind::open_paren, "before the parameters");
  result.parameters = parameters(false);
  if (take_if(TokenKind::arrow)) {
    expect(TokenKind::open_paren, "after '->'", "results have names: write '-> (name: type)'");
    result.results = parameters(true);
  }
  clauses(result);
  expect_semicolon("the procedure");
  return result;
}

ast::Callback ProcedureParser::callback(Doc doc) {
  ast::Callback result;
  result.doc = std::move(doc);
  result.at = take().at;
  expect(TokenKind::open_brace, "before the procedures through which clients are called back");
  while (!at(TokenKind::close_brace) && !at(TokenKind::end)) {
    try {
      Doc procedure_doc = std::exchange(current_.doc, {});
      auto declared = procedure_here(procedure_doc);
      if (!declared) {
        if (reported()) throw SyntaxError{};
        const Token found = current_;
        if (at_item()) take();  // recover() would not skip this word
        diagnostics_.error(found.at, fmt::format("expected a procedure, found {}", describe(found)));
        diagnostics_.note(found.at, "a callback holds procedures only; types, errors and options stand beside it");
        throw SyntaxError{};
      }
      result.procedures.push_back(*std::move(declared));
    } catch (const SyntaxError&) {
      recover();
    }
  }
  expect(TokenKind::close_brace, "after the callback's procedures");
  take_if(TokenKind::semicolon);
  return result;
}

std::vector<ast::Parameter> ProcedureParser::parameters(bool results) {
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

ast::Parameter ProcedureParser::parameter(bool results) {
  ast::Parameter result;
  result.doc = std::exchange(current_.doc, {});
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

void ProcedureParser::clauses(ast::Procedure& procedure) {
  const auto once = [&](bool already, std::string_view word) {
    if (already) diagnostics_.error(current_.at, fmt::format("'{}' is said twice", word));
  };
  while (at(TokenKind::identifier)) {
    if (at_word("raises")) {
      once(!procedure.raises.empty(), "raises");
      take();
      expect(TokenKind::open_paren, "before the errors that the procedure raises");
      constexpr std::string_view kWhere = "after the errors, which commas separate";
      bool semicolons = false;
      do {
        procedure.raises.push_back(name("the error"));
      } while (take_comma(kWhere, semicolons));
      expect(TokenKind::close_paren, kWhere);
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

}  // namespace lrpc::stubgen
