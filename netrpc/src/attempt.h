// Runs work that may fail for lack of memory, where the caller can go on without it.
#pragma once

#include <new>

#include "lrpc/detail/shim/result.h"

namespace lrpc::netrpc {

/// Whether there was memory for `work`, which throws nothing but std::bad_alloc.
template <class Work>
bool attempt(const Work& work) noexcept {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// What `work` returns, a Result or a Status; without memory for it, limit_reached. It throws as above.
template <class Work>
[[nodiscard]] auto or_limit_reached(const Work& work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Errc::limit_reached;
  }
}

}  // namespace lrpc::netrpc
