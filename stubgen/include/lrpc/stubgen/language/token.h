// The tokens that the lexer makes of the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/stubgen/language/source.h"

namespace lrpc::stubgen {

/// From arrow to greater in the order of the tables of token.cpp and lexer.cpp.
enum class TokenKind : std::uint8_t {
  end,           ///< The end of the file.
  identifier,    ///< Names and all words of the language: a word is reserved only where it has a meaning.
  integer,       ///< 12, 1_000_000, 0x1f
  string,        ///< "text", on one line, without escapes
  arrow,         ///< ->
  dots,          ///< ..
  dot,           ///< .
  minus,         ///< -
  equals,        ///< =
  colon,         ///< :
  semicolon,     ///< ;
  comma,         ///< ,
  open_brace,    ///< {
  close_brace,   ///< }
  open_paren,    ///< (
  close_paren,   ///< )
  open_square,   ///< [
  close_square,  ///< ]
  less,          ///< <
  greater,       ///< >
  invalid,       ///< Text that the lexer has reported as an error.
};

/// The lines of the doc comment (`///` or `/** */`) before a declaration, without their comment marks.
using Doc = std::vector<std::string>;

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  ///< As written; a view into the Source. For a string: the text between the quotes.
  Location at;
  Location end;             ///< Just behind it.
  std::uint64_t value = 0;  ///< Of an integer.
  bool first_on_line = false;
  Doc doc;
};

/// How a diagnostic names a kind ("';'", "a name") and a token ("'foo'", "the end of the file").
[[nodiscard]] std::string_view describe(TokenKind kind);
[[nodiscard]] std::string describe(const Token& token);

}  // namespace lrpc::stubgen
