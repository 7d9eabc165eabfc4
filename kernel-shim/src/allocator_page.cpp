#include "lrpc/shim/allocator_page.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "sealed_memory.h"

namespace lrpc::shim {

CountersCopy copy_counters(const AllocatorCounters& counters) noexcept {
  return {.hits = counters.hits.load(std::memory_order_relaxed),
          .misses = counters.misses.load(std::memory_order_relaxed),
          .hot_calls = counters.hot_calls.load(std::memory_order_relaxed),
          .evictions = counters.evictions.load(std::memory_order_relaxed),
          .wants_poller = counters.wants_poller.load(std::memory_order_relaxed) != 0,
          .polling = counters.polling.load(std::memory_order_relaxed) != 0};
}

Result<UniqueFd> create_allocator_page() { return create_sealed_memory("lrpc-allocator", kAllocatorPageSize); }

AllocatorPageMapping::AllocatorPageMapping() noexcept : page_(&unmapped_), owner_(getpid()) {
  void* zeros = mmap(nullptr, kAllocatorPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (zeros == MAP_FAILED) return;
  (void)madvise(zeros, kAllocatorPageSize, MADV_DONTFORK);
  page_ = static_cast<AllocatorPage*>(zeros);
}

AllocatorPageMapping::~AllocatorPageMapping() {
  if (page_ != &unmapped_ && here()) munmap(page_, kAllocatorPageSize);
}

bool AllocatorPageMapping::here() const noexcept { return owner_ == getpid(); }

Status AllocatorPageMapping::put(UniqueFd fd) {
  if (page_ == &unmapped_) return Error{Errc::system_error, "there was no memory to map a page"};
  if (Status good = check_sealed_memory(fd.get(), kAllocatorPageSize, "the allocator's page"); !good) return good;
  // The kernel changes one for the other with its lock on the address space held: a thread that faults in between waits
  // for it.
  if (mmap(page_, kAllocatorPageSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd.get(), 0) == MAP_FAILED) {
    const int err = errno;
    put_zeros();  // MAP_FIXED may have unmapped what was there
    return system_error("mmap of an allocator's page", err);
  }
  (void)madvise(page_, kAllocatorPageSize, MADV_DONTFORK);
  return {};  // fd closes here
}

void AllocatorPageMapping::put_zeros() noexcept {
  if (page_ == &unmapped_) return;
  void* zeros = mmap(page_, kAllocatorPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (zeros != MAP_FAILED) (void)madvise(page_, kAllocatorPageSize, MADV_DONTFORK);
}

}  // namespace lrpc::shim
