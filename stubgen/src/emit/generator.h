// From a checked interface to the texts of its files. Does not write files.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lrpc/stubgen/layout/compile.h"
#include "lrpc/stubgen/layout/model.h"

namespace lrpc::stubgen {

/// lrpc::detail::kStubRevision, which says when to raise it; a test holds the two together.
inline constexpr int kStubRevision = 1;

/// A generated file: a header, the fuzzer's source, or the input of rpcgen.
struct Header {
  std::string name;
  std::string text;
};
/// The three headers of a compiled interface: the same input gives the same bytes.
[[nodiscard]] std::array<Header, 3> generate(const Interface& interface, std::string_view stem);

/// A libFuzzer harness of the server's entry stubs (--fuzz): the same input gives the same bytes.
[[nodiscard]] Header generate_fuzzer(const Interface& interface, std::string_view stem);

/// The interface in the RPC language (--xdr), as this Sun RPC program. nullopt: Sun RPC can call none of its
/// procedures.
[[nodiscard]] std::optional<Header> generate_xdr(const Interface& interface, std::string_view stem,
                                                 std::uint32_t program);

/// The layout as a table for people (--print-pdl).
[[nodiscard]] std::string print_pdl(const Interface& interface);

/// The names of the headers of `<stem>.lrpc`.
[[nodiscard]] std::array<std::string, 3> header_names(std::string_view stem);
[[nodiscard]] std::string fuzzer_name(std::string_view stem);
[[nodiscard]] std::string xdr_name(std::string_view stem);

}  // namespace lrpc::stubgen
