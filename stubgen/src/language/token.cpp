#include "lrpc/stubgen/language/token.h"

#include <fmt/format.h>

#include <cstddef>

namespace lrpc::stubgen {

std::string_view describe(TokenKind kind) {
  // In the order of TokenKind, from arrow on.
  constexpr std::string_view kMarks[] = {"'->'", "'..'", "'.'", "'-'", "'='", "':'", "';'", "','",
                                         "'{'",  "'}'",  "'('", "')'", "'['", "']'", "'<'", "'>'"};
  static_assert(std::size(kMarks) ==
                static_cast<std::size_t>(TokenKind::invalid) - static_cast<std::size_t>(TokenKind::arrow));
  switch (kind) {
    case TokenKind::end: return "the end of the file";
    case TokenKind::identifier: return "a name";
    case TokenKind::integer: return "a number";
    case TokenKind::string: return "a text in quotes";
    case TokenKind::invalid: return "something unreadable";
    default: return kMarks[static_cast<std::size_t>(kind) - static_cast<std::size_t>(TokenKind::arrow)];
  }
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
