// The tokens and statements of a graph's description, before their meaning is checked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lrpc::netrpc {

/// Collects errors: "LINE: reason, what to do". Keeps the first kMost, so that a hostile file cannot make the report
/// long.
class GraphErrors {
 public:
  static constexpr std::size_t kMost = 50;
  void add(int line, std::string text);
  [[nodiscard]] bool empty() const noexcept { return errors_.empty(); }
  /// Sorted by line.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::pair<int, std::string>> errors_;
  std::size_t more_ = 0;
};

struct GraphToken {
  enum class Kind : unsigned char { word, text, symbol, end };
  Kind kind = Kind::end;
  std::string value;  ///< A quoted text without its quotes and escapes.
  int line = 1;
  [[nodiscard]] bool is(char symbol) const noexcept { return kind == Kind::symbol && value[0] == symbol; }
};

/// One statement of a description, as written.
struct GraphStatement {
  struct Option {
    std::string name;
    std::string value;
    std::optional<std::vector<std::string>> list{};  ///< Instead of `value`.
    int line = 0;
  };
  struct Lower {
    std::string name;
    int line = 0;
  };
  struct Micro {
    std::string kind;
    std::vector<Option> options;
    int line = 0;
  };
  std::string name;
  std::string kind;
  std::vector<Option> options;
  std::vector<Lower> below;
  std::optional<std::vector<Micro>> inside;  ///< Nullopt: there are no braces.
  int line = 0;
  bool damaged = false;  ///< A part was not understood; so do not report missing parts.
};

/// The tokens of `text`; the last one is of the kind `end`. What is no token is reported and left out.
std::vector<GraphToken> split_graph_text(std::string_view text, GraphErrors& errors);
/// The statements that can be understood.
std::vector<GraphStatement> parse_graph_statements(const std::vector<GraphToken>& tokens, GraphErrors& errors);

}  // namespace lrpc::netrpc
