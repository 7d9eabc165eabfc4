// What a client that knows nothing of Sun RPC is told of a call that failed. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lrpc/detail/shim/result.h"

namespace lrpc::netd {

/// The code with which an import ends whose program has answered so, or not at all.
[[nodiscard]] Errc import_error(Errc outcome) noexcept;
/// The code with which a call ends, by that of Transaction::completed() and SunClient::call(): one that a procedure may
/// say about its own call.
[[nodiscard]] Errc call_error(Errc outcome) noexcept;
/// One line for a person. `version`: of the program, as it was called; `reply`: what came with a version_mismatch,
/// hostile. Empty: the code says it all.
[[nodiscard]] std::string why_failed(Errc outcome, std::uint32_t version, std::span<const std::byte> reply);
/// Whether another port may be the program's by now.
[[nodiscard]] bool may_have_moved(Errc outcome) noexcept;

}  // namespace lrpc::netd
