#include "lexer.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <utility>

namespace lrpc::stubgen {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

}  // namespace

Token Lexer::next() {
  skip_space_and_comments();
  Token token;
  token.at = here_;
  token.first_on_line = std::exchange(first_on_line_, false);
  token.doc = std::exchange(doc_, {});
  const std::size_t begin = at_;
  if (done()) {
    token.kind = TokenKind::end;
  } else if (is_letter(peek())) {
    identifier(token);
  } else if (is_digit(peek())) {
    integer(token);
  } else if (peek() == '"') {
    string(token);
  } else {
    punctuation(token);
  }
  if (token.kind != TokenKind::string) token.text = text_.substr(begin, at_ - begin);
  token.end = here_;
  return token;
}

void Lexer::advance() {
  if (text_[at_] == '\n') {
    ++here_.line;
    here_.column = 1;
    first_on_line_ = true;
  } else {
    ++here_.column;
  }
  ++at_;
}

void Lexer::skip_space_and_comments() {
  while (!done()) {
    if (is_space(peek())) {
      advance();
    } else if (peek() == '/' && peek(1) == '/') {
      line_comment();
    } else if (peek() == '/' && peek(1) == '*') {
      block_comment();
    } else {
      return;
    }
  }
}

void Lexer::line_comment() {
  const std::size_t begin = at_;
  while (!done() && peek() != '\n') advance();
  const std::string_view line = text_.substr(begin, at_ - begin);
  // Three slashes make a doc comment; four or more are a ruler, and `///<` would describe the declaration before it.
  if (line.starts_with("///") && !line.starts_with("////") && !line.starts_with("///<")) add_doc_line(line.substr(3));
}

void Lexer::block_comment() {
  const Location start = here_;
  const std::size_t begin = at_;
  advance();
  advance();
  while (!done() && !(peek() == '*' && peek(1) == '/')) advance();
  if (done()) {
    in_comment_ = true;
    diagnostics_.error(start, "this comment has no end", "close it with '*/'; comments do not nest");
    return;
  }
  std::string_view body = text_.substr(begin + 2, at_ - begin - 2);
  advance();
  advance();
  if (!body.starts_with('*')) return;
  body.remove_prefix(1);
  while (!body.empty()) {
    const std::size_t end = body.find('\n');
    std::string_view line = body.substr(0, end);
    body.remove_prefix(end == std::string_view::npos ? body.size() : end + 1);
    // The usual column of stars on the left is decoration.
    const std::size_t star = line.find_first_not_of(" \t\r");
    if (star != std::string_view::npos && line[star] == '*') line.remove_prefix(star + 1);
    add_doc_line(line);
  }
}

void Lexer::add_doc_line(std::string_view line) {
  if (line.starts_with(' ')) line.remove_prefix(1);
  const std::size_t last = line.find_last_not_of(" \t\r");
  line = line.substr(0, last == std::string_view::npos ? 0 : last + 1);
  doc_.emplace_back(line);
}

void Lexer::identifier(Token& token) {
  token.kind = TokenKind::identifier;
  while (is_letter(peek()) || is_digit(peek())) advance();
}

void Lexer::integer(Token& token) {
  token.kind = TokenKind::integer;
  int base = 10;
  if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
    base = 16;
    advance();
    advance();
  }
  std::string digits;
  bool malformed = false;
  for (; is_letter(peek()) || is_digit(peek()); advance()) {
    if (peek() == '_') continue;
    if (base == 16 ? is_hex_digit(peek()) : is_digit(peek())) {
      digits += peek();
    } else {
      malformed = true;
    }
  }
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), token.value, base);
  const bool overflow = parsed.ec == std::errc::result_out_of_range;
  if (overflow) token.value = std::numeric_limits<std::uint64_t>::max();
  if (malformed || digits.empty()) {
    diagnostics_.error(token.at, "this is not a number", "numbers look like 4096, 1_000_000 or 0x1000");
  } else if (overflow) {
    diagnostics_.error(token.at, "this number is larger than any type can hold (2^64 - 1)");
  }
}

void Lexer::string(Token& token) {
  advance();
  const std::size_t begin = at_;
  while (!done() && peek() != '"' && peek() != '\n') advance();
  token.text = text_.substr(begin, at_ - begin);
  token.kind = TokenKind::string;
  if (peek() == '"') {
    advance();
  } else {
    diagnostics_.error(token.at, "this text has no closing quote on its line");
    token.kind = TokenKind::invalid;
  }
}

void Lexer::punctuation(Token& token) {
  const char c = peek();
  if (c == '-' && peek(1) == '>') {
    token.kind = TokenKind::arrow;
    advance();
  } else if (c == '.' && peek(1) == '.') {
    token.kind = TokenKind::dots;
    advance();
  } else {
    constexpr std::string_view kCharacters = ".-=:;,{}()[]<>";  // in the order of TokenKind, from dot on
    const std::size_t index = kCharacters.find(c);
    if (index == std::string_view::npos) return unreadable(token);
    token.kind = static_cast<TokenKind>(static_cast<std::size_t>(TokenKind::dot) + index);
  }
  advance();
}

void Lexer::unreadable(Token& token) {
  token.kind = TokenKind::invalid;
  const auto byte = static_cast<unsigned char>(peek());
  // A run of such bytes (a file in another encoding, a binary) is reported as one mistake, not as one for each byte.
  while (!done() && !is_space(peek()) && !is_letter(peek()) && !is_digit(peek()) && peek() != ';' && peek() != '}') {
    if (peek() == '/' && (peek(1) == '/' || peek(1) == '*')) break;
    advance();
  }
  if (byte >= 0x21 && byte < 0x7f) {
    diagnostics_.error(token.at, fmt::format("'{}' means nothing here", static_cast<char>(byte)));
  } else {
    diagnostics_.error(token.at, fmt::format("byte 0x{:02x} means nothing here", byte),
                       "outside of comments an interface file is plain ASCII text");
  }
}

}  // namespace lrpc::stubgen
