// What may fail for want of memory, and what the nameserver does then: one thing less, and it goes on.
#pragma once

#include <new>
#include <string>
#include <type_traits>

#include "lrpc/detail/shim/result.h"

namespace lrpc::nameserver {

/// What `act` returns (a Status, or a Result; of one that returns nothing a Status). limit_reached: it has no memory.
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

/// With the text that `text` makes, or with none if there is no memory for it: the code says as much.
template <class Text>
Error error_of(Errc code, const Text& text) noexcept {
  Error made{code, {}};
  (void)as_memory_allows([&] { made.text = text(); });
  return made;
}

}  // namespace lrpc::nameserver
