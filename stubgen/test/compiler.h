// Generated code given to the compiler, with the headers of the real libraries: whether it compiles is the question.
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

/// A directory of generated files, and the compiler to read them.
class Compiler {
 public:
  Compiler();
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  /// Generates all that `text` becomes, as `stem`. A text that the generator refuses is a failed test.
  void generate(std::string_view stem, const std::string& text);
  /// The same of the types header alone.
  void generate_types(std::string_view stem, const std::string& text);
  /// What the compiler says about a source that includes these; empty if it compiles.
  [[nodiscard]] std::string compile(const std::vector<std::string>& includes, std::string_view code = {});
  /// The compiler's output for the same, with `options`, such as those that list macros.
  [[nodiscard]] std::string output(std::string_view options, const std::vector<std::string>& includes,
                                   std::string_view code = {});

 private:
  void write(const Header& file);
  std::filesystem::path directory_;
};

/// The headers and the fuzzer, which instantiates every entry stub and codec.
[[nodiscard]] std::vector<std::string> all_of(std::string_view stem);

/// The names of macros that all_of(...) brings along, but for those that no name can be.
[[nodiscard]] Names macros(Compiler& compiler);
/// Every identifier of the same headers, those that they include among them.
[[nodiscard]] Names included_identifiers(Compiler& compiler);
/// The identifiers in a C++ text, those in its comments and raw strings left out.
[[nodiscard]] Names identifiers(std::string_view text);

/// Where a name can stand in an interface.
struct Place {
  std::string_view what;
  /// An interface that has nothing but this name in this place.
  std::string (*alone)(const std::string& name);
  /// One that has all of them there, in as many roles as the place has; null if each needs an interface of its own.
  std::string (*together)(const std::vector<std::string>& names);
};
inline std::ostream& operator<<(std::ostream& out, const Place& place) { return out << place.what; }
[[nodiscard]] const std::vector<Place>& places();

/// Every identifier in the generated code of interfaces that have one name in each place.
[[nodiscard]] Names generated_identifiers();

/// Gives every name to the generator, in this place: it is refused with a note, or what is generated compiles. Only C++
/// and the language may refuse names that are to be `free`.
void expect_refused_or_compiled(const Place& place, const Names& names, bool free = false);

/// Those of `names` that are names of the generated code's own, which get out of the way when one of them is declared
/// here. What is generated compiles, too, where nothing else has moved.
Names expect_free_one_by_one(const Place& place, const Names& names);

}  // namespace lrpc::stubgen::test
