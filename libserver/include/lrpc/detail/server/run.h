// Small helpers of generated entry stubs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/detail/shim/call/declared_errors.h"
#include "lrpc/detail/shim/call/step.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc {
class CallContext;
}

namespace lrpc::server {

/// The call status for a call that did not return its results.
[[nodiscard]] constexpr std::uint16_t failed(Errc code) noexcept {
  return static_cast<std::uint16_t>(shim::call_status::kFailed | static_cast<std::uint16_t>(code));
}

/// The same for a procedure that returned an error. The text, if it is not null, is written to the A-stack as far as
/// there is room. A code that a procedure may not return for its own call becomes call_failed; if it has no text, the
/// description of that code is written. Never blocks, never allocates.
[[nodiscard, gnu::cold, gnu::noinline]] std::uint16_t failed(const CallContext& context, Errc code,
                                                             const std::string* text) noexcept;

/// The same for an outcome without results. An error that the procedure declares is written to the A-stack by its
/// codec; `put` has one codec for each declared error, in order.
template <class T, class... Raised, class... Put>
[[nodiscard, gnu::cold]] std::uint16_t failed(const CallContext& context, const Result<T, Raised...>& outcome,
                                              std::byte* image = nullptr, std::span<const ImageRange> places = {},
                                              Put... put) noexcept {
  if constexpr (sizeof...(Raised) != 0) {
    const std::uint16_t raised = lrpc::detail::put_declared_error(outcome, image, places, put...);
    if (raised != 0) return raised;
  }
  return failed(context, outcome.code(), lrpc::detail::text_of(outcome));
}

/// Runs a procedure and makes its outcome a ResultType. The procedure may return void, a plain value, a Result, an
/// Errc, lrpc::raise(...), or anything else that converts.
template <class ResultType, class Body>
[[nodiscard]] inline ResultType run(Body&& body) {
  LRPC_STEP("server e");
  if constexpr (std::is_void_v<std::invoke_result_t<Body>>) {
    std::forward<Body>(body)();
    return ResultType();
  } else {
    return std::forward<Body>(body)();
  }
}

}  // namespace lrpc::server
