#include "compiler.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>

#include "core/program.h"

namespace lrpc::bench {
namespace {

constexpr int kFunctions = 2;
constexpr auto kLimit = std::chrono::seconds(30);

std::string source_text() {
  std::string text;
  for (int i = 0; i < kFunctions; ++i) {
    text += fmt::format(
        "double f{0}(const double *a, int n) {{\n"
        "  double sum = {0};\n"
        "  for (int i = 0; i < n; ++i) sum += a[i] > sum ? a[i] * {0} : sum / (i + 1);\n"
        "  return sum;\n"
        "}}\n",
        i);
  }
  return text;
}

}  // namespace

Result<Compiler> Compiler::create() {
  UniqueFd source(::memfd_create("source", 0));  // without CLOEXEC: the compiler opens it by its number
  if (!source) return system_error("memfd_create", errno);
  const std::string text = source_text();
  if (::write(source.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return system_error("write", errno);
  return Compiler(std::move(source));
}

Status Compiler::compile() const {
  // The output goes to cc's standard output, so that a compiler that is killed leaves no temporary file behind.
  auto ran =
      run_program({"cc", "-x", "c", "-O2", "-S", "-o", "-", fmt::format("/proc/self/fd/{}", source_.get())}, kLimit);
  if (ran || ran.code() == Errc::call_aborted) return ran ? Status{} : Status(ran.error());
  return Error{Errc::not_supported, "a build: " + ran.error().message()};
}

}  // namespace lrpc::bench
