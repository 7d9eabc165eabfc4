// Calls without stubs: for who forwards packed images and was not compiled with the interface, as the network domain
// does.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "lrpc/client/import/binding.h"
#include "lrpc/shim/binder/binder_protocol.h"
#include "lrpc/shim/call/packed_image.h"

namespace lrpc::client {

/// A binding whose layout comes from the server's own export instead of generated code. Owns its Binding Object.
/// Movable; any number of threads may call through it at the same time.
class RawBinding {
 public:
  /// What is exported as `name`: which interface, and its declaration, both as the server says (hostile). Blocks as long
  /// as the nameserver takes to answer, at most a few seconds. Of `options` only `nameserver` counts. Errors:
  /// invalid_argument (no name), no_nameserver, name_unknown, not_permitted, timed_out, bad_message, peer_gone.
  static Result<shim::Described> describe(std::string_view name, const ImportOptions& options);

  /// Binds to `name` as Binding::import() does, on behalf of `principal`, who must be asking for exactly `interface`.
  /// Only the process that exports shim::kNetworkName may have a principal; without one it imports for itself. Errors:
  /// those of Binding::import(); not_supported (the export has no descriptors).
  static Result<RawBinding> import(std::string_view name, const InterfaceId& interface,
                                   const std::optional<shim::Principal>& principal, const ImportOptions& options);

  /// Unpacks `arguments` (hostile) onto an A-stack, makes the call, packs what it returned into `results`; `size` says
  /// how much that is, 0 unless the status is 0 or a raised error's. Of an error with a text (call_status::kTold), the
  /// text. Returns the call status; argument_out_of_range if the arguments are no image of the procedure's. Blocks for
  /// as long as the procedure runs, and before that for an A-stack, at most `limit`: the call carries
  /// that deadline, as in a CallScope. call_aborted after it.
  [[nodiscard]] std::uint16_t call(std::uint16_t procedure, std::span<const std::byte> arguments,
                                   std::span<std::byte> results, std::size_t& size,
                                   std::chrono::milliseconds limit) noexcept;
  /// Sends a one-way call. 0, or a failure. It carries `limit`, too.
  [[nodiscard]] std::uint16_t send(std::uint16_t procedure, std::span<const std::byte> arguments,
                                   std::chrono::milliseconds limit = kNoLimit) noexcept;

  [[nodiscard]] std::span<const ProcedureDescriptor> procedures() const noexcept { return descriptors_.procedures(); }
  [[nodiscard]] bool revoked() const noexcept { return binding_.revoked(); }

 private:
  RawBinding(Binding binding, shim::ReceivedDescriptors descriptors) noexcept
      : binding_(std::move(binding)), descriptors_(std::move(descriptors)) {}

  Binding binding_;
  shim::ReceivedDescriptors descriptors_;
};

}  // namespace lrpc::client
