// Objects that a protocol has for each message under way, and uses again.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "netrpc/src/attempt.h"

namespace lrpc::netrpc {

/// Owns all of them, those in use, too. There are as many as were ever in use at one time. Under the host's monitor.
template <class Object>
class Spares {
 public:
  /// One that is not in use; if there is none, a new one, which is made from `owner`. Null: there is no memory.
  template <class Owner>
  [[nodiscard]] Object* take(Owner& owner) noexcept {
    if (free_.empty())
      attempt([&] {
        free_.reserve(all_.size() + 1);
        all_.push_back(std::make_unique<Object>(owner));
        free_.push_back(all_.back().get());
      });
    if (free_.empty()) return nullptr;
    Object* const taken = free_.back();
    free_.pop_back();
    return taken;
  }
  void give_back(Object& object) noexcept { free_.push_back(&object); }
  [[nodiscard]] std::size_t in_use() const noexcept { return all_.size() - free_.size(); }

 private:
  std::vector<std::unique_ptr<Object>> all_;
  std::vector<Object*> free_;  ///< Has room for all.
};

}  // namespace lrpc::netrpc
