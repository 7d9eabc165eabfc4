#include "netrpc/graph/syntax.h"

#include <fmt/format.h>

#include <algorithm>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

namespace {

// Not those of <cctype>, which depend on the locale.
bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_name_character(char c) noexcept { return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.'; }
bool is_word_character(char c) noexcept { return is_name_character(c) || c == ':' || c == '/' || c == '+' || c == '%'; }
bool is_symbol(char c) noexcept { return std::string_view("=(),;{}[]").find(c) != std::string_view::npos; }
bool is_printable(char c) noexcept { return c >= ' ' && c <= '~'; }

std::string shown(char c) {
  if (is_printable(c)) return fmt::format("'{}'", c);
  return fmt::format("the byte 0x{:02x}", static_cast<unsigned char>(c));
}

class Lexer {
 public:
  Lexer(std::string_view text, GraphErrors& errors) : text_(text), errors_(errors) {}

  std::vector<GraphToken> run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (is_symbol(c)) {
        add(GraphToken::Kind::symbol, std::string(1, c));
        ++at_;
      } else if (c == '"') {
        quoted();
      } else if (is_word_character(c)) {
        word();
      } else {
        errors_.add(line_, shown(c) + " has no meaning here, take it out or put the value in quotes");
        // One error for a run of such bytes, so that a binary file causes few errors.
        while (at_ < text_.size() && !is_word_character(text_[at_]) && !is_symbol(text_[at_]) && text_[at_] != '\n' &&
               text_[at_] != '"' && text_[at_] != '#')
          ++at_;
      }
    }
    add(GraphToken::Kind::end, {});
    return std::move(tokens_);
  }

 private:
  void add(GraphToken::Kind kind, std::string value) { tokens_.push_back({kind, std::move(value), line_}); }

  void word() {
    std::size_t end = at_;
    while (end < text_.size() && is_word_character(text_[end])) ++end;
    bounded(GraphToken::Kind::word, std::string(text_.substr(at_, end - at_)));
    at_ = end;
  }

  void quoted() {
    std::string value;
    bool strange = false;
    for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size() && (text_[at_ + 1] == '"' || text_[at_ + 1] == '\\')) ++at_;
      strange = strange || !is_printable(text_[at_]);
      value += text_[at_];
    }
    if (at_ == text_.size() || text_[at_] == '\n')
      errors_.add(line_, "the quoted text does not end on its line, add a '\"'");
    else
      ++at_;
    if (strange) errors_.add(line_, "a quoted text may have printable ASCII characters only, change the others");
    if (strange) value.assign(1, '?');
    bounded(GraphToken::Kind::text, std::move(value));
  }

  void bounded(GraphToken::Kind kind, std::string value) {
    if (value.size() > GraphDescription::kMaxWord) {
      errors_.add(line_, fmt::format("a name or value of {} characters is too long, use at most {}", value.size(),
                                     GraphDescription::kMaxWord));
      value.resize(16);
    }
    add(kind, std::move(value));
  }

  std::string_view text_;
  GraphErrors& errors_;
  std::vector<GraphToken> tokens_;
  std::size_t at_ = 0;
  int line_ = 1;
};

class Parser {
 public:
  Parser(const std::vector<GraphToken>& tokens, GraphErrors& errors) : tokens_(tokens), errors_(errors) {}

  std::vector<GraphStatement> run() {
    while (now().kind != GraphToken::Kind::end) {
      GraphStatement statement;
      statement_ = at_;
      statement.damaged = !parse(statement);
      if (statement.damaged) recover();
      // A damaged statement still defines its name, so that one mistake is not reported wherever the name is used.
      if (!statement.name.empty()) statements_.push_back(std::move(statement));
    }
    return std::move(statements_);
  }

 private:
  [[nodiscard]] const GraphToken& now() const noexcept { return tokens_[at_]; }
  void advance() noexcept {
    if (now().kind != GraphToken::Kind::end) ++at_;
  }
  /// Consumes `symbol`. False: the next token is another one.
  bool take(char symbol) noexcept {
    if (!now().is(symbol)) return false;
    advance();
    return true;
  }
  [[nodiscard]] std::string found() const {
    if (now().kind == GraphToken::Kind::end) return "the end of the description";
    return now().kind == GraphToken::Kind::text ? "a quoted text" : "'" + now().value + "'";
  }
  bool fail(const std::string& what) {
    errors_.add(now().line, what);
    return false;
  }

  bool name(std::string& into, std::string_view what,
            std::string_view write = "name = KIND(option = value, ...) over lower, ...;") {
    const GraphToken& token = now();
    if (token.kind != GraphToken::Kind::word)
      return fail(fmt::format("found {} where {} should be, write {}", found(), what, write));
    if (!is_letter(token.value[0]) || !std::all_of(token.value.begin(), token.value.end(), is_name_character))
      return fail(
          fmt::format("'{}' cannot be {}, use letters, digits, '_', '-' and '.', a letter first", token.value, what));
    if (token.value == "over") return fail(fmt::format("'over' stands where {} should be, put a name there", what));
    into = token.value;
    advance();
    return true;
  }
  bool symbol(char wanted, std::string_view after) {
    return take(wanted) || fail(fmt::format("found {} after {}, put a '{}' there", found(), after, wanted));
  }

