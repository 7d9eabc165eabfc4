// Shared ownership inside a graph.
#pragma once

#include <utility>

namespace lrpc::netrpc {

/// A counted reference to a T. T has a counter `references_` and a function `unreferenced()`, which is called when the
/// last reference is dropped. Not thread-safe: under the host's monitor.
template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  explicit Ref(T* shared) noexcept : shared_(shared) {
    if (shared_ != nullptr) ++shared_->references_;
  }
  Ref(const Ref& other) noexcept : Ref(other.shared_) {}
  Ref(Ref&& other) noexcept : shared_(std::exchange(other.shared_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(shared_, other.shared_);
    return *this;
  }
  ~Ref() {
    if (shared_ != nullptr && --shared_->references_ == 0) shared_->unreferenced();
  }
  [[nodiscard]] T* get() const noexcept { return shared_; }
  T* operator->() const noexcept { return shared_; }
  T& operator*() const noexcept { return *shared_; }
  explicit operator bool() const noexcept { return shared_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.shared_ == b.shared_; }

 private:
  T* shared_ = nullptr;
};

}  // namespace lrpc::netrpc
