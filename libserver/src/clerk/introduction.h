// How a clerk describes an interface to a nameserver, and how it binds a client that the nameserver introduces.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "call/served_binding.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::server {

class Bindings;

[[nodiscard]] shim::BinderMessage export_request(std::uint32_t number, const std::string& name, const Pdl& pdl);
/// Why an export was not granted, if `answer` is not Exported.
[[nodiscard]] Error why_not(const shim::BinderMessage& answer);
/// Makes a binding to `interface` for the client of a bind request, and returns its id. `nameserver`: the socket over
/// which the request has come. On the watcher's thread. Throws std::bad_alloc.
[[nodiscard]] Result<std::uint64_t> bind_introduced(Bindings& bindings,
                                                    const std::shared_ptr<const ServedInterface>& interface,
                                                    int nameserver, shim::BinderMessage& message);

}  // namespace lrpc::server
