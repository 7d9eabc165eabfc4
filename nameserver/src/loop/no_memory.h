// Handles failed allocations: the nameserver gives one operation up, and goes on.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <vector>

#include "lrpc/detail/shim/result.h"

namespace lrpc::nameserver {

/// Returns what `act` returns (a Status, or a Result; if it returns nothing, a Status), or limit_reached if there is no
/// memory.
template <class Act>
auto as_memory_allows(const Act& act) -> std::conditional_t<std::is_void_v<decltype(act())>, Status, decltype(act())> {
  try {
    if constexpr (std::is_void_v<decltype(act())>) {
      act();
      return {};
    } else {
      return act();
    }
  } catch (const std::bad_alloc&) {
    return Errc::limit_reached;
  }
}

/// Makes room in `vector` for `wanted` elements, and for as many more if there is not enough.
template <class T>
void make_room(std::vector<T>& vector, std::size_t wanted) {
  if (vector.capacity() < wanted) vector.reserve(2 * wanted);
}

/// An error with the text that `text` makes, or without a text if there is no memory for it.
template <class Text>
Error error_of(Errc code, const Text& text) noexcept {
  Error made{code, {}};
  (void)as_memory_allows([&] { made.text = text(); });
  return made;
}

}  // namespace lrpc::nameserver
