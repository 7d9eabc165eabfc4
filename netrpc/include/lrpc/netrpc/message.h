// The message: what moves through the sessions of a graph (The x-Kernel §II.D). Headers are pushed on and popped off by
// moving a pointer in one preallocated buffer; fragments and saved copies share bytes instead of copying them.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "lrpc/netrpc/buffer_pool.h"

namespace lrpc::netrpc {

/// Owns references to the bytes it consists of. Move-only; share() makes a second message over the same bytes. One
/// message is used by one thread at a time; two that share bytes are used under the same host's monitor. The bytes of a
/// message that has been shared are not written any more, only headers are pushed in front of them.
class Message {
 public:
  /// Room for the headers of every stack we know of, pushed in front of the data without another buffer.
  static constexpr std::size_t kHeadroom = 192;
  /// The largest data in one buffer.
  static constexpr std::size_t kMaxContiguous = BufferPool::kSizes.back() - kHeadroom;

  Message() noexcept = default;
  /// An empty message whose headers will come from `pool`.
  explicit Message(BufferPool& pool) noexcept : pool_(&pool) {}
  Message(Message&& other) noexcept { take(other); }
  Message& operator=(Message&& other) noexcept {
    if (this != &other) {
      clear();
      take(other);
    }
    return *this;
  }
  ~Message() {
    if (first_.buffer != nullptr || first_.next != nullptr) clear();  // most were moved from
  }

  /// A message of `size` bytes, not initialised, in one buffer behind kHeadroom free bytes: write them through bytes().
  /// Check with allocated(): false when the pool has no more, or for size > kMaxContiguous.
  [[nodiscard]] static Message make(BufferPool& pool, std::size_t size) noexcept;
  /// The same with a copy of `data`.
  [[nodiscard]] static Message copy_of(BufferPool& pool, std::span<const std::byte> data) noexcept;
  /// The same in as many buffers as necessary.
  [[nodiscard]] static Message copy_of_long(BufferPool& pool, std::span<const std::byte> data) noexcept;
  /// Takes over one reference to `buffer`, in which `size` bytes from `offset` are the message: for devices.
  [[nodiscard]] static Message adopt(Buffer& buffer, std::uint32_t offset, std::uint32_t size) noexcept;

  [[nodiscard]] bool allocated() const noexcept { return first_.buffer != nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] BufferPool* pool() const noexcept { return pool_; }

  /// Puts `size` (at most 256) bytes in front and returns where they are to be written, contiguously. Null: the pool
  /// has no more; the message is unchanged. Never allocates while the buffer has room in front that is this message's
  /// to use.
  [[nodiscard]] std::byte* push(std::size_t size) noexcept {
    Buffer* const buffer = first_.buffer;
    if (buffer == nullptr || first_.offset < size || (first_.offset != buffer->lowest && !buffer->unique()))
        [[unlikely]]
      return push_slowly(size);
    first_.offset -= static_cast<std::uint32_t>(size);
    first_.size += static_cast<std::uint32_t>(size);
    buffer->lowest = first_.offset;
    size_ += size;
    return first_.bytes();
  }
  /// Takes `size` bytes off the front and returns them, contiguously: in place, or copied into `scratch` (of at least
  /// `size` bytes) where they lie in several slices. Null: the message is shorter; it is unchanged. The bytes stay
  /// valid until the next operation that changes the message: decode them at once.
  [[nodiscard]] const std::byte* pop(std::size_t size, std::byte* scratch) noexcept {
    if (first_.buffer == nullptr || first_.size < size) [[unlikely]]
      return pop_slowly(size, scratch);
    const std::byte* const bytes = first_.bytes();
    first_.offset += static_cast<std::uint32_t>(size);
    first_.size -= static_cast<std::uint32_t>(size);
    size_ -= size;
    return bytes;
  }
  /// The same with the scratch memory inside, for headers: a codec decodes from a `Header<N>`.
  template <std::size_t N>
  struct Header {
    std::byte storage[N];
    const std::byte* bytes = nullptr;
    explicit operator bool() const noexcept { return bytes != nullptr; }
  };
  template <std::size_t N>
  void pop(Header<N>& header) noexcept {
    header.bytes = pop(N, header.storage);
  }

  /// A second message over the same bytes. May fail (pool exhausted): then the result is not allocated() though this
  /// one is.
  [[nodiscard]] Message share() const noexcept;
  /// Takes off the first `size` bytes (at most size()) and returns them as a message that shares the bytes. It is
  /// shorter if the pool has no slice left.
  [[nodiscard]] Message split(std::size_t size) noexcept;
  /// Appends `tail` without copying its bytes. Returns false, and changes neither, if the pool has no slice left.
  [[nodiscard]] bool append(Message&& tail) noexcept;
  /// Drops everything behind the first `size` bytes, such as padding. No effect on a shorter message.
  void truncate(std::size_t size) noexcept;
  /// Call it before keeping a message that has arrived. Copies the message into one smaller buffer if its buffers are
  /// larger than its bytes and the headers popped off them need: padding was cut off, or the sender has sent small
  /// fragments. Without memory it stays where it is: read footprint() afterwards.
  void fit() noexcept;
  /// Releases all bytes; the message is as after Message(pool).
  void clear() noexcept;

  /// Bytes of the pool that the message holds, counted in whole buffers, shared ones included.
  [[nodiscard]] std::size_t footprint() const noexcept;
  [[nodiscard]] bool contiguous() const noexcept { return first_.next == nullptr; }
  /// The bytes, if contiguous(). The owner may write them if no other message shares them.
  [[nodiscard]] std::span<std::byte> bytes() const noexcept {
    return first_.buffer == nullptr ? std::span<std::byte>() : std::span<std::byte>(first_.bytes(), first_.size);
  }
  /// Copies up to to.size() bytes from `from` on; returns how many.
  std::size_t copy_to(std::span<std::byte> to, std::size_t from = 0) const noexcept;
  /// Makes the message contiguous, by a copy if necessary. False: too large, or no buffer.
  [[nodiscard]] bool flatten() noexcept;
  /// Makes the message contiguous and not shared, so that its bytes may be written. Copies them if they lie in pieces
  /// or are shared. False: too large, or no buffer; the message is unchanged.
  [[nodiscard]] bool flatten_unshared() noexcept;
  /// Describes the bytes for sendmsg(2). Returns the number of entries, 0 if there are more slices than entries.
  [[nodiscard]] std::size_t describe(std::span<iovec> to) const noexcept;

 private:
  void take(Message& other) noexcept {
    pool_ = other.pool_;
    first_ = std::exchange(other.first_, {});
    last_ = other.last_ == &other.first_ ? &first_ : other.last_;
    other.last_ = &other.first_;
    size_ = std::exchange(other.size_, 0);
  }
  [[nodiscard]] std::byte* push_slowly(std::size_t size) noexcept;
  [[nodiscard]] const std::byte* pop_slowly(std::size_t size, std::byte* scratch) noexcept;
  void drop_first() noexcept;
  [[nodiscard]] bool refer_to(const Slice& part, std::uint32_t size) noexcept;
  [[nodiscard]] bool move_into_one() noexcept;

  BufferPool* pool_ = nullptr;
  Slice first_;
  Slice* last_ = &first_;
  std::size_t size_ = 0;
};

}  // namespace lrpc::netrpc
