// What the concepts of generated code ask of a procedure's signature.
#pragma once

#include <limits>
#include <type_traits>
#include <utility>

#include "lrpc/detail/shim/result.h"

namespace lrpc::detail {

/// Whether a procedure whose outcome is an R, an lrpc::Result, may return a T: what converts to R, or nothing if an R
/// holds no value.
template <class T, class R>
concept Returns =
    std::conditional_t<std::is_void_v<T>, std::is_same<typename R::value_type, Unit>, std::is_convertible<T, R>>::value;

/// Whether a number that is a Given is narrowed where a procedure takes a Taken: as in C++, but for integers of which a
/// floating-point type holds each. void is no number.
template <class Given, class Taken>
concept Narrowing = std::is_arithmetic_v<Given> && std::is_arithmetic_v<Taken> && !BecomesA<Given, Taken> &&
                    !(std::is_integral_v<Given> && std::is_floating_point_v<Taken> &&
                      std::numeric_limits<Given>::digits <= std::numeric_limits<Taken>::digits);

template <class... T>
struct ParameterTypes {};

/// What a procedure takes behind the call's context. For decltype.
template <class R, class Class, class Context, class... Taken>
ParameterTypes<std::remove_cvref_t<Taken>...> taken_by(R (Class::*)(Context, Taken...));
template <class R, class Class, class Context, class... Taken>
ParameterTypes<std::remove_cvref_t<Taken>...> taken_by(R (Class::*)(Context, Taken...) const);
template <class R, class Class, class Context, class... Taken>
ParameterTypes<std::remove_cvref_t<Taken>...> taken_by(R (Class::*)(Context, Taken...) &);
template <class R, class Class, class Context, class... Taken>
ParameterTypes<std::remove_cvref_t<Taken>...> taken_by(R (Class::*)(Context, Taken...) const&);
template <class R, class Context, class... Taken>
ParameterTypes<std::remove_cvref_t<Taken>...> taken_by(R (*)(Context, Taken...));

template <class Given, class Taken>
struct Narrowed : std::false_type {};
template <class Given, class... NextGiven, class Taken, class... NextTaken>
struct Narrowed<ParameterTypes<Given, NextGiven...>, ParameterTypes<Taken, NextTaken...>>
    : std::bool_constant<Narrowing<Given, Taken> ||
                         Narrowed<ParameterTypes<NextGiven...>, ParameterTypes<NextTaken...>>::value> {};

/// Whether a procedure narrows a number that its caller passes. Procedure is the type of a pointer to it; Given are the
/// declared types of its parameters, with void for each that is no number. It may take more, by default arguments.
template <class Procedure, class... Given>
concept Narrows = Narrowed < ParameterTypes<Given...>,
decltype(detail::taken_by(std::declval<Procedure>())) > ::value;

}  // namespace lrpc::detail
