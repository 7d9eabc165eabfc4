// The parser's view of the tokens: the current and the following one, functions that take them, and the recovery from
// mistakes.
#pragma once

#include <string>
#include <string_view>

#include "lexer.h"
#include "lrpc/stubgen/language/source.h"
#include "lrpc/stubgen/language/token.h"

namespace lrpc::stubgen {

/// Thrown after a mistake was reported; unwinds to the innermost list, which calls recover(). Never leaves the parser.
struct SyntaxError {};

class TokenStream {
 public:
  TokenStream(const Source& source, Diagnostics& diagnostics);

 protected:
  [[nodiscard]] bool at(TokenKind kind) const { return current_.kind == kind; }
  [[nodiscard]] bool at_word(std::string_view word) const { return at(TokenKind::identifier) && current_.text == word; }
  /// At a word that begins a declaration. The word may nevertheless be a name.
  [[nodiscard]] bool at_item() const { return is_item(current_); }

  /// At text that the lexer could not read and has reported, or at the end of a file that ends within a comment.
  [[nodiscard]] bool reported() const { return at(TokenKind::invalid) || (at(TokenKind::end) && lexer_.in_comment()); }

  Token take();
  bool take_if(TokenKind kind);
  bool take_word(std::string_view word);
  /// Takes a token of this kind, or fails: "expected ':' `where`, found ...".
  Token expect(TokenKind kind, std::string_view where, std::string hint = {});
  /// Takes a ';', or reports at the end of the declaration or field that it is missing, and recovers: what was read is
  /// whole, and counts, so that its uses are not reported as well.
  void expect_semicolon(std::string_view after, std::string_view hint = {});
  /// Whether another item of a list in parentheses comes: takes the ',' before it. Also takes a ';' in its place, or
  /// before the list's end, and reports the first one as "expected ')' `where`". `semicolons`: whether one was
  /// reported; begins as false.
  bool take_comma(std::string_view where, bool& semicolons);

  [[noreturn]] void fail(std::string message, std::string hint = {});
  [[noreturn]] void unsupported(Location at, std::string_view what, std::string_view instead);
  /// Skips to where the next declaration or field can begin: behind a ';' or a whole { } block, before the '}' of the
  /// current list, or before a declaration's word that begins a line.
  void recover();
  /// The same after a mistake in the interface's head: skips to behind its '{' or, if that is missing, to the first
  /// declaration.
  void recover_head();

  [[nodiscard]] static bool is_item(const Token& token);

  Diagnostics& diagnostics_;
  Lexer lexer_;
  Token current_;
  Token following_;
  Location previous_end_;
};

}  // namespace lrpc::stubgen
