// lrpc-stubgen: the command line around compile() and generate().
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "emit/generator.h"
#include "language/lexer.h"
#include "lrpc/command_line.h"

namespace {

namespace stubgen = lrpc::stubgen;

constexpr int kGood = 0;
constexpr int kErrorsInInput = 1;
constexpr int kWrongUse = 2;

struct Options {
  std::string file;
  std::string out;
  bool check = false;
  bool print_pdl = false;
  bool list_outputs = false;
  bool fuzz = false;
  unsigned xdr = 0;  ///< The number of the Sun RPC program; 0: none.
};

int wrong_use(const std::string& message) {
  fmt::print(stderr, "lrpc-stubgen: {}\n", message);
  return kWrongUse;
}

/// The file's name without `.lrpc`, for #include lines and file names. Empty if it is unfit for them.
std::string stem_of(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  constexpr std::string_view kExtension = ".lrpc";
  if (!name.ends_with(kExtension) || name.size() == kExtension.size()) return {};
  std::string stem = name.substr(0, name.size() - kExtension.size());
  const bool plain = std::ranges::all_of(
      stem, [](char c) { return stubgen::is_letter(c) || stubgen::is_digit(c) || c == '-' || c == '.'; });
  return plain ? stem : std::string();
}

/// Reads at most one byte more than a file may have, so that a file that is too large is noticed without reading it
/// all.
std::optional<std::string> read(const std::string& file, std::string& why) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    why = std::strerror(EISDIR);
    return std::nullopt;
  }
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text(stubgen::Source::kMaxBytes + 1, '\0');
  if (stream) stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream && !stream.eof()) {
    why = std::strerror(errno != 0 ? errno : EIO);
    return std::nullopt;
  }
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

/// All or nothing for each header: a build that is interrupted never leaves half of one behind. Each run has drafts of
/// its own, because several steps of a build may make the same header at once.
bool write(const std::filesystem::path& path, const std::string& text, std::string& why) {
  std::filesystem::path draft = path;
  draft += fmt::format(".{}.new", getpid());
  std::error_code error;
  errno = 0;
  std::ofstream stream(draft, std::ios::binary | std::ios::trunc);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (!stream) error.assign(errno != 0 ? errno : EIO, std::generic_category());
  if (!error) std::filesystem::rename(draft, path, error);
  if (!error) return true;
  why = error.message();
  std::filesystem::remove(draft, error);
  return false;
}

int run(const Options& options) {
  const std::string stem = stem_of(options.file);
  if (stem.empty()) {
    return wrong_use(
        fmt::format("{}: the name must end in .lrpc and hold only letters, digits, '.', '-' and '_'", options.file));
  }
  const std::filesystem::path out = options.out.empty() ? "." : options.out;
  if (options.list_outputs) {
    for (const std::string& name : stubgen::header_names(stem)) fmt::print("{}\n", (out / name).string());
    if (options.fuzz) fmt::print("{}\n", (out / stubgen::fuzzer_name(stem)).string());
    if (options.xdr != 0) fmt::print("{}\n", (out / stubgen::xdr_name(stem)).string());
    return kGood;
  }
  if (options.out.empty() && !options.check && !options.print_pdl)
    return wrong_use("say where the headers go (--out DIR), or use --check or --print-pdl; --help has more");
  std::string why;
  auto text = read(options.file, why);
  if (!text) return wrong_use(fmt::format("cannot read {}: {}", options.file, why));

  const stubgen::Source source{options.file, std::move(*text)};
  stubgen::Diagnostics diagnostics;
  const auto interface = stubgen::compile(source, diagnostics);
  fmt::print(stderr, "{}", diagnostics.text(source.name));
  if (!interface) return kErrorsInInput;
  if (options.print_pdl) fmt::print("{}", stubgen::print_pdl(*interface));
  if (options.check || options.out.empty()) return kGood;

  std::error_code error;
  std::filesystem::create_directories(out, error);
  if (error) return wrong_use(fmt::format("cannot make the directory {}: {}", options.out, error.message()));
  const auto headers = stubgen::generate(*interface, stem);
  std::vector<stubgen::Header> files(headers.begin(), headers.end());
  if (options.fuzz) files.push_back(stubgen::generate_fuzzer(*interface, stem));
  if (options.xdr != 0) {
    auto xdr = stubgen::generate_xdr(*interface, stem, options.xdr);
    if (!xdr) {
      fmt::print(stderr, "{}: --xdr: Sun RPC can call none of its procedures\n", options.file);
      return kErrorsInInput;
    }
    files.push_back(std::move(*xdr));
  }
  for (const stubgen::Header& file : files) {
    if (!write(out / file.name, file.text, why))
      return wrong_use(fmt::format("cannot write {}: {}", (out / file.name).string(), why));
  }
  return kGood;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  lrpc::command_line::Program program(
      "Makes C++ stubs from an lrpc interface file: FILE.types.h, FILE.client.h and FILE.server.h.", "lrpc-stubgen");
  program.option("FILE", options.file, "The interface file, NAME.lrpc").required();
  program.option("--out", options.out, "The directory for the headers; made if it is missing").value_name("DIR");
  program.flag("--check", options.check, "Only report what is wrong; write nothing");
  program.flag("--print-pdl", options.print_pdl, "Print procedures, A-stack classes and offsets as a table");
  program.flag("--fuzz", options.fuzz, "Write FILE_fuzzer.cpp, too: a libFuzzer harness of the server's entry stubs");
  program.option("--xdr", options.xdr, "Write FILE.x, too: the interface as this Sun RPC program, for rpcgen")
      .in_range(std::uint64_t{1}, std::uint64_t{0xffff'ffff})
      .value_name("NUMBER");
  program.flag("--list-outputs", options.list_outputs, "Print the paths that would be written, without reading FILE");
  program.version("lrpc-stubgen " LRPC_VERSION);
  program.footer(
      "Exit status: 0 done, 1 errors in FILE, 2 wrong command line or a file that cannot be read or written.");
  if (const auto status = program.parse(argc, argv)) return *status == 0 ? kGood : kWrongUse;
  try {
    const int status = run(options);
    return program.printed(status) == status ? status : kWrongUse;
  } catch (const std::exception& error) {  // fmt::print() throws if it cannot write
    std::fprintf(stderr, "lrpc-stubgen: %s\n", error.what());
    return kWrongUse;
  }
}
