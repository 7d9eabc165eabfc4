#include "lrpc/netrpc/message.h"

#include <algorithm>
#include <cstring>

namespace lrpc::netrpc {

Message Message::make(BufferPool& pool, std::size_t size) noexcept {
  Message message(pool);
  if (size > kMaxContiguous) return message;
  Buffer* const buffer = pool.take(kHeadroom + size);
  if (buffer == nullptr) return message;
  buffer->lowest = kHeadroom;
  message.first_ = {buffer, kHeadroom, static_cast<std::uint32_t>(size), nullptr};
  message.size_ = size;
  return message;
}

Message Message::copy_of(BufferPool& pool, std::span<const std::byte> data) noexcept {
  Message message = make(pool, data.size());
  if (message.allocated() && !data.empty()) std::memcpy(message.first_.bytes(), data.data(), data.size());
  return message;
}

Message Message::copy_of_long(BufferPool& pool, std::span<const std::byte> data) noexcept {
  Message whole = copy_of(pool, data.first(std::min(data.size(), kMaxContiguous)));
  for (std::size_t at = whole.size(); at < data.size() && whole.allocated();) {
    Message part = copy_of(pool, data.subspan(at, std::min(data.size() - at, kMaxContiguous)));
    at += part.size();
    if (!part.allocated() || !whole.append(std::move(part))) return Message(pool);
  }
  return whole;
}

Message Message::adopt(Buffer& buffer, std::uint32_t offset, std::uint32_t size) noexcept {
  Message message(*buffer.pool);
  buffer.lowest = std::min(buffer.lowest, offset);
  message.first_ = {&buffer, offset, size, nullptr};
  message.size_ = size;
  return message;
}

std::byte* Message::push_slowly(std::size_t size) noexcept {
  const auto count = static_cast<std::uint32_t>(size);
  if (pool_ == nullptr) return nullptr;
  // The room in front is too small, or belongs to another message over the same bytes: take a buffer for headers.
  Buffer* const headers = pool_->take(BufferPool::kSizes[0]);
  if (headers == nullptr) return nullptr;
  if (first_.buffer != nullptr && first_.size == 0 && first_.next == nullptr) {  // nothing left in it
    BufferPool::release(*first_.buffer);
    first_ = {};
  }
  if (first_.buffer != nullptr) {
    Slice* const rest = pool_->take_slice();
    if (rest == nullptr) {
      BufferPool::release(*headers);
      return nullptr;
    }
    *rest = first_;
    if (last_ == &first_) last_ = rest;
    first_ = {nullptr, 0, 0, rest};
  }
  // At the very end, so that more headers find room in front of this one.
  first_.buffer = headers;
  first_.offset = headers->capacity - count;
  first_.size = count;
  headers->lowest = first_.offset;
  size_ += size;
  return first_.bytes();
}

const std::byte* Message::pop_slowly(std::size_t size, std::byte* scratch) noexcept {
  if (size > size_) return nullptr;
  while (first_.size == 0 && first_.next != nullptr) drop_first();
  if (first_.size >= size) [[likely]] {
    const std::byte* const bytes = first_.buffer == nullptr ? scratch : first_.bytes();
    first_.offset += static_cast<std::uint32_t>(size);
    first_.size -= static_cast<std::uint32_t>(size);
    size_ -= size;
    return bytes;
  }
  std::size_t done = 0;
  while (done < size) {
    const std::size_t part = std::min<std::size_t>(first_.size, size - done);
    std::memcpy(scratch + done, first_.bytes(), part);
    first_.offset += static_cast<std::uint32_t>(part);
    first_.size -= static_cast<std::uint32_t>(part);
    done += part;
    if (first_.size == 0 && first_.next != nullptr) drop_first();
  }
  size_ -= size;
  return scratch;
}

/// Adds a reference to the first `size` bytes of `part`. False: there is no memory.
bool Message::refer_to(const Slice& part, std::uint32_t size) noexcept {
  Slice* into = &first_;
  if (first_.buffer != nullptr) {
    into = pool_->take_slice();
    if (into == nullptr) return false;
    last_->next = into;
    last_ = into;
  }
  BufferPool::retain(*part.buffer);
  *into = {part.buffer, part.offset, size, nullptr};
  size_ += size;
  return true;
}

Message Message::share() const noexcept {
  Message copy;
  copy.pool_ = pool_;
  for (const Slice* slice = &first_; slice != nullptr && slice->buffer != nullptr; slice = slice->next) {
    if (copy.refer_to(*slice, slice->size)) continue;
    copy.clear();
    break;
  }
  return copy;
}

Message Message::split(std::size_t size) noexcept {
  Message front;
  front.pool_ = pool_;
  size = std::min(size, size_);
  while (first_.size == 0 && first_.next != nullptr) drop_first();
  while (front.size_ < size) {
    const auto part = static_cast<std::uint32_t>(std::min<std::size_t>(first_.size, size - front.size_));
    if (!front.refer_to(first_, part)) return front;  // shorter than asked: the caller compares sizes
    first_.offset += part;
    first_.size -= part;
    size_ -= part;
    if (first_.size == 0 && first_.next != nullptr) drop_first();
  }
  return front;
}

std::size_t Message::footprint() const noexcept {
  std::size_t bytes = 0;
  for (const Slice* slice = &first_; slice != nullptr && slice->buffer != nullptr; slice = slice->next)
    bytes += slice->buffer->capacity;
  return bytes;
}

void Message::fit() noexcept {
  const std::size_t enough = BufferPool::capacity_for((contiguous() ? first_.offset : kHeadroom) + size_);
  if (enough != 0 && footprint() > enough) (void)move_into_one();
}

bool Message::append(Message&& tail) noexcept {
  if (tail.size_ == 0) {
    tail.clear();
    return true;
  }
  if (first_.buffer == nullptr) {
    BufferPool* const pool = pool_;
    take(tail);
    if (pool_ == nullptr) pool_ = pool;
    return true;
  }
  Slice* const more = pool_->take_slice();
  if (more == nullptr) return false;
  *more = tail.first_;
  last_->next = more;
  last_ = tail.last_ == &tail.first_ ? more : tail.last_;
  size_ += tail.size_;
  tail.first_ = {};
  tail.last_ = &tail.first_;
  tail.size_ = 0;
  return true;
}

void Message::truncate(std::size_t size) noexcept {
  if (size >= size_) return;
  std::size_t kept = 0;
  Slice* slice = &first_;
  while (kept + slice->size < size) {
    kept += slice->size;
    slice = slice->next;
  }
  slice->size = static_cast<std::uint32_t>(size - kept);
  Slice* rest = std::exchange(slice->next, nullptr);
  last_ = slice;
  size_ = size;
  while (rest != nullptr) {
    Slice* const next = rest->next;
    BufferPool::release(*rest->buffer);
    pool_->put_slice(*rest);
    rest = next;
  }
}

void Message::clear() noexcept {
  while (first_.next != nullptr) drop_first();
  if (first_.buffer != nullptr) BufferPool::release(*first_.buffer);
  first_ = {};
  last_ = &first_;
  size_ = 0;
}

/// The slice behind the first becomes the first.
void Message::drop_first() noexcept {
  Slice* const next = first_.next;
  if (first_.buffer != nullptr) BufferPool::release(*first_.buffer);
  first_ = *next;
  if (last_ == next) last_ = &first_;
  pool_->put_slice(*next);
}

std::size_t Message::copy_to(std::span<std::byte> to, std::size_t from) const noexcept {
  std::size_t done = 0;
  for (const Slice* slice = &first_; slice != nullptr && done < to.size(); slice = slice->next) {
    if (from >= slice->size) {
      from -= slice->size;
      continue;
    }
    const std::size_t part = std::min<std::size_t>(slice->size - from, to.size() - done);
    std::memcpy(to.data() + done, slice->bytes() + from, part);
    done += part;
    from = 0;
  }
  return done;
}

/// Moves the bytes into a buffer of their own. False: there is none.
bool Message::move_into_one() noexcept {
  Message own = make(*pool_, size_);
  if (!own.allocated()) return false;
  copy_to(own.bytes());
  *this = std::move(own);
  return true;
}

bool Message::flatten() noexcept {
  while (first_.size == 0 && first_.next != nullptr) drop_first();
  return contiguous() || move_into_one();
}

bool Message::flatten_unshared() noexcept {
  while (first_.size == 0 && first_.next != nullptr) drop_first();
  return (contiguous() && (first_.buffer == nullptr || first_.buffer->unique())) || move_into_one();
}

std::size_t Message::describe(std::span<iovec> to) const noexcept {
  std::size_t count = 0;
  for (const Slice* slice = &first_; slice != nullptr; slice = slice->next) {
    if (slice->size == 0) continue;
    if (count == to.size()) return 0;
    to[count++] = {slice->bytes(), slice->size};
  }
  return count;
}

}  // namespace lrpc::netrpc
