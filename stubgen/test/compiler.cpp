#include "compiler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "emit/emit.h"
#include "test_support.h"

namespace lrpc::stubgen::test {
namespace fs = std::filesystem;

Compiler::Compiler() {
  std::string pattern = (fs::temp_directory_path() / "lrpc-stubgen-test.XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  directory_ = pattern;
}

Compiler::~Compiler() {
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

void Compiler::generate(std::string_view stem, const std::string& text) {
  const auto compiled = compile_text(text);
  ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
  for (const Header& header : stubgen::generate(*compiled.interface, stem)) write(header);
  write(generate_fuzzer(*compiled.interface, stem));
}

void Compiler::generate_types(std::string_view stem, const std::string& text) {
  const auto compiled = compile_text(text);
  ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
  write({header_names(stem)[0], emit_types(*compiled.interface, stem)});
}

void Compiler::write(const Header& file) { std::ofstream(directory_ / file.name, std::ios::binary) << file.text; }

std::string Compiler::compile(const std::vector<std::string>& includes, std::string_view code) {
  return output("-fsyntax-only " LRPC_ERROR_LIMIT " -Wall -Wextra -Wpedantic", includes, code);
}

std::string Compiler::output(std::string_view options, const std::vector<std::string>& includes,
                             std::string_view code) {
  const fs::path source = directory_ / "source.cpp";
  {
    std::ofstream stream(source);
    for (const std::string& name : includes) stream << "#include \"" << name << "\"\n";
    stream << code;
  }
  const std::string command = fmt::format("{} -std=gnu++20 {} -I{} {} {} 2>&1", LRPC_CXX, LRPC_INCLUDES,
                                          directory_.string(), options, source.string());
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  std::string text;
  std::array<char, 4096> chunk{};
  for (std::size_t size = 0; (size = fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) text.append(chunk.data(), size);
  const int status = pclose(pipe);
  if (status != 0 && text.empty()) return fmt::format("exit status {}: {}", status, command);
  return text;
}

std::vector<std::string> all_of(std::string_view stem) {
  // The fuzzer is last, because it includes the server header.
  return {fmt::format("{}.client.h", stem), fmt::format("{}.server.h", stem), fmt::format("{}_fuzzer.cpp", stem)};
}

Names included_identifiers(Compiler& compiler) {
  compiler.generate("included", "interface Included version 1.0 { procedure P(); callback { procedure Q(); } }");
  return identifiers(compiler.output("-E -P", all_of("included")));
}

Names macros(Compiler& compiler) {
  compiler.generate("macros", "interface Macros version 1.0 { procedure P(); callback { procedure Q(); } }");
  std::istringstream lines(compiler.output("-E -dM", all_of("macros")));
  Names found;
  for (std::string define, name, line; lines >> define >> name; std::getline(lines, line)) {
    name.resize(std::min(name.size(), name.find('(')));
    if (define == "#define" && !name.starts_with('_')) found.insert(name);
  }
  return found;
}

Names identifiers(std::string_view text) {
  Names found;
  while (!text.empty()) {
    std::size_t skip = 1;
    if (text.starts_with("//")) {
      skip = text.find('\n');
    } else if (text.starts_with("R\"lrpc(")) {
      skip = text.find(")lrpc\"") + 6;
    } else if (text.front() == '"') {
      skip = std::min(text.find('"', 1), text.size() - 1) + 1;
    } else if (std::isalnum(static_cast<unsigned char>(text.front())) != 0 || text.front() == '_') {
      skip = 0;
      while (skip < text.size() && (std::isalnum(static_cast<unsigned char>(text[skip])) != 0 || text[skip] == '_'))
        ++skip;
      if (std::isdigit(static_cast<unsigned char>(text.front())) == 0) found.emplace(text.substr(0, skip));
    }
    text.remove_prefix(std::min(skip, text.size()));
  }
  return found;
}

}  // namespace lrpc::stubgen::test
