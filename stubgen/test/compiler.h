// Compiles generated code with the headers of the real libraries.
#pragma once

#include <cstddef>
#include <filesystem>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "emit/generator.h"

namespace lrpc::stubgen::test {

using Names = std::set<std::string, std::less<>>;

/// A directory of generated files, and a compiler that reads them.
class Compiler {
 public:
  Compiler();
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  /// Generates all files for `text`, called `stem`. The test fails if the generator refuses the text.
  void generate(std::string_view stem, const std::string& text);
  /// The same, but only the types header.
  void generate_types(std::string_view stem, const std::string& text);
  /// The compiler's messages for a source that includes these files; empty if it compiles.
  [[nodiscard]] std::string compile(const std::vector<std::string>& includes, std::string_view code = {});
  /// The compiler's output for the same source with `options`, for example options that list macros.
  [[nodiscard]] std::string output(std::string_view options, const std::vector<std::string>& includes,
                                   std::string_view code = {});

 private:
  void write(const Header& file);
  std::filesystem::path directory_;
};

/// The generated headers and the fuzzer, which instantiates every entry stub and codec.
[[nodiscard]] std::vector<std::string> all_of(std::string_view stem);

/// The names of the macros that all_of(...) defines or includes, except those that no name in an interface can equal.
[[nodiscard]] Names macros(Compiler& compiler);
/// Every identifier in these headers and in the headers that they include.
[[nodiscard]] Names included_identifiers(Compiler& compiler);
/// The identifiers of a C++ text, except those in comments and raw strings.
[[nodiscard]] Names identifiers(std::string_view text);

/// A place in an interface where a name can stand.
struct Place {
  std::string_view what;
  /// An interface that has only this name in this place.
  std::string (*alone)(const std::string& name);
  /// An interface that has all the names in this place, in each of its roles; null if each name needs its own
  /// interface.
  std::string (*together)(const std::vector<std::string>& names);
};
inline std::ostream& operator<<(std::ostream& out, const Place& place) { return out << place.what; }
[[nodiscard]] const std::vector<Place>& places();

/// Every identifier in the code generated from interfaces that have one name in each place.
[[nodiscard]] Names generated_identifiers();

/// Puts every name into this place: either it is refused with a note, or the generated code compiles. If `free`, only
/// C++ and the language may refuse a name.
void expect_refused_or_compiled(const Place& place, const Names& names, bool free = false);

/// Returns the names that the generated code uses itself, and renames when an interface declares them in this place.
/// Each such name is tested alone, so the generated code must also compile when nothing else is renamed.
Names expect_free_one_by_one(const Place& place, const Names& names);

}  // namespace lrpc::stubgen::test
