#include "language/lexer.h"

#include <gtest/gtest.h>

#include <vector>

namespace lrpc::stubgen {
namespace {

struct Lexed {
  std::vector<Token> tokens;
  Diagnostics diagnostics;
};

Lexed lex(const Source& source) {
  Lexed lexed;
  Lexer lexer(source, lexed.diagnostics);
  do {
    lexed.tokens.push_back(lexer.next());
  } while (lexed.tokens.back().kind != TokenKind::end);
  return lexed;
}

TEST(Lexer, two_dots_after_a_number_are_a_range_and_one_is_a_version) {
  const Source source{"t", "0..5 1.0"};
  const auto tokens = lex(source).tokens;
  ASSERT_EQ(tokens.size(), 7U);
  EXPECT_EQ(tokens[1].kind, TokenKind::dots);
  EXPECT_EQ(tokens[2].value, 5U);
  EXPECT_EQ(tokens[4].kind, TokenKind::dot);
}

TEST(Lexer, numbers_may_be_hexadecimal_and_have_separators) {
  const Source source{"t", "1_000_000 0xffff_ffff_ffff_ffff 0X1f"};
  const auto lexed = lex(source);
  EXPECT_FALSE(lexed.diagnostics.has_errors());
  EXPECT_EQ(lexed.tokens[0].value, 1'000'000U);
  EXPECT_EQ(lexed.tokens[1].value, ~std::uint64_t{0});
  EXPECT_EQ(lexed.tokens[2].value, 0x1fU);
}

TEST(Lexer, a_number_over_64_bits_is_reported_once_and_saturates) {
  const Source source{"t", "18446744073709551616 " + std::string(10'000, '9')};
  const auto lexed = lex(source);
  EXPECT_EQ(lexed.diagnostics.errors(), 2U);
  EXPECT_EQ(lexed.tokens[1].value, ~std::uint64_t{0});
}

TEST(Lexer, a_number_that_runs_into_letters_is_no_number) {
  for (const char* text : {"12abc", "0x", "0xyz", "1__z"}) {
    const Source source{"t", text};
    EXPECT_EQ(lex(source).diagnostics.errors(), 1U) << text;
  }
}

TEST(Lexer, tokens_know_their_line_and_column) {
  const Source source{"t", "a\n  bc // x\n\t;"};
  const auto tokens = lex(source).tokens;
  EXPECT_EQ(tokens[1].at, (Location{2, 3}));
  EXPECT_EQ(tokens[1].end, (Location{2, 5}));
  EXPECT_EQ(tokens[2].at, (Location{3, 2}));
  EXPECT_TRUE(tokens[1].first_on_line);
}

TEST(Lexer, doc_comments_belong_to_the_token_behind_them_and_ordinary_comments_to_nobody) {
  const Source source{"t", "/// one\n// no\n///two\n//// ruler\na ///< no\nb /** x\n * y\n */ c /* no */ d"};
  const auto tokens = lex(source).tokens;
  EXPECT_EQ(tokens[0].doc, (Doc{"one", "two"}));
  EXPECT_TRUE(tokens[1].doc.empty());
  EXPECT_EQ(tokens[2].doc, (Doc{"x", "y", ""}));
  EXPECT_TRUE(tokens[3].doc.empty());
}

TEST(Lexer, a_comment_without_end_is_reported_where_it_begins) {
  const Source source{"t", "a\n /* b"};
  EXPECT_EQ(lex(source).diagnostics.all().front().at, (Location{2, 2}));
}

TEST(Lexer, a_run_of_unreadable_bytes_is_one_mistake) {
  const Source source{"t", std::string("a \xff\xfe\x01\x00\xff b $$$ c", 15)};
  const auto lexed = lex(source);
  EXPECT_EQ(lexed.diagnostics.errors(), 2U);
  EXPECT_NE(lexed.diagnostics.text("t").find("byte 0xff"), std::string::npos);
}

TEST(Lexer, a_byte_order_mark_is_skipped_at_the_beginning_alone) {
  const Source source{"t", "\xef\xbb\xbfx y"};
  const auto lexed = lex(source);
  EXPECT_EQ(lexed.diagnostics.errors(), 0U);
  EXPECT_EQ(lexed.tokens[0].text, "x");
  EXPECT_EQ(lexed.tokens[0].at, (Location{1, 1}));
  const Source later{"t", "x \xef\xbb\xbf y"};
  EXPECT_EQ(lex(later).diagnostics.errors(), 1U);
}

TEST(Lexer, a_text_ends_on_its_line) {
  const Source source{"t", "\"ab\" \"cd\n;"};
  const auto lexed = lex(source);
  EXPECT_EQ(lexed.tokens[0].text, "ab");
  EXPECT_EQ(lexed.diagnostics.errors(), 1U);
  EXPECT_EQ(lexed.tokens[2].kind, TokenKind::semicolon);
}

}  // namespace
}  // namespace lrpc::stubgen
