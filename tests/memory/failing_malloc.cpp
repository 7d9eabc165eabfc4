// For LD_PRELOAD: malloc(3) and its family fail when a test demands it. operator new calls malloc.
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "allocation_faults.h"

// glibc's allocator, under the names that it exports for this purpose.
extern "C" {
void* __libc_malloc(std::size_t size);                           // NOLINT: glibc's name
void* __libc_calloc(std::size_t count, std::size_t size);        // NOLINT
void* __libc_realloc(void* memory, std::size_t size);            // NOLINT
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT
void __libc_free(void* memory);                                  // NOLINT
}

namespace {

using testing_lrpc::AllocationFaults;

AllocationFaults before{};  // until the test's file is mapped
std::atomic<AllocationFaults*> faults{&before};

bool fails() noexcept {
  AllocationFaults& now = *faults.load(std::memory_order_relaxed);
  std::array<char, sizeof now.thread> name{};
  if (now.thread[0] != '\0' && (::prctl(PR_GET_NAME, name.data()) != 0 || std::strcmp(name.data(), now.thread) != 0))
    return false;
  const std::uint64_t number = now.count.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::uint64_t first = now.first.load(std::memory_order_relaxed);
  if (first == 0 || number < first || number > now.last.load(std::memory_order_relaxed)) return false;
  now.failed.fetch_add(1, std::memory_order_relaxed);
  errno = ENOMEM;
  return true;
}

void* counted(void* memory) noexcept {
  if (memory != nullptr) faults.load(std::memory_order_relaxed)->live.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

[[gnu::constructor]] void map_faults() {
  const char* const path = std::getenv("LRPC_ALLOCATION_FAULTS");
  if (path == nullptr) return;
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  void* const page = ::mmap(nullptr, sizeof(AllocationFaults), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) std::abort();
  ::close(fd);
  auto* const mapped = static_cast<AllocationFaults*>(page);
  mapped->live.fetch_add(before.live.load());
  faults.store(mapped);
  ::unsetenv("LD_PRELOAD");  // only this process, not its children
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) { return fails() ? nullptr : counted(__libc_malloc(size)); }
void* calloc(std::size_t count, std::size_t size) { return fails() ? nullptr : counted(__libc_calloc(count, size)); }
void* realloc(void* memory, std::size_t size) {
  if (memory == nullptr) return malloc(size);
  return fails() ? nullptr : __libc_realloc(memory, size);
}
void free(void* memory) {
  if (memory == nullptr) return;
  faults.load(std::memory_order_relaxed)->live.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(memory);
}
void* memalign(std::size_t alignment, std::size_t size) {
  return fails() ? nullptr : counted(__libc_memalign(alignment, size));
}
void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  void* const made = memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *memory = made;
  return 0;
}

}  // extern "C"
