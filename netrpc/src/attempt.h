// Runs work that may fail for lack of memory, where the caller can go on without it.
#pragma once

#include <new>

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

}  // namespace lrpc::netrpc
