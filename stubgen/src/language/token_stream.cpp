#include "token_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lrpc::stubgen {
namespace {

constexpr std::array<std::string_view, 10> kItemWords = {"option", "enum",      "type",   "record",   "error",
                                                         "handle", "procedure", "oneway", "callback", "union"};

}  // namespace

TokenStream::TokenStream(const Source& source, Diagnostics& diagnostics)
    : diagnostics_(diagnostics), lexer_(source, diagnostics) {
  current_ = lexer_.next();
  following_ = lexer_.next();
}

bool TokenStream::is_item(const Token& token) {
  return token.kind == TokenKind::identifier && std::ranges::find(kItemWords, token.text) != kItemWords.end();
}

Token TokenStream::take() {
  previous_end_ = current_.end;
  Token taken = std::exchange(current_, std::move(following_));
  following_ = lexer_.next();
  return taken;
}

bool TokenStream::take_if(TokenKind kind) {
  if (!at(kind)) return false;
  take();
  return true;
}

bool TokenStream::take_word(std::string_view word) {
  if (!at_word(word)) return false;
  take();
  return true;
}

Token TokenStream::expect(TokenKind kind, std::string_view where, std::string hint) {
  if (!at(kind))
    fail(fmt::format("expected {} {}, found {}", describe(kind), where, describe(current_)), std::move(hint));
  return take();
}

void TokenStream::expect_semicolon(std::string_view after, std::string_view hint) {
  if (take_if(TokenKind::semicolon)) return;
  if (!reported()) {
    diagnostics_.error(previous_end_, fmt::format("expected ';' after {}, found {}", after, describe(current_)));
    if (!hint.empty()) diagnostics_.note(previous_end_, std::string(hint));
  }
  recover();
}

bool TokenStream::take_comma(std::string_view where, bool& semicolons) {
  if (take_if(TokenKind::comma)) return true;
  // If a declaration follows, the ')' is missing.
  const bool another = following_.kind == TokenKind::identifier && !is_item(following_);
  if (!at(TokenKind::semicolon) || !(another || following_.kind == TokenKind::close_paren)) return false;
  if (!std::exchange(semicolons, true))
    diagnostics_.error(current_.at, fmt::format("expected ')' {}, found ';'", where));
  take();
  return another;
}

void TokenStream::fail(std::string message, std::string hint) {
  if (!reported()) diagnostics_.error(current_.at, std::move(message), std::move(hint));
  throw SyntaxError{};
}

void TokenStream::unsupported(Location at, std::string_view what, std::string_view instead) {
  diagnostics_.error(at, fmt::format("{} is not supported yet", what), std::string(instead));
  throw SyntaxError{};
}

void TokenStream::recover() {
  std::size_t depth = 0;
  for (bool first = true; !at(TokenKind::end); first = false) {
    if (depth == 0 && at(TokenKind::close_brace)) return;
    if (depth == 0 && !first && at_item() && current_.first_on_line && following_.kind == TokenKind::identifier) return;
    // The mistake was seen at the word itself, because the ';' before it is missing: go on there.
    if (first && at_item() && current_.first_on_line && !at_word("union")) return;
    const TokenKind kind = take().kind;
    if (kind == TokenKind::open_brace) ++depth;
    // A block within a list in parentheses does not end the declaration.
    if (kind == TokenKind::close_brace && --depth == 0 && !at(TokenKind::close_paren) && !at(TokenKind::comma)) {
      take_if(TokenKind::semicolon);
      return;
    }
    if (kind == TokenKind::semicolon && depth == 0) return;
  }
}

void TokenStream::recover_head() {
  while (!at(TokenKind::end) && !at(TokenKind::close_brace) && !at(TokenKind::open_brace)) {
    if (at_item() && (current_.first_on_line || following_.kind == TokenKind::identifier)) return;
    take();
  }
  take_if(TokenKind::open_brace);
}

}  // namespace lrpc::stubgen
