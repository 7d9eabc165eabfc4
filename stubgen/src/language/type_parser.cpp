#include "type_parser.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace lrpc::stubgen {
namespace {

constexpr std::string_view kNoCpp = "a text is string<64>, an array is int32[4]; other types have a name of one word";

}  // namespace

ast::Enum TypeParser::enumeration(Doc doc) {
  ast::Enum result{.doc = std::move(doc), .name = name("the enum")};
  if (take_if(TokenKind::colon)) result.underlying = name("the enum's underlying type");
  expect(TokenKind::open_brace, "before the enum's values");
  bool semicolons = false;
  try {
    while (!at(TokenKind::close_brace) && !at(TokenKind::end)) {
      result.enumerators.push_back(enumerator());
      if (take_if(TokenKind::comma)) continue;
      if (!at(TokenKind::semicolon)) break;
      if (!std::exchange(semicolons, true))
        diagnostics_.error(current_.at, "expected '}' after the enum's values, which commas separate, found ';'");
      take();
      if (at_item() && following_.kind == TokenKind::identifier) return result;  // the '}' is missing
    }
    expect(TokenKind::close_brace, "after the enum's values, which commas separate");
  } catch (const SyntaxError&) {
    // Skip the rest of the block. The enum's name stays declared, so that its uses are not reported as well.
    result.incomplete = true;
    while (!at(TokenKind::close_brace) && !at(TokenKind::semicolon) && !at(TokenKind::end) &&
           !(at_item() && current_.first_on_line && following_.kind == TokenKind::identifier))
      take();
    take_if(TokenKind::close_brace);
  }
  take_if(TokenKind::semicolon);
  return result;
}

ast::Enumerator TypeParser::enumerator() {
  ast::Enumerator result{.doc = std::exchange(current_.doc, {}), .name = name("the enum's value")};
  if (take_if(TokenKind::equals)) result.value = number();
  return result;
}

ast::Alias TypeParser::alias(Doc doc) {
  ast::Alias result{.doc = std::move(doc), .name = name("the type")};
  expect(TokenKind::equals, "after the type's name");
  result.type = type();
  if (take_word("range")) {
    ast::Range& range = result.range.emplace();
    range.low = number();
    expect(TokenKind::dots, "between the range's ends");
    range.high = number();
  }
  expect_semicolon("the type");
  return result;
}

ast::Record TypeParser::record(Doc doc, bool is_error) {
  ast::Record result{.doc = std::move(doc), .name = name(is_error ? "the error" : "the record"), .is_error = is_error};
  if (is_error && take_if(TokenKind::semicolon)) return result;
  expect(TokenKind::open_brace, "before the fields");
  while (!at(TokenKind::close_brace) && !at(TokenKind::end)) {
    if (at_item() && following_.kind == TokenKind::identifier) {
      diagnostics_.error(current_.at, fmt::format("'}}' is missing before {}: the fields of '{}' are not closed",
                                                  describe(current_), result.name.text));
      result.incomplete = true;
      return result;
    }
    try {
      result.fields.push_back(field());
    } catch (const SyntaxError&) {
      result.incomplete = true;
      recover();
    }
  }
  expect(TokenKind::close_brace, "after the fields");
  take_if(TokenKind::semicolon);
  return result;
}

ast::Field TypeParser::field() {
  ast::Field result{.doc = std::exchange(current_.doc, {}), .name = name("the field")};
  expect(TokenKind::colon, "between the field's name and its type", "write 'name: type'");
  result.type = type();
  expect_semicolon("the field", at_word("range") ? kNameTheRange : "");
  return result;
}

ast::Handle TypeParser::handle(Doc doc) {
  ast::Handle result{.doc = std::move(doc), .name = name("the handle")};
  expect_semicolon("the handle");
  return result;
}

ast::TypeRef TypeParser::type() {
  if (at_word("sequence") && following_.kind == TokenKind::less)
    unsupported(current_.at, "sequence<T, N>", "use an array T[N] with a count beside it, or bytes<N>");
  if (at_word("optional") && following_.kind == TokenKind::less)
    unsupported(current_.at, "optional<T>", "put a bool beside the value that says whether it counts");
  if (at_word("map") && following_.kind == TokenKind::less)
    unsupported(current_.at, "map<K, V>", "use an array of records that hold key and value, with a count beside it");
  if (at_word("ref") && (following_.kind == TokenKind::less || following_.kind == TokenKind::identifier)) {
    unsupported(current_.at, "ref",
                "pass the value itself: a record or array reaches the procedure by reference, unmoved");
  }
  if (at_word("fd") && following_.kind != TokenKind::colon)
    unsupported(current_.at, "fd", "pass a handle to what the server opened, or a name that it can open");
  if (at_word("union") && following_.kind == TokenKind::open_brace)
    unsupported(current_.at, "union", "use a record with one field per case and an enum that says which one counts");
  ast::TypeRef result{.name = name("a type")};
  if (at(TokenKind::colon)) fail("the name of a type is one word", std::string(kNoCpp));
  if (at(TokenKind::open_paren)) fail(fmt::format("'{}' takes no '('", result.name.text), std::string(kNoCpp));
  if (take_if(TokenKind::less)) {
    if (at(TokenKind::identifier))
      fail(fmt::format("expected a bound, which is a number, found {}", describe(current_)), std::string(kNoCpp));
    result.bound = number();
    expect(TokenKind::greater, "after the bound");
  }
  while (take_if(TokenKind::open_square)) {
    if (at(TokenKind::close_square))
      fail("the array says no length", "arrays are of fixed length, T[N]; for bytes of varying length use bytes<N>");
    result.extents.push_back(number());
    expect(TokenKind::close_square, "after the array's length");
  }
  return result;
}

ast::Number TypeParser::number() {
  ast::Number result;
  result.at = current_.at;
  const bool negative = take_if(TokenKind::minus);
  if (!at(TokenKind::integer)) fail(fmt::format("expected a number, found {}", describe(current_)));
  result.value = Integer(negative, take().value);
  return result;
}

ast::Name TypeParser::name(std::string_view what) {
  if (!at(TokenKind::identifier)) {
    fail(what == "a type" ? fmt::format("expected a type, found {}", describe(current_))
                          : fmt::format("expected the name of {}, found {}", what, describe(current_)));
  }
  const Token token = take();
  return {std::string(token.text), token.at};
}

}  // namespace lrpc::stubgen
