// Calls without stubs: for programs that forward packed images and were not compiled with the interface, such as the
// network domain.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "lrpc/detail/client/import/binding.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/call/packed_image.h"

namespace lrpc::client {

/// A binding whose layout comes from the server's own export instead of generated code. Owns its Binding Object.
/// Movable; any number of threads may call through it at the same time.
class RawBinding {
 public:
  using Described = shim::Described;  // interface and declaration of an export
  using Principal = shim::Principal;  // for whom a network daemon imports

  /// The interface that is exported as `name`, and its declaration, both as the server gives them (hostile). Blocks
  /// until the nameserver answers, at most some 15 s. Uses only `options.nameserver`. Errors: invalid_argument (no
  /// name), no_nameserver, name_unknown, not_permitted, limit_reached, timed_out, bad_message, peer_gone.
  static Result<Described> describe(std::string_view name, const ImportOptions& options);

  /// Binds to `name` as Binding::import() does, on behalf of `principal`. `interface` must be exactly the one that the
  /// principal asks for. Only lrpcd's network daemon may pass a principal; without one the caller imports for itself.
  /// Errors: those of Binding::import(); not_supported (the export has no descriptors).
  static Result<RawBinding> import(std::string_view name, const InterfaceId& interface,
                                   const std::optional<Principal>& principal, const ImportOptions& options);

  /// Unpacks `arguments` (hostile) onto an A-stack, calls, and packs the results into `results`. `size` gets the number
  /// of bytes written: the results (status 0), a raised error, or the text of an error that has one
  /// (call_status::kTold); 0 for every other status. Returns the call status; argument_out_of_range if `arguments` are
  /// not an image of the procedure's arguments. Blocks until an A-stack is free and the procedure has returned, at most
  /// `limit`, which the call carries as a deadline (CallScope); then it returns call_aborted.
  [[nodiscard]] std::uint16_t call(std::uint16_t procedure, std::span<const std::byte> arguments,
                                   std::span<std::byte> results, std::size_t& size,
                                   std::chrono::milliseconds limit) noexcept;
  /// Sends a one-way call. 0, or a failure. It carries `limit`, too.
  [[nodiscard]] std::uint16_t send(std::uint16_t procedure, std::span<const std::byte> arguments,
                                   std::chrono::milliseconds limit = kNoLimit) noexcept;

  /// Ends the binding as if the server had ended: calls that are under way in other threads return call_failed, and
  /// their procedures learn that nobody waits for them. Called by the owner, once. May wait for the library's watcher.
  void end() noexcept;

  [[nodiscard]] std::span<const ProcedureDescriptor> procedures() const noexcept { return descriptors_.procedures(); }
  [[nodiscard]] bool revoked() const noexcept { return binding_.revoked(); }

 private:
  RawBinding(Binding binding, shim::ReceivedDescriptors descriptors) noexcept
      : binding_(std::move(binding)), descriptors_(std::move(descriptors)) {}

  Binding binding_;
  shim::ReceivedDescriptors descriptors_;
};

}  // namespace lrpc::client
