#include "netrpc/sim/test/counted_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

// glibc's function, under the name that it exports for this purpose.
extern "C" void* __libc_malloc(std::size_t size);  // NOLINT

namespace {
constinit std::atomic<std::uint64_t> allocations{0};
constinit thread_local bool denied_here = false;
constinit thread_local bool malloc_denied_here = false;

void* counted(std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return denied_here ? nullptr : __libc_malloc(size == 0 ? 1 : size);
}
void* counted_or_throw(std::size_t size) {
  void* const memory = counted(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

std::uint64_t lrpc::netrpc::allocations_so_far() noexcept { return allocations.load(std::memory_order_relaxed); }

void lrpc::netrpc::deny_memory(bool denied) noexcept { denied_here = denied; }
void lrpc::netrpc::deny_malloc(bool denied) noexcept { malloc_denied_here = denied; }

extern "C" void* malloc(std::size_t size) { return malloc_denied_here ? nullptr : __libc_malloc(size); }

// All unaligned forms together: memory from a library's new must not meet the delete defined here. Aligned forms are
// not replaced, because no counted code uses them.
void* operator new(std::size_t size) { return counted_or_throw(size); }
void* operator new[](std::size_t size) { return counted_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
