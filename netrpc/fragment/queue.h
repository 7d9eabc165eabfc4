// Lists whose links lie in their elements, and the records that go round in them: nothing is allocated once warm.
#pragma once

#include <memory>
#include <vector>

namespace lrpc::netrpc::fragment {

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

/// Records that are kept for the next use. Owns all it has made.
template <class T>
class Records {
 public:
  template <class... Arguments>
  [[nodiscard]] T& take(Arguments&&... arguments) {
    if (free_.empty()) {
      all_.push_back(std::make_unique<T>(arguments...));
      free_.reserve(all_.size());
      return *all_.back();
    }
    T& record = *free_.back();
    free_.pop_back();
    return record;
  }
  void put(T& record) noexcept { free_.push_back(&record); }

 private:
  std::vector<std::unique_ptr<T>> all_;
  std::vector<T*> free_;
};

}  // namespace lrpc::netrpc::fragment
