// The procedure descriptor list (LRPC §3.1): what stubgen emits for an interface and both libraries work from.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lrpc/detail/shim/result.h"

namespace lrpc {

/// One class of A-stacks: procedures of similar size share them (LRPC §3.1).
struct AStackClass {
  std::uint32_t image_size = 0;  ///< Bytes of argument image each A-stack of the class can hold.
  std::uint32_t tail_size = 0;   ///< Bytes of out-of-band tail behind each; 0 for none.
  std::uint16_t count = 0;       ///< Simultaneous calls: A-stacks of the class.
  friend bool operator==(const AStackClass&, const AStackClass&) = default;
};

/// Which bytes of an image a call or a return makes meaningful: the ranges a remote call sends. Fixed part only;
/// the windows of variable-size parameters are described by the VariableParameter rows.
struct ImageRange {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

/// A `string`/`bytes` parameter. Its length word (uint32) is in the fixed part. A value of up to `inline_capacity`
/// bytes lies in the image at `inline_offset`, a longer one, up to `bound`, in the tail at `tail_offset`. The top bit
/// of the length word (kInTail) says which; both places are constants, so a hostile word can choose between two valid
/// ones, no more.
struct VariableParameter {
  std::uint32_t length_offset = 0;
  std::uint32_t inline_offset = 0;
  std::uint32_t inline_capacity = 0;
  std::uint32_t tail_offset = 0;
  std::uint32_t bound = 0;
  bool in = false;
  bool out = false;
  static constexpr std::uint32_t kInTail = 0x8000'0000;
};

/// One procedure descriptor, the part that both domains know. The entry address is in the server's ServerProcedure.
struct ProcedureDescriptor {
  std::string_view name;
  std::uint16_t astack_class = 0;
  std::uint16_t simultaneous_calls = 5;
  std::uint32_t image_size = 0;  ///< Bytes of the image this procedure uses (≤ its class's).
  bool may_block = false;        ///< Never executed by a poller.
  bool handles = false;          ///< Takes or returns a handle, which is one server's: no group of hosts is called.
  std::uint32_t stack_need = 0;  ///< Bytes of stack that the server's entry stub may take for its copies.
  std::span<const ImageRange> call_ranges{};
  std::span<const ImageRange> return_ranges{};
  std::span<const VariableParameter> variable_parameters{};
  /// What the errors it raises make meaningful, by status - 1: one range each, empty for an error without fields.
  std::span<const ImageRange> raised_ranges{};
};

/// What identifies an interface between two domains that were built apart.
struct InterfaceId {
  std::string_view name;
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  std::uint64_t hash = 0;  ///< Of the canonical declaration; equal hashes mean equal layouts.
};

/// The procedure descriptor list of one interface. Instances are constants emitted by stubgen (static storage).
struct Pdl {
  InterfaceId interface;
  std::span<const AStackClass> classes;
  std::span<const ProcedureDescriptor> procedures;
  std::string_view text;          ///< The canonical declaration, so that a tool can describe the interface.
  const Pdl* callback = nullptr;  ///< Through which the server calls its clients back; null: it does not.
};

/// Fixed limits of a region; a PDL over one of them is refused at export and at generation.
namespace limits {
inline constexpr std::uint32_t kMaxClasses = 64;
inline constexpr std::uint32_t kMaxProcedures = 4096;
inline constexpr std::uint32_t kMaxAStacksPerClass = 1024;
inline constexpr std::uint32_t kMaxImageSize = 64 * 1024;
inline constexpr std::uint32_t kMaxTailSize = 256 * 1024 * 1024;
inline constexpr std::uint64_t kMaxRegionSize = std::uint64_t{1} << 30;
}  // namespace limits

}  // namespace lrpc
