// Which procedures of an interface Sun RPC can call, and how values that XDR has no type for are written in it.
#pragma once

#include <cstdint>
#include <string_view>

#include "lrpc/stubgen/layout/model.h"

namespace lrpc::stubgen {

/// Why a procedure is not in the program that --xdr describes; empty: it is.
[[nodiscard]] std::string_view why_not_in_xdr(const Procedure& procedure);

/// The Sun RPC number of the procedure at this index. 0 is the null procedure of every program (RFC 5531 §12.1).
[[nodiscard]] constexpr std::uint32_t xdr_number(std::size_t index) { return static_cast<std::uint32_t>(index + 1); }

/// An array of bytes, which is fixed-length opaque data (RFC 4506 §4.9).
[[nodiscard]] bool is_xdr_opaque(const Type& type);

/// An enumeration whose values all fit those of XDR, which are signed and have 32 bits (RFC 4506 §4.3). Other
/// enumerations are written as their underlying integers.
[[nodiscard]] bool is_xdr_enum(const Type& type);

}  // namespace lrpc::stubgen
