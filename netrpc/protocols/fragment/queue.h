// Lists whose links lie in their elements, and the records that go round in them: nothing is allocated once warm.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

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

/// Records that are kept for the next use. Owns all it has made. They come from malloc(3), not from a daemon's reserve
/// (lrpc::reserve): they are kept for good.
template <class T>
class Records {
 public:
  Records() = default;
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;
  ~Records() {
    while (made_ != nullptr) {
      Record* const gone = std::exchange(made_, made_->made_before);
      gone->~Record();
      std::free(gone);
    }
  }
  /// Null: there is no memory.
  template <class... Arguments>
  [[nodiscard]] T* take(Arguments&&... arguments) {
    if (free_ != nullptr) return &std::exchange(free_, free_->next_free)->value;
    void* const memory = std::malloc(sizeof(Record));
    if (memory == nullptr) return nullptr;
    made_ = ::new (memory) Record{T{arguments...}, made_, nullptr};
    return &made_->value;
  }
  void put(T& record) noexcept {
    auto* const one = reinterpret_cast<Record*>(&record);  // it begins there
    one->next_free = std::exchange(free_, one);
  }

 private:
  struct Record {
    T value;
    Record* made_before;
    Record* next_free;
  };
  Record* made_ = nullptr;
  Record* free_ = nullptr;
};

}  // namespace lrpc::netrpc::fragment
