// What the concepts of generated code ask of a procedure's signature.
#pragma once

#include <type_traits>

#include "lrpc/detail/shim/result.h"

namespace lrpc::detail {

/// Whether a procedure whose outcome is an R, an lrpc::Result, may return a T: what converts to R, or nothing if an R
/// holds no value.
template <class T, class R>
concept Returns =
    std::conditional_t<std::is_void_v<T>, std::is_same<typename R::value_type, Unit>, std::is_convertible<T, R>>::value;

}  // namespace lrpc::detail
