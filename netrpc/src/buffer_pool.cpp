#include "lrpc/netrpc/buffer_pool.h"

#include <cstdlib>
#include <new>
#include <utility>

namespace lrpc::netrpc {

/// Held for a few instructions only, so that spinning is shorter than sleeping.
class BufferPool::Lock {
 public:
  explicit Lock(std::atomic_flag& flag) noexcept : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) {
      // If the holder was preempted, waits in the kernel, on a flag that only this process maps.
      flag_.wait(true, std::memory_order_relaxed);
    }
  }
  ~Lock() {
    flag_.clear(std::memory_order_release);
    flag_.notify_one();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  std::atomic_flag& flag_;
};

/// Slices are made many at a time. Like buffers they come from malloc(3), not from a daemon's reserve (lrpc::reserve):
/// they are kept for good.
struct BufferPool::SliceBlock {
  static constexpr std::size_t kCount = 64;
  SliceBlock* next = nullptr;
  Slice slices[kCount];
};

BufferPool::~BufferPool() {
  for (Buffer* const list : free_) destroy(list);
  while (blocks_ != nullptr) std::free(std::exchange(blocks_, blocks_->next));
}

void BufferPool::destroy(Buffer* list) noexcept {
  while (list != nullptr) {
    Buffer* const buffer = std::exchange(list, list->next_free);
    buffer->~Buffer();
    std::free(buffer);
  }
}

/// At the limit, gives up idle buffers of other sizes to make room for one of `size` bytes: a flood of messages of one
/// size must not take the others' share for good. Returns the buffers that the caller must destroy outside the lock.
Buffer* BufferPool::make_room_locked(std::uint32_t size) noexcept {
  Buffer* idle = nullptr;
  for (Buffer*& list : free_) {
    while (list != nullptr && taken_ + size > limit_) {
      Buffer* const buffer = std::exchange(list, list->next_free);
      buffer->next_free = std::exchange(idle, buffer);
      taken_ -= buffer->capacity;
    }
  }
  return idle;
}

Buffer* BufferPool::take(std::size_t size) noexcept {
  std::uint8_t size_class = 0;
  while (size_class < kSizes.size() && kSizes[size_class] < size) ++size_class;
  if (size_class == kSizes.size()) return nullptr;
  Buffer* buffer = nullptr;
  Buffer* idle = nullptr;
  bool room = true;
  {
    const Lock lock(lock_);
    buffer = free_[size_class];
    if (buffer != nullptr) {
      free_[size_class] = buffer->next_free;
    } else {
      idle = make_room_locked(kSizes[size_class]);
      room = taken_ + kSizes[size_class] <= limit_;
      if (room) taken_ += kSizes[size_class];
    }
  }
  destroy(idle);
  if (!room) return nullptr;
  if (buffer == nullptr) {
    void* const memory = std::malloc(sizeof(Buffer) + kSizes[size_class]);
    if (memory == nullptr) {
      const Lock lock(lock_);
      taken_ -= kSizes[size_class];
      return nullptr;
    }
    allocations_.fetch_add(1, std::memory_order_relaxed);
    buffer = ::new (memory) Buffer{.capacity = kSizes[size_class], .size_class = size_class, .pool = this};
  }
  buffer->references.store(1, std::memory_order_relaxed);
  buffer->lowest = buffer->capacity;
  buffer->next_free = nullptr;
  in_use_.fetch_add(1, std::memory_order_relaxed);
  return buffer;
}

void BufferPool::release(Buffer& buffer) noexcept {
  // acq_rel: the last holder must see what the others have read and written before it gives the bytes to somebody else.
  if (buffer.references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  BufferPool& pool = *buffer.pool;
  pool.in_use_.fetch_sub(1, std::memory_order_relaxed);
  const Lock lock(pool.lock_);
  buffer.next_free = std::exchange(pool.free_[buffer.size_class], &buffer);
}

void BufferPool::stock(std::size_t count) noexcept {
  for (const std::uint32_t size : kSizes) {
    Buffer* made = nullptr;
    for (std::size_t i = 0; i < count; ++i) {
      Buffer* const buffer = take(size);
      if (buffer == nullptr) break;
      buffer->next_free = std::exchange(made, buffer);
    }
    while (made != nullptr) release(*std::exchange(made, made->next_free));
  }
  if (Slice* const slice = take_slice()) put_slice(*slice);  // allocates a block of slices
}

Slice* BufferPool::take_slice() noexcept {
  const Lock lock(lock_);
  if (free_slices_ == nullptr) {
    void* const memory = std::malloc(sizeof(SliceBlock));
    if (memory == nullptr) return nullptr;
    auto* const block = ::new (memory) SliceBlock;
    allocations_.fetch_add(1, std::memory_order_relaxed);
    block->next = std::exchange(blocks_, block);
    for (Slice& slice : block->slices) slice.next = std::exchange(free_slices_, &slice);
  }
  Slice* const slice = std::exchange(free_slices_, free_slices_->next);
  *slice = Slice{};
  return slice;
}

void BufferPool::put_slice(Slice& slice) noexcept {
  const Lock lock(lock_);
  slice.next = std::exchange(free_slices_, &slice);
}

}  // namespace lrpc::netrpc
