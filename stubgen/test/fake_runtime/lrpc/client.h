// A stand-in for libclient: see detail/client/call/call.h.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "lrpc/detail/client/call/stub.h"
#include "lrpc/detail/client/remote/group_call.h"

namespace lrpc {

class Binding {
 public:
  static Result<Binding> import(std::string_view /*name*/, const Pdl& pdl, const ImportOptions& options = {}) {
    if (options.server == nullptr) return Errc::name_unknown;
    if (options.server->pdl().interface.hash != pdl.interface.hash) return Errc::hash_mismatch;
    return Binding(std::make_unique<client::BindingObject>(*options.server, pdl));
  }
  static Result<Binding> import_over(UniqueFd /*socket*/, const Pdl& pdl, const ImportOptions& options = {}) {
    return import({}, pdl, options);
  }
  [[nodiscard]] client::BindingObject& object() const noexcept { return *object_; }
  [[nodiscard]] static Result<UniqueFd> offer_callback() { return UniqueFd(); }

 private:
  explicit Binding(std::unique_ptr<client::BindingObject> object) : object_(std::move(object)) {}
  std::unique_ptr<client::BindingObject> object_;
};

}  // namespace lrpc
