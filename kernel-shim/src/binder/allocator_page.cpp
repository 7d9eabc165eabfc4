#include "lrpc/detail/shim/binder/allocator_page.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "system/sealed_memory.h"

namespace lrpc::shim {
namespace {

// Each replaces one mapping by another for all threads at once: the kernel holds its lock on the address space, and a
// thread that faults meanwhile waits for it. Direct system calls, because tools that intercept mmap(2) treat it as a
// write to every byte, which would race with other threads.

bool map_over(void* at, int fd) noexcept {
  return ::syscall(SYS_mmap, at, kAllocatorPageSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0L) != -1;
}
/// Moves the mapping at `from`, so it needs no memory.
bool move_over(void* at, void* from) noexcept {
  return ::syscall(SYS_mremap, from, kAllocatorPageSize, kAllocatorPageSize, MREMAP_MAYMOVE | MREMAP_FIXED, at) != -1;
}

/// Null if there is no memory.
AllocatorPage* map_zeros() noexcept {
  void* zeros = mmap(nullptr, kAllocatorPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (zeros == MAP_FAILED) return nullptr;
  (void)madvise(zeros, kAllocatorPageSize, MADV_DONTFORK);
  return static_cast<AllocatorPage*>(zeros);
}

}  // namespace

CountersCopy copy_counters(const AllocatorCounters& counters) noexcept {
  return {.hits = counters.hits.load(std::memory_order_relaxed),
          .misses = counters.misses.load(std::memory_order_relaxed),
          .hot_calls = counters.hot_calls.load(std::memory_order_relaxed),
          .evictions = counters.evictions.load(std::memory_order_relaxed),
          .wants_poller = counters.wants_poller.load(std::memory_order_relaxed) != 0,
          .polling = counters.polling.load(std::memory_order_relaxed) != 0};
}

Result<UniqueFd> create_allocator_page() { return create_sealed_memory("lrpc-allocator", kAllocatorPageSize); }

AllocatorPageMapping::AllocatorPageMapping() noexcept : page_(map_zeros()), owner_(this_process()) {
  if (page_ == nullptr) page_ = &unmapped_;
}

AllocatorPageMapping::~AllocatorPageMapping() {
  if (!here()) return;
  if (page_ != &unmapped_) munmap(page_, kAllocatorPageSize);
  if (spare_ != nullptr) munmap(spare_, kAllocatorPageSize);
}

Status AllocatorPageMapping::put(UniqueFd fd) {
  if (page_ == &unmapped_) return Error{Errc::system_error, "there was no memory to map a page"};
  if (Status good = check_sealed_memory(fd.get(), kAllocatorPageSize, "the allocator's page"); !good) return good;
  if (spare_ == nullptr) spare_ = map_zeros();
  if (spare_ == nullptr || !map_over(page_, fd.get())) {
    const int err = errno;
    put_zeros();  // MAP_FIXED may have unmapped what was there
    return system_error("mmap of an allocator's page", err);
  }
  (void)madvise(page_, kAllocatorPageSize, MADV_DONTFORK);
  return {};  // fd closes here
}

void AllocatorPageMapping::put_zeros() noexcept {
  if (page_ == &unmapped_) return;
  if (spare_ == nullptr) {
    (void)madvise(page_, kAllocatorPageSize, MADV_DONTNEED);  // it is private already
  } else if (move_over(page_, spare_)) {
    spare_ = nullptr;
  }
}

}  // namespace lrpc::shim
