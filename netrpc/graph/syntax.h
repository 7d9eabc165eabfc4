// The words of a graph's description and its lines, before anything is known about their meaning.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lrpc::netrpc {

/// "LINE: reason, what to do", as they are found. Keeps the first kMost; a hostile file cannot make the report long.
class GraphErrors {
 public:
  static constexpr std::size_t kMost = 50;
  void add(int line, std::string text);
  [[nodiscard]] bool empty() const noexcept { return errors_.empty(); }
  /// In the order of the lines.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::pair<int, std::string>> errors_;
  std::size_t more_ = 0;
};

struct GraphToken {
  enum class Kind : unsigned char { word, text, symbol, end };
  Kind kind = Kind::end;
  std::string value;  ///< A text without its quotes and escapes.
  int line = 1;
  [[nodiscard]] bool is(char symbol) const noexcept { return kind == Kind::symbol && value[0] == symbol; }
};

/// One line of a description as it is written.
struct GraphStatement {
  struct Option {
    std::string name;
    std::string value;
    std::optional<std::vector<std::string>> list{};  ///< In the place of `value`.
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
  std::optional<std::vector<Micro>> inside;  ///< Nothing: there are no braces.
  int line = 0;
  bool damaged = false;  ///< Something was not understood: what is missing from it may have been written.
};

/// The tokens of `text`, ended by one of the kind `end`. What is no token is an error and left out.
std::vector<GraphToken> split_graph_text(std::string_view text, GraphErrors& errors);
/// The statements that can be understood.
std::vector<GraphStatement> parse_graph_statements(const std::vector<GraphToken>& tokens, GraphErrors& errors);

}  // namespace lrpc::netrpc
