// What a client that knows nothing of Sun RPC is told of a failed call. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lrpc/detail/shim/result.h"

namespace lrpc::netd {

/// The error of an import whose question to the program had this outcome.
[[nodiscard]] Errc import_error(Errc outcome) noexcept;
/// The error of a call with this outcome of Transaction::completed() or SunClient::call(). Only one that a procedure
/// may return about its own call.
[[nodiscard]] Errc call_error(Errc outcome) noexcept;
/// One line for a person. `version`: of the program, as it was called; `reply`: what came with a version_mismatch,
/// hostile. Empty: the code says it all.
[[nodiscard]] std::string why_failed(Errc outcome, std::uint32_t version, std::span<const std::byte> reply);
/// Whether the program may have another port by now.
[[nodiscard]] bool may_have_moved(Errc outcome) noexcept;

}  // namespace lrpc::netd
