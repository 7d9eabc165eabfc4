#include "lrpc/stubgen/language/token.h"

#include <fmt/format.h>

namespace lrpc::stubgen {

std::string_view describe(TokenKind kind) {
  switch (kind) {
    case TokenKind::end: return "the end of the file";
    case TokenKind::identifier: return "a name";
    case TokenKind::integer: return "a number";
    case TokenKind::string: return "a text in quotes";
    case TokenKind::arrow: return "'->'";
    case TokenKind::dots: return "'..'";
    case TokenKind::dot: return "'.'";
    case TokenKind::minus: return "'-'";
    case TokenKind::equals: return "'='";
    case TokenKind::colon: return "':'";
    case TokenKind::semicolon: return "';'";
    case TokenKind::comma: return "','";
    case TokenKind::open_brace: return "'{'";
    case TokenKind::close_brace: return "'}'";
    case TokenKind::open_paren: return "'('";
    case TokenKind::close_paren: return "')'";
    case TokenKind::open_square: return "'['";
    case TokenKind::close_square: return "']'";
    case TokenKind::less: return "'<'";
    case TokenKind::greater: return "'>'";
    case TokenKind::invalid: return "something unreadable";
  }
  return "something unreadable";
}

std::string describe(const Token& token) {
  constexpr std::size_t kLongest = 60;
  switch (token.kind) {
    case TokenKind::identifier:
    case TokenKind::integer:
      return fmt::format("'{}{}'", token.text.substr(0, kLongest), token.text.size() > kLongest ? "..." : "");
    default: return std::string(describe(token.kind));
  }
}

}  // namespace lrpc::stubgen
