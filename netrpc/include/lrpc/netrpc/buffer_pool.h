// The memory of messages: buffers of a few sizes. Released buffers are kept for reuse, so that a message in the steady
// state costs no allocation (The x-Kernel §II.A: the buffer manager).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lrpc::netrpc {

class BufferPool;

/// Bytes that any number of messages share. Headers are pushed in front of the first byte in use.
struct Buffer {
  std::atomic<std::uint32_t> references{1};
  std::uint32_t capacity = 0;
  /// The offset of the first byte that any message uses. If messages share the buffer, only one that begins there may
  /// push in place: in front of any other one lie another message's headers, which may not have been sent yet.
  std::uint32_t lowest = 0;
  std::uint8_t size_class = 0;
  BufferPool* pool = nullptr;
  Buffer* next_free = nullptr;

  [[nodiscard]] std::byte* bytes() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  [[nodiscard]] bool unique() const noexcept { return references.load(std::memory_order_acquire) == 1; }
};

/// A piece of a message: some bytes of a buffer. Owns one reference.
struct Slice {
  Buffer* buffer = nullptr;
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  Slice* next = nullptr;
  [[nodiscard]] std::byte* bytes() const noexcept { return buffer->bytes() + offset; }
};

/// Owns all buffers that it has made, and frees most of them only in its destructor; must outlive every message.
/// Thread-safe: any thread may release a message. Blocks only while another thread executes a few instructions.
class BufferPool {
 public:
  /// Sizes of buffers: a header or a null call; an Ethernet frame with room for headers; a whole 16 k message.
  static constexpr std::array<std::uint32_t, 3> kSizes{512, 2304, 20480};
  /// Bytes of the smallest buffer that holds `size` bytes. 0: none does.
  [[nodiscard]] static constexpr std::uint32_t capacity_for(std::size_t size) noexcept {
    for (const std::uint32_t one : kSizes)
      if (size <= one) return one;
    return 0;
  }

  /// `limit`: the most bytes of all buffers together. Beyond it take() fails, so a peer that makes this host keep
  /// messages cannot take more.
  explicit BufferPool(std::size_t limit = std::size_t{64} << 20) noexcept : limit_(limit) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  /// A buffer of at least `size` bytes with one reference, which is the caller's. Null: over the limit, out of memory,
  /// or `size` is larger than the largest buffer.
  [[nodiscard]] Buffer* take(std::size_t size) noexcept;
  static void retain(Buffer& buffer) noexcept { buffer.references.fetch_add(1, std::memory_order_relaxed); }
  static void release(Buffer& buffer) noexcept;

  /// Makes `count` buffers of each size (fewer at the limit, or without memory) and some slices, so that as many
  /// messages can be under way even if memory runs out later.
  void stock(std::size_t count) noexcept;

  [[nodiscard]] Slice* take_slice() noexcept;
  void put_slice(Slice& slice) noexcept;

  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
  /// How often the pool has taken memory from the system: constant in the steady state.
  [[nodiscard]] std::uint64_t allocations() const noexcept { return allocations_.load(std::memory_order_relaxed); }
  /// Buffers that are in use now: zero when no message is left.
  [[nodiscard]] std::uint64_t in_use() const noexcept { return in_use_.load(std::memory_order_relaxed); }

 private:
  class Lock;
  struct SliceBlock;
  [[nodiscard]] Buffer* make_room_locked(std::uint32_t size) noexcept;
  static void destroy(Buffer* list) noexcept;

  const std::size_t limit_;
  std::atomic_flag lock_;
  std::array<Buffer*, kSizes.size()> free_{};
  Slice* free_slices_ = nullptr;
  SliceBlock* blocks_ = nullptr;
  std::size_t taken_ = 0;
  std::atomic<std::uint64_t> allocations_{0};
  std::atomic<std::uint64_t> in_use_{0};
};

}  // namespace lrpc::netrpc
