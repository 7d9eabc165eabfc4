// Memory for data of untrusted peers: it comes from malloc(3), and never from a daemon's reserve (lrpc::reserve), which
// operator new takes when malloc fails.
#pragma once

#include <cstdlib>
#include <limits>
#include <new>

namespace lrpc::netrpc {

/// An allocator (C++ [allocator.requirements]). Throws std::bad_alloc when malloc fails.
template <class T>
struct FromMalloc {
  using value_type = T;
  FromMalloc() noexcept = default;
  template <class U>
  FromMalloc(const FromMalloc<U>&) noexcept {}  // NOLINT(google-explicit-constructor): the library converts them
  [[nodiscard]] T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_alloc();
    if (void* const memory = std::malloc(count * sizeof(T))) return static_cast<T*>(memory);
    throw std::bad_alloc();
  }
  void deallocate(T* memory, std::size_t /*count*/) noexcept { std::free(memory); }
  friend bool operator==(const FromMalloc&, const FromMalloc&) noexcept { return true; }
};

}  // namespace lrpc::netrpc
