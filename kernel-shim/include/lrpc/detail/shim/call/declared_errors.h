// Moves the errors that a procedure declares (`raises`) between a Result and an A-stack. For generated stubs. The
// status of a call that raised an error is the error's number, from 1, in the order of the declaration; the PDL says
// where its fields lie. A codec, `put` or `get`, moves the fields of one error. It is null for an error without fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::detail {

/// Puts an error, but only if it `conforms` to its declaration.
template <class E>
struct Checked {
  bool (*conforms)(const E&) noexcept;
  void (*put)(std::byte*, const E&) noexcept;
  [[nodiscard]] bool operator()(std::byte* to, const E& error) const noexcept {
    if (!conforms(error)) return false;
    put(to, error);
    return true;
  }
};
template <class E>
Checked(bool (*)(const E&) noexcept, void (*)(std::byte*, const E&) noexcept) -> Checked<E>;

/// Applies `codec`, which is not null. False if the codec checks and the check fails.
template <class Codec, class Place, class E>
[[nodiscard]] bool moved(const Codec& codec, Place place, E& error) noexcept {
  if constexpr (std::is_void_v<std::invoke_result_t<Codec, Place, E&>>) {
    codec(place, error);
    return true;
  } else {
    return codec(place, error);
  }
}

/// Puts the error that `outcome` holds. Returns the call's status: the error's number; a failure if the error does not
/// conform to its declaration; 0 if `outcome` holds no error. There is one codec for each error.
template <class T, class... Raised, class... Put>
[[nodiscard, gnu::cold]] std::uint16_t put_declared_error(const Result<T, Raised...>& outcome, std::byte* image,
                                                          std::span<const ImageRange> places, Put... put) noexcept {
  std::uint16_t number = 0;
  bool conforms = true;
  const auto puts = [&](const auto* error, auto one) {
    const ImageRange place = places[number++];
    if (error == nullptr) return false;
    if constexpr (!std::is_null_pointer_v<decltype(one)>) conforms = moved(one, image + place.offset, *error);
    return true;
  };
  if (!(puts(outcome.template raised<Raised>(), put) || ...)) return 0;
  if (!conforms) return shim::call_status::kFailed | static_cast<std::uint16_t>(Errc::bad_result);
  return number;
}

/// Not inlined, so that of many errors only one is on the stack.
template <class Error, class Get, class Outcome>
[[gnu::cold, gnu::noinline]] void get_one_error(std::type_identity<Error> /*type*/, const std::byte* from, Get get,
                                                Outcome& result) noexcept {
  Error error{};
  bool conforms = true;
  if constexpr (!std::is_null_pointer_v<Get>) conforms = moved(get, from, error);
  if (conforms) result = raise(error);
}

/// Gets the error with number `status` from a peer's image, and loads each field once. bad_result if a field does not
/// conform. Precondition: there is such an error.
template <class T, class... Raised, class... Get>
[[nodiscard, gnu::cold, gnu::noinline]] Result<T, Raised...> get_declared_error(
    std::type_identity<Result<T, Raised...>> /*type*/, std::uint16_t status, const std::byte* image,
    std::span<const ImageRange> places, Get... get) noexcept {
  Result<T, Raised...> result = Errc::bad_result;
  std::uint16_t number = 0;
  const auto gets = [&]<class Error>(std::type_identity<Error> type, auto one) {
    const ImageRange place = places[number++];
    if (status != number) return false;
    get_one_error(type, image + place.offset, one, result);
    return true;
  };
  (void)(gets(std::type_identity<Raised>{}, get) || ...);
  return result;
}

}  // namespace lrpc::detail
