// Memory of objects that come and go with each message. It is reused, so that they cost no allocation in the steady
// state.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace lrpc::netrpc {

/// Under the host's monitor. All objects must be destroyed before this.
template <class Object>
class Cells {
 public:
  Cells() = default;
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;
  ~Cells() {
    while (free_ != nullptr) std::free(std::exchange(free_, free_->next));
  }

  /// Null: there is no memory.
  template <class... Arguments>
  [[nodiscard]] Object* make(Arguments&&... arguments) noexcept {
    if (free_ == nullptr) {
      void* const memory = std::malloc(sizeof(Cell));  // never freed: must not use up a daemon's reserve
      if (memory == nullptr) return nullptr;
      free_ = ::new (memory) Cell{nullptr};
    }
    ++in_use_;
    return ::new (std::exchange(free_, free_->next)) Object(std::forward<Arguments>(arguments)...);
  }
  void destroy(Object& object) noexcept {
    std::destroy_at(&object);
    Cell* const cell = ::new (&object) Cell;
    cell->next = std::exchange(free_, cell);
    --in_use_;
  }
  [[nodiscard]] std::size_t in_use() const noexcept { return in_use_; }

 private:
  union Cell {
    Cell* next;
    alignas(Object) std::byte object[sizeof(Object)];
  };

  Cell* free_ = nullptr;
  std::size_t in_use_ = 0;
};

}  // namespace lrpc::netrpc
