// The procedure descriptor list (LRPC §3.1): stubgen emits it for an interface, and both libraries use it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lrpc/detail/shim/result.h"

namespace lrpc {

namespace detail {
/// Which generated headers fit these headers: those of an lrpc-stubgen with the same number (kStubRevision in
/// stubgen/src/emit/generator.h). Others do not compile. Raise both numbers with each change after which headers that
/// were generated before would compile, but no longer do what they did: a change of what a function does that generated
/// code calls, for example, or of where values lie in an image.
inline constexpr int kStubRevision = 1;
}  // namespace detail

/// A class of A-stacks. Procedures of similar size share a class (LRPC §3.1).
struct AStackClass {
  std::uint32_t image_size = 0;  ///< Bytes of argument image each A-stack of the class can hold.
  std::uint32_t tail_size = 0;   ///< Bytes of out-of-band tail behind each; 0 for none.
  std::uint16_t count = 0;       ///< Simultaneous calls: A-stacks of the class.
  friend bool operator==(const AStackClass&, const AStackClass&) = default;
};

/// Bytes of an image that a call or a return makes meaningful, and that a remote call sends. For the fixed part only:
/// VariableParameter describes the windows of variable-size parameters.
struct ImageRange {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

/// A `string` or `bytes` parameter. Its length word (uint32) is in the fixed part. A value of up to `inline_capacity`
/// bytes lies in the image at `inline_offset`; a longer one, of up to `bound` bytes, in the tail at `tail_offset`. The
/// top bit of the length word (kInTail) says which. Both places are constants, so a forged word can only choose between
/// two valid places.
struct VariableParameter {
  std::uint32_t length_offset = 0;
  std::uint32_t inline_offset = 0;
  std::uint32_t inline_capacity = 0;
  std::uint32_t tail_offset = 0;
  std::uint32_t bound = 0;
  bool in = false;
  bool out = false;
  static constexpr std::uint32_t kInTail = 0x8000'0000;

  /// Whether every value of the parameter lies in the image. Then no tail need exist.
  [[nodiscard]] constexpr bool never_in_tail() const noexcept { return bound <= inline_capacity; }
};

/// The part of a procedure descriptor that both domains know. The server's ServerProcedure has the entry address.
struct ProcedureDescriptor {
  std::string_view name;
  std::uint16_t astack_class = 0;
  std::uint16_t simultaneous_calls = 5;
  std::uint32_t image_size = 0;  ///< Bytes of the image this procedure uses (≤ its class's).
  bool may_block = false;        ///< Never executed by a poller.
  bool handles = false;          ///< Takes or returns a handle. Not for groups of hosts: a handle is one server's.
  std::uint32_t stack_need = 0;  ///< Bytes of stack that the server's entry stub may use for its copies.
  std::span<const ImageRange> call_ranges{};
  std::span<const ImageRange> return_ranges{};
  std::span<const VariableParameter> variable_parameters{};
  /// One range for each error that it raises, by status - 1: the error's fields. Empty for an error without fields.
  std::span<const ImageRange> raised_ranges{};
};

/// Identifies an interface between two domains that were built separately.
struct InterfaceId {
  std::string_view name;
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  std::uint64_t hash = 0;  ///< Hash of the canonical declaration; equal hashes mean equal layouts.
};

/// The procedure descriptor list of one interface. Instances are constants emitted by stubgen (static storage).
struct Pdl {
  InterfaceId interface;
  std::span<const AStackClass> classes;
  std::span<const ProcedureDescriptor> procedures;
  std::string_view text;          ///< The canonical declaration, so that a tool can describe the interface.
  const Pdl* callback = nullptr;  ///< The interface of the server's callbacks to its clients; null: none.
};

/// Fixed limits of a region. stubgen and export refuse a PDL that exceeds one.
namespace limits {
inline constexpr std::uint32_t kMaxClasses = 64;
inline constexpr std::uint32_t kMaxProcedures = 4096;
inline constexpr std::uint32_t kMaxAStacksPerClass = 1024;
inline constexpr std::uint32_t kMaxImageSize = 64 * 1024;
inline constexpr std::uint32_t kMaxTailSize = 256 * 1024 * 1024;
inline constexpr std::uint64_t kMaxRegionSize = std::uint64_t{1} << 30;
}  // namespace limits

}  // namespace lrpc
