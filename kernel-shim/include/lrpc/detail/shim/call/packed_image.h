// An argument image between hosts (LRPC §5.1): the meaningful bytes of an A-stack in a call, a return or a raised
// error, packed without gaps. Also the encoded descriptors for this, for programs that were not compiled with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/call/region.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::shim {

/// The parts of an A-stack that are sent: the ranges of the fixed part in order, then the values of the variable
/// parameters in this direction. A view into a descriptor.
struct PackedShape {
  std::span<const ImageRange> ranges;
  std::span<const VariableParameter> variables{};
  bool VariableParameter::*goes = nullptr;  ///< &VariableParameter::in or ::out; null only without variables.

  [[nodiscard]] static PackedShape of_call(const ProcedureDescriptor& procedure) noexcept {
    return {procedure.call_ranges, procedure.variable_parameters, &VariableParameter::in};
  }
  [[nodiscard]] static PackedShape of_return(const ProcedureDescriptor& procedure) noexcept {
    return {procedure.return_ranges, procedure.variable_parameters, &VariableParameter::out};
  }
  /// For a return with this status; nullopt if it carries nothing (a failure, or an error that is not declared).
  [[nodiscard]] static std::optional<PackedShape> of_status(const ProcedureDescriptor& procedure,
                                                            std::uint16_t status) noexcept {
    if (status == 0) return of_return(procedure);
    if (status > procedure.raised_ranges.size()) return std::nullopt;
    return PackedShape{.ranges = procedure.raised_ranges.subspan(status - 1U, 1)};
  }

  /// The most bytes that it takes.
  [[nodiscard]] std::uint64_t most() const noexcept;
};

/// The offset among the packed bytes of the word at `offset` of the image; nullopt if no range carries it whole.
[[nodiscard]] std::optional<std::size_t> packed_place(std::span<const ImageRange> ranges,
                                                      std::uint32_t offset) noexcept;

/// The most bytes that a return of `procedure` takes, with any status.
[[nodiscard]] std::uint64_t most_returned(const ProcedureDescriptor& procedure) noexcept;

/// Packs the contents of an A-stack into `out`; returns how many bytes that takes. A peer may change the A-stack
/// meanwhile: each byte is loaded once, and lengths are checked in the copy. nullopt: a length exceeds its bound, or
/// `out` is too small.
[[nodiscard]] std::optional<std::size_t> pack(const PackedShape& shape, const AStack& astack,
                                              std::span<std::byte> out) noexcept;
/// The reverse, from untrusted bytes in private memory. Returns false, and does not touch the A-stack, unless the bytes
/// are exactly as long as their own lengths say, and each length is within its bound.
[[nodiscard]] bool unpack(const PackedShape& shape, std::span<const std::byte> packed, const AStack& astack) noexcept;

/// Encodes the descriptors of an interface: what to take off an A-stack and what to put on it, without names.
[[nodiscard]] std::string encode_descriptors(std::span<const ProcedureDescriptor> procedures);

/// Decoded descriptors, with the memory that they refer to. Movable.
class ReceivedDescriptors {
 public:
  /// Checks untrusted bytes against the classes by which the A-stacks are laid out. In the result, each range and
  /// window of each procedure lies on an A-stack of its class, and each length word in the range that carries it. Fails
  /// with bad_message.
  static Result<ReceivedDescriptors> decode(std::span<const std::byte> bytes, std::span<const AStackClass> classes);

  ReceivedDescriptors(ReceivedDescriptors&&) noexcept = default;
  ReceivedDescriptors& operator=(ReceivedDescriptors&&) noexcept = default;

  [[nodiscard]] std::span<const ProcedureDescriptor> procedures() const noexcept { return procedures_; }

 private:
  ReceivedDescriptors() = default;
  // The elements of a vector stay in place when the vector is moved, so the descriptors may point at them.
  std::vector<ImageRange> ranges_;
  std::vector<VariableParameter> variables_;
  std::vector<ProcedureDescriptor> procedures_;
};

}  // namespace lrpc::shim
