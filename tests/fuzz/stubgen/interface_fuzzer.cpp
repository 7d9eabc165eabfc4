// Attacks the stub generator: sends arbitrary bytes, and interface files with rearranged words, through lexer, parser,
// checker, layout and emitters. Whatever the bytes are, it ends with diagnostics, each at a place in the file, or with
// files that a second run reproduces.
#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "emit/generator.h"
#include "input.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed);

namespace lrpc::stubgen {
namespace {

using fuzz::require;

constexpr std::string_view kFile = "f.lrpc";

/// Removes a number and the following ':' from the front of a line. Returns the number.
std::size_t take_number(std::string_view& line) {
  std::size_t value = 0;
  std::size_t digits = 0;
  while (!line.empty() && line.front() >= '0' && line.front() <= '9' && digits < 9) {
    value = value * 10 + static_cast<std::size_t>(line.front() - '0');
    line.remove_prefix(1);
    ++digits;
  }
  require(digits != 0 && line.starts_with(':'), "a diagnostic begins with file:line:column:");
  line.remove_prefix(1);
  return value;
}

void check_diagnostics(const std::string& said, std::string_view source) {
  const auto lines = 1 + static_cast<std::size_t>(std::ranges::count(source, '\n'));
  for (std::size_t at = 0; at < said.size();) {
    const std::size_t end = said.find('\n', at);
    require(end != std::string::npos, "every diagnostic is a line");
    std::string_view line = std::string_view(said).substr(at, end - at);
    at = end + 1;
    require(std::ranges::all_of(line, [](char c) { return c >= ' ' && c <= '~'; }),
            "a diagnostic is printable, whatever the file holds");
    require(line.starts_with(kFile) && line.size() > kFile.size() && line[kFile.size()] == ':',
            "a diagnostic names the file");
    line.remove_prefix(kFile.size() + 1);
    if (line.starts_with(' ') && line.ends_with("more errors are not shown")) continue;
    const std::size_t row = take_number(line);
    const std::size_t column = take_number(line);
    require(row >= 1 && row <= lines && column >= 1 && column <= source.size() + 1, "a diagnostic is in the file");
    require(line.starts_with(" error: ") || line.starts_with(" warning: ") || line.starts_with(" note: "),
            "a diagnostic says how bad it is");
  }
}

/// All output for an accepted file, concatenated.
std::string all_output(const Interface& interface) {
  std::string all = print_pdl(interface);
  for (const Header& header : generate(interface, "f")) all += header.text;
  return all + generate_fuzzer(interface, "f").text;
}

void run(std::string text) {
  const Source source{std::string(kFile), std::move(text)};
  Diagnostics diagnostics;
  const auto interface = compile(source, diagnostics);
  require(interface.has_value() != diagnostics.has_errors(), "a file is refused for an error, and only for one");
  const std::string said = diagnostics.text(kFile);
  check_diagnostics(said, source.text);
  Diagnostics again;
  const auto twice = compile(source, again);
  require(again.text(kFile) == said && twice.has_value() == interface.has_value(), "the same file, the same answer");
  if (!interface) return;
  const std::string output = all_output(*interface);
  require(output == all_output(*twice), "the same file, the same output");

  // Two domains that were built separately compare this text's hash, so it must mean the same as the file.
  Diagnostics of_canonical;
  const Source canonical{std::string(kFile), interface->canonical};
  const auto thrice = compile(canonical, of_canonical, Origin::server);
  require(thrice.has_value(), "the canonical declaration is an interface file");
  require(thrice->canonical == interface->canonical && thrice->hash == interface->hash,
          "the canonical declaration is its own");
  require(print_pdl(*thrice) == print_pdl(*interface), "the canonical declaration has the same layout");
}

// --- Changes of words -----------------------------------------------------------------------------------------------

constexpr std::string_view kWords[] = {"interface",
                                       "version",
                                       "option",
                                       "namespace",
                                       "astacks",
                                       "astack_size",
                                       "type",
                                       "range",
                                       "enum",
                                       "record",
                                       "error",
                                       "handle",
                                       "procedure",
                                       "oneway",
                                       "callback",
                                       "in",
                                       "out",
                                       "inout",
                                       "raises",
                                       "closes",
                                       "bool",
                                       "may_block",
                                       "string",
                                       "bytes",
                                       "byte",
                                       "int8",
                                       "uint8",
                                       "int16",
                                       "uint16",
                                       "int32",
                                       "uint32",
                                       "int64",
                                       "uint64",
                                       "float32",
                                       "float64",
                                       "uninterpreted",
                                       "{",
                                       "}",
                                       "(",
                                       ")",
                                       "[",
                                       "]",
                                       "<",
                                       ">",
                                       ";",
                                       ":",
                                       ",",
                                       "->",
                                       "..",
                                       "=",
                                       "-",
                                       ".",
                                       "0",
                                       "1",
                                       "3",
                                       "255",
                                       "1024",
                                       "65535",
                                       "1500",
                                       "4194304",
                                       "0xffff",
                                       "268435456",
                                       "9223372036854775808",
                                       "a",
                                       "b",
                                       "A",
                                       "B",
                                       "R",
                                       "H",
                                       "\"a::b\"",
                                       "/// d\n",
                                       "/** d */",
                                       "18446744073709551615",
                                       "E",
                                       "1.0"};

/// The words of a text, each with the characters before it.
std::vector<std::string_view> words_of(std::string_view text) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::vector<std::string_view> words;
  while (!text.empty()) {
    std::size_t end = text.find_first_not_of(" \t\r\n");
    if (end == std::string_view::npos) end = text.size();
    if (end < text.size() && is_word(text[end])) {
      while (end < text.size() && is_word(text[end])) ++end;
    } else if (end < text.size()) {
      ++end;
    }
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

std::string change_words(std::string_view text, std::mt19937& random) {
  std::vector<std::string> words;
  for (const std::string_view word : words_of(text)) words.emplace_back(word);
  const auto below = [&random](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  const auto place = [&](std::size_t at) { return words.begin() + static_cast<std::ptrdiff_t>(at); };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::string fresh = " " + std::string(kWords[below(std::size(kWords))]);
    if (words.empty()) {
      words.push_back(fresh);
      continue;
    }
    const std::size_t at = below(words.size());
    const std::size_t other = below(words.size());
    switch (below(7)) {
      case 0: words[at] = fresh; break;
      case 1: words.insert(place(at), fresh); break;
      case 2: words.erase(place(at)); break;
      case 3: words[at] = words[other]; break;
      case 4: std::swap(words[at], words[other]); break;
      case 5: {  // repeats some words elsewhere: a field, a parameter, a declaration
        const std::size_t count = 1 + below(std::min<std::size_t>(words.size() - at, 24));
        const std::vector<std::string> copy(place(at), place(at + count));
        words.insert(place(other), copy.begin(), copy.end());
        break;
      }
      default: words.erase(place(at), place(at + 1 + below(std::min<std::size_t>(words.size() - at, 12)))); break;
    }
  }
  std::string changed;
  for (const std::string& word : words) changed += word;
  return changed;
}

}  // namespace
}  // namespace lrpc::stubgen

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  if (random() % 4 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string changed =
      lrpc::stubgen::change_words({reinterpret_cast<const char*>(data), size}, random).substr(0, most);
  std::ranges::copy(changed, data);
  return changed.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::stubgen::run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
