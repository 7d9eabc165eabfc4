// Lists whose links lie in their elements.
#pragma once

#include <cstddef>

namespace lrpc::netrpc {

template <class T>
struct Link {
  T* before = nullptr;
  T* after = nullptr;
};

/// Oldest first.
template <class T, Link<T> T::*kLink>
class Queue {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] T* first() const noexcept { return first_; }
  [[nodiscard]] T* last() const noexcept { return last_; }
  [[nodiscard]] static T* before(const T& element) noexcept { return (element.*kLink).before; }
  void push_back(T& element) noexcept {
    (element.*kLink) = {last_, nullptr};
    (last_ == nullptr ? first_ : (last_->*kLink).after) = &element;
    last_ = &element;
    ++size_;
  }
  void remove(T& element) noexcept {
    const Link<T> link = element.*kLink;
    (link.before == nullptr ? first_ : (link.before->*kLink).after) = link.after;
    (link.after == nullptr ? last_ : (link.after->*kLink).before) = link.before;
    --size_;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace lrpc::netrpc
