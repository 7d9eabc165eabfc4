// Which procedures of an interface Sun RPC can call, and how values that XDR has no type for are written in it.
#pragma once

#include <cstdint>
#include <string_view>

#include "lrpc/stubgen/layout/model.h"

namespace lrpc::stubgen {

/// Why a procedure is none of the program that --xdr describes; empty: it is one.
[[nodiscard]] std::string_view why_not_in_xdr(const Procedure& procedure);

/// The number of the procedure at this index: 0 is that of Sun RPC's own, which does nothing (RFC 5531 §12.1).
[[nodiscard]] constexpr std::uint32_t xdr_number(std::size_t index) { return static_cast<std::uint32_t>(index + 1); }

/// An array of bytes, which is fixed-length opaque data (RFC 4506 §4.9).
[[nodiscard]] bool is_xdr_opaque(const Type& type);

/// An enumeration all of whose values are XDR's, which are signed and have 32 bits (RFC 4506 §4.3). Values of others
/// are written as the integers under them.
[[nodiscard]] bool is_xdr_enum(const Type& type);

}  // namespace lrpc::stubgen
