// The interface file as text, places in it, and the diagnostics about it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lrpc::stubgen {

/// A place in the interface file: line and column count from 1; a column is a byte.
struct Location {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 stumbles over a defaulted operator<=>
  friend auto operator<=>(const Location&, const Location&) = default;
};

/// An interface file in memory. Owns its text; tokens view into it.
struct Source {
  std::string name;  ///< As diagnostics print it.
  std::string text;

  static constexpr std::size_t kMaxBytes = 1024 * 1024;
};

enum class Severity : std::uint8_t { error, warning, note };

struct Diagnostic {
  Severity severity = Severity::error;
  Location at;
  std::string message;
};

/// Collects the diagnostics of one file, in the order in which they are found.
class Diagnostics {
 public:
  /// After this many errors the rest is counted, not kept: a hostile file cannot fill the memory or the screen.
  static constexpr std::size_t kMaxErrors = 50;

  /// `hint`: what to do about it; a note at the same place.
  void error(Location at, std::string message, std::string hint = {});
  void warning(Location at, std::string message);
  /// A note on the error or warning before it, with a place of its own; dropped with it.
  void note(Location at, std::string message);

  [[nodiscard]] bool has_errors() const noexcept { return errors_ != 0; }
  [[nodiscard]] std::size_t errors() const noexcept { return errors_; }
  [[nodiscard]] const std::vector<Diagnostic>& all() const noexcept { return kept_; }
  /// One `file:line:column: error: message` line each, in the order of the file.
  [[nodiscard]] std::string text(std::string_view file) const;

 private:
  void add(Severity severity, Location at, std::string message);

  std::vector<Diagnostic> kept_;
  std::size_t errors_ = 0;
  bool last_dropped_ = false;
};

}  // namespace lrpc::stubgen
