// A call of a remote binding (LRPC §5.1).
#pragma once

#include <cstdint>

#include "lrpc/detail/client/binding/remote_path.h"
#include "lrpc/detail/client/call/call.h"

namespace lrpc::client {

/// One outstanding call of a remote binding; otherwise as Call. Generated remote branches use it.
class RemoteCall : public Call {
 public:
  RemoteCall(BindingObject& binding, std::uint16_t astack_class) noexcept
      : Call(binding, astack_class), binding_(binding) {}

  /// 4 and 5 · as Call::transfer(), over the network path.
  [[nodiscard]] std::uint16_t transfer(std::uint16_t procedure) noexcept {
    return binding_.remote_path()->call(procedure, linkage());
  }
  /// 4 · for a one-way procedure. 0, or a failure.
  [[nodiscard]] std::uint16_t send(std::uint16_t procedure) noexcept {
    return binding_.remote_path()->send(procedure, linkage());
  }

 private:
  BindingObject& binding_;
};

}  // namespace lrpc::client
