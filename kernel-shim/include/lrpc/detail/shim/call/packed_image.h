// An argument image between hosts (LRPC §5.1): the bytes of an A-stack that are meaningful in a call, a return or a
// raised error, one behind the other. Also the descriptors for this as bytes, for programs that were not compiled with
// them.
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

/// The parts of an A-stack that travel: the ranges of the fixed part in their order, then the values of the variable
/// parameters that go in this direction. A view into a descriptor.
struct PackedShape {
  std::span<const ImageRange> ranges;
  std::span<const VariableParameter> variables;
  bool VariableParameter::*goes = nullptr;  ///< &VariableParameter::in or ::out; null: none of them.

  [[nodiscard]] static PackedShape of_call(const ProcedureDescriptor& procedure) noexcept {
    return {procedure.call_ranges, procedure.variable_parameters, &VariableParameter::in};
  }
  [[nodiscard]] static PackedShape of_return(const ProcedureDescriptor& procedure) noexcept {
    return {procedure.return_ranges, procedure.variable_parameters, &VariableParameter::out};
  }
  /// Of the error with this index, from 1; nullopt if the procedure does not raise it.
  [[nodiscard]] static std::optional<PackedShape> of_raised(const ProcedureDescriptor& procedure,
                                                            std::uint16_t index) noexcept {
    if (index == 0 || index > procedure.raised_ranges.size()) return std::nullopt;
    return PackedShape{procedure.raised_ranges.subspan(index - 1U, 1), {}, nullptr};
  }
  /// What a return with this status carries; nullopt: nothing (it failed, or no such error is declared).
  [[nodiscard]] static std::optional<PackedShape> of_status(const ProcedureDescriptor& procedure,
                                                            std::uint16_t status) noexcept {
    return status == 0 ? of_return(procedure) : of_raised(procedure, status);
  }

  /// Bytes that it takes at most.
  [[nodiscard]] std::uint64_t most() const noexcept;
};

/// Bytes that a return of `procedure` takes at most, whatever its status.
[[nodiscard]] std::uint64_t most_returned(const ProcedureDescriptor& procedure) noexcept;

/// Packs what lies on an A-stack; how many bytes of `out` that takes. The A-stack may be a peer's to change meanwhile:
/// each byte is loaded once, lengths are judged by the copy. nullopt: a length breaks its bound, or `out` is too small.
[[nodiscard]] std::optional<std::size_t> pack(const PackedShape& shape, const AStack& astack,
                                              std::span<std::byte> out) noexcept;
/// The reverse, from hostile bytes in private memory. Returns false, and leaves the A-stack untouched, unless the bytes
/// are exactly as long as their own lengths say, with each length within its bound.
[[nodiscard]] bool unpack(const PackedShape& shape, std::span<const std::byte> packed, const AStack& astack) noexcept;

/// The descriptors of an interface as bytes: what to take off an A-stack and to put on it, without the names.
[[nodiscard]] std::string encode_descriptors(std::span<const ProcedureDescriptor> procedures);

/// Descriptors that came as bytes. Owns what they refer to. Movable.
class ReceivedDescriptors {
 public:
  /// Checks hostile bytes against the classes that the A-stacks are really laid out by: afterwards every range and
  /// window of every procedure lies on an A-stack of its class, and every length word in the range that carries it.
  /// bad_message.
  static Result<ReceivedDescriptors> decode(std::span<const std::byte> bytes, std::span<const AStackClass> classes);

  ReceivedDescriptors(ReceivedDescriptors&&) noexcept = default;
  ReceivedDescriptors& operator=(ReceivedDescriptors&&) noexcept = default;
  ReceivedDescriptors(const ReceivedDescriptors&) = delete;
  ReceivedDescriptors& operator=(const ReceivedDescriptors&) = delete;
  ~ReceivedDescriptors() = default;

  [[nodiscard]] std::span<const ProcedureDescriptor> procedures() const noexcept { return procedures_; }

 private:
  ReceivedDescriptors() = default;
  // A vector's elements stay where they are when it is moved: the descriptors may point at them.
  std::vector<ImageRange> ranges_;
  std::vector<VariableParameter> variables_;
  std::vector<ProcedureDescriptor> procedures_;
};

}  // namespace lrpc::shim