  bool parse(GraphStatement& statement) {
    statement.line = now().line;
    std::string instance;
    if (!name(instance, "the name of a protocol")) return false;
    if (!symbol('=', "'" + instance + "'")) return false;
    statement.name = instance;
    if (!name(statement.kind, "the kind of the protocol")) return false;
    if (now().is('(') && !options(statement.options)) return false;
    if (now().is('{') && !inside(statement.inside.emplace())) return false;
    if (now().kind == GraphToken::Kind::word && now().value == "over" && !below(statement)) return false;
    if (take(';')) return true;
    // A ';' is mostly forgotten at the end of a line: then the next line is still parsed as a statement.
    const int line = tokens_[at_ - 1].line;
    errors_.add(line, fmt::format("found {} after the definition of '{}', end it with a ';'", found(), instance));
    return now().kind == GraphToken::Kind::end ||
           (now().kind == GraphToken::Kind::word && now().line != line && tokens_[at_ + 1].is('='));
  }

  bool options(std::vector<GraphStatement::Option>& into) {
    advance();
    if (take(')')) return true;
    for (;;) {
      GraphStatement::Option option;
      option.line = now().line;
      if (!name(option.name, "the name of an option")) return false;
      if (!symbol('=', "the option '" + option.name + "'")) return false;
      if (now().is('[')) {
        if (!list(option)) return false;
      } else if (is_value()) {
        option.value = now().value;
        advance();
      } else {
        return fail(fmt::format("found {} where the value of '{}' should be, write {} = value", found(), option.name,
                                option.name));
      }
      into.push_back(std::move(option));
      if (take(')')) return true;
      if (!take(',')) return fail(fmt::format("found {} among the options, put a ',' or a ')' there", found()));
    }
  }

  [[nodiscard]] bool is_value() const noexcept {
    return now().kind == GraphToken::Kind::word || now().kind == GraphToken::Kind::text;
  }

  /// Begins at the '['.
  bool list(GraphStatement::Option& option) {
    auto& items = option.list.emplace();
    for (advance(); !take(']');) {
      if (!is_value())
        return fail(
            fmt::format("found {} in the list '{}', write {} = [value, ...]", found(), option.name, option.name));
      items.push_back(now().value);
      advance();
      if (!take(',') && !now().is(']'))
        return fail(fmt::format("found {} in the list '{}', put a ',' or a ']' there", found(), option.name));
    }
    return true;
  }

  bool inside(std::vector<GraphStatement::Micro>& into) {
    for (advance(); !take('}');) {
      GraphStatement::Micro micro;
      micro.line = now().line;
      if (!name(micro.kind, "the name of a micro-protocol", "NAME(option = value, ...);")) return false;
      if (now().is('(') && !options(micro.options)) return false;
      if (!symbol(';', micro.kind)) return false;
      into.push_back(std::move(micro));
    }
    return true;
  }

  bool below(GraphStatement& statement) {
    do {
      advance();
      GraphStatement::Lower lower;
      lower.line = now().line;
      if (!name(lower.name, "the name of a protocol below")) return false;
      statement.below.push_back(std::move(lower));
    } while (now().is(','));
    return true;
  }

  /// Skips to the token after the next ';' outside braces, or to what looks like the beginning of a definition on a
  /// later line.
  void recover() {
    const int line = now().line;
    bool braces = false;
    for (std::size_t i = statement_; i < at_; ++i) braces = tokens_[i].is('{') || (braces && !tokens_[i].is('}'));
    for (; now().kind != GraphToken::Kind::end && (braces || !now().is(';')); advance()) {
      if (now().line != line && now().kind == GraphToken::Kind::word && tokens_[at_ + 1].is('=') &&
          !tokens_[at_ - 1].is(',') && !tokens_[at_ - 1].is('('))
        return;
      braces = now().is('{') || (braces && !now().is('}'));
    }
    advance();
  }

  const std::vector<GraphToken>& tokens_;
  GraphErrors& errors_;
  std::vector<GraphStatement> statements_;
  std::size_t at_ = 0;
  std::size_t statement_ = 0;  ///< Where the present statement begins.
};

}  // namespace

void GraphErrors::add(int line, std::string text) {
  if (errors_.size() == kMost)
    ++more_;
  else
    errors_.emplace_back(line, std::move(text));
}

std::string GraphErrors::text() const {
  auto sorted = errors_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (const auto& [line, what] : sorted) {
    if (!text.empty()) text += '\n';
    text += fmt::format("{}: {}", line, what);
  }
  if (more_ != 0) text += fmt::format("\nand {} more", more_);
  return text;
}

std::vector<GraphToken> split_graph_text(std::string_view text, GraphErrors& errors) {
  return Lexer(text, errors).run();
}

std::vector<GraphStatement> parse_graph_statements(const std::vector<GraphToken>& tokens, GraphErrors& errors) {
  return Parser(tokens, errors).run();
}

}  // namespace lrpc::netrpc
