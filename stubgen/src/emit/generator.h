// From the text of an interface file to the texts of its headers: what the program does, without files.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "language/source.h"
#include "layout/model.h"

namespace lrpc::stubgen {

/// Parses, checks and lays out. nullopt if there was any error; warnings alone do not stop it. Deterministic, and
/// bounded in work and memory whatever the bytes of `source` are.
[[nodiscard]] std::optional<Interface> compile(const Source& source, Diagnostics& diagnostics);

/// A generated file: a header, or the fuzzer's source.
struct Header {
  std::string name;
  std::string text;
};
/// The three headers of a compiled interface: the same input gives the same bytes.
[[nodiscard]] std::array<Header, 3> generate(const Interface& interface, std::string_view stem);

/// A libFuzzer harness of its server's entry stubs (--fuzz): likewise.
[[nodiscard]] Header generate_fuzzer(const Interface& interface, std::string_view stem);

/// The layout as a table for people (--print-pdl).
[[nodiscard]] std::string print_pdl(const Interface& interface);

/// The names of the headers of `<stem>.lrpc`.
[[nodiscard]] std::array<std::string, 3> header_names(std::string_view stem);
[[nodiscard]] std::string fuzzer_name(std::string_view stem);

}  // namespace lrpc::stubgen
