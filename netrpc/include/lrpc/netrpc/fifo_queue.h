// A queue that allocates nothing in the steady state. (std::deque allocates a block and frees one every few elements.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace lrpc::netrpc {

/// First in, first out, in a ring of reused places. `T` is default-constructible and moves without throwing; an empty
/// place holds a T{}. The ring doubles when it is full; when the queue becomes empty, it frees its places if there are
/// more than `kept`. Not thread-safe.
template <class T>
class FifoQueue {
 public:
  /// `kept`: how many places stay allocated. Up to this size the queue allocates nothing once it has been that large.
  /// If the number of elements has a bound, pass that bound.
  explicit FifoQueue(std::size_t kept = 64) noexcept : kept_(kept) {}
  /// `other` is empty then.
  FifoQueue(FifoQueue&& other) noexcept
      : places_(std::exchange(other.places_, std::vector<T>())),
        first_(std::exchange(other.first_, 0)),
        size_(std::exchange(other.size_, 0)),
        kept_(other.kept_) {}
  FifoQueue& operator=(FifoQueue&&) = delete;

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Precondition of these four: not empty().
  [[nodiscard]] T& front() noexcept { return places_[first_]; }
  [[nodiscard]] T& back() noexcept { return at(size_ - 1); }
  void pop_front() noexcept {
    front() = T{};
    first_ = (first_ + 1) % places_.size();
    popped();
  }
  void pop_back() noexcept {
    back() = T{};
    popped();
  }
  /// Throws std::bad_alloc; then the queue and `element` are as before.
  void push_back(T&& element) {
    if (size_ == places_.size()) grow();
    at(size_) = std::move(element);
    ++size_;
  }
  void clear() noexcept {
    while (!empty()) pop_front();
  }

 private:
  [[nodiscard]] T& at(std::size_t index) noexcept { return places_[(first_ + index) % places_.size()]; }
  void grow() {
    const std::size_t doubled = std::max<std::size_t>(8, 2 * places_.size());
    std::vector<T> larger(places_.size() < kept_ ? std::min(doubled, kept_) : doubled);
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move(at(i));
    places_ = std::move(larger);
    first_ = 0;
  }
  void popped() noexcept {
    if (--size_ == 0 && places_.size() > kept_) places_ = std::vector<T>();
    if (size_ == 0) first_ = 0;
  }

  std::vector<T> places_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  std::size_t kept_;
};

}  // namespace lrpc::netrpc
