// A binding into whose region the test itself writes the calls.
#pragma once

#include <memory>
#include <utility>

#include "call/served_binding.h"
#include "users.h"

namespace lrpc::server {

/// Of kAlice. Null: memory or descriptors are lacking.
inline std::shared_ptr<ServedBinding> binding_without_client(std::shared_ptr<const ServedInterface> interface) {
  auto region = shim::Region::private_to_this_domain(*shim::RegionLayout::of(interface->pdl->classes));
  auto bells = shim::make_socket_pair();
  if (!region || !bells) return nullptr;
  ServedParts parts;
  parts.client = {1, kAlice, kAlice};
  parts.handles = std::make_shared<HandleCount>(1);
  parts.region = *std::move(region);
  parts.bell = std::move(bells->first);
  parts.interface = std::move(interface);
  return std::make_shared<ServedBinding>(std::move(parts));
}

}  // namespace lrpc::server
