// Text to tokens, one at a time.
#pragma once

#include <cstddef>

#include "lrpc/stubgen/language/source.h"
#include "lrpc/stubgen/language/token.h"

namespace lrpc::stubgen {

/// What names consist of; '_' is a letter.
[[nodiscard]] constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads tokens from a Source, which must outlive it and its tokens. Any bytes are allowed: what is not a token is
/// reported and skipped. Work and memory are linear in the text.
class Lexer {
 public:
  /// Skips a byte order mark, with which some editors begin a UTF-8 file.
  Lexer(const Source& source, Diagnostics& diagnostics) : text_(source.text), diagnostics_(diagnostics) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
  }

  /// The next token; TokenKind::end for ever after the last one.
  [[nodiscard]] Token next();
  /// Whether the text ended within a comment.
  [[nodiscard]] bool in_comment() const { return in_comment_; }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool done() const { return at_ >= text_.size(); }
  void advance();
  void skip_space_and_comments();
  void line_comment();
  void block_comment();
  void add_doc_line(std::string_view line);

  void identifier(Token& token);
  void integer(Token& token);
  void string(Token& token);
  void punctuation(Token& token);
  void unreadable(Token& token);

  std::string_view text_;
  Diagnostics& diagnostics_;
  std::size_t at_ = 0;
  Location here_;
  bool first_on_line_ = true;
  bool in_comment_ = false;
  Doc doc_;  ///< Doc comments met since the last token.
};

}  // namespace lrpc::stubgen
