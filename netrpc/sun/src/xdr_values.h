// Converts values between XDR (RFC 4506) and packed images (lrpc/detail/shim/call/packed_image.h), by an interface's
// declaration. So a domain can answer Sun RPC for a server that was compiled without it, and call it for such a client.
// docs/SUNRPC.md has the mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "lrpc/netrpc/xdr.h"
#include "lrpc/stubgen/layout/model.h"

namespace lrpc::sun {

// All of this throws std::bad_alloc alone. Work and memory are bounded by the declaration. Precondition: the procedure
// passes no handles.

/// Memory that a conversion needs, kept for the next one. One thread at a time.
struct Scratch {
  std::vector<std::byte> image;                     ///< The fixed part.
  std::vector<std::span<const std::byte>> windows;  ///< The values of strings and bytes.
};

// ---- for a server ----

/// Turns hostile arguments of `procedure` into their packed image. False: they are not exactly that in XDR, or break a
/// range, an enum or a bound; `packed` then holds anything.
[[nodiscard]] bool pack_arguments(const stubgen::Procedure& procedure, std::span<const std::byte> xdr, Scratch& scratch,
                                  std::vector<std::byte>& packed);
/// Appends what a call returned with `status`, 0 or the number of a declared error, to `xdr`. `packed` is the server's,
/// and hostile: false if it is no such image, or its values do not conform; `xdr` then holds anything.
[[nodiscard]] bool unpack_results(const stubgen::Procedure& procedure, std::uint16_t status,
                                  std::span<const std::byte> packed, Scratch& scratch, netrpc::XdrWriter& xdr);

// ---- for a client ----

/// Appends the arguments in `packed`, which is the client's, and hostile, to `xdr`. False: as unpack_results().
[[nodiscard]] bool unpack_arguments(const stubgen::Procedure& procedure, std::span<const std::byte> packed,
                                    Scratch& scratch, netrpc::XdrWriter& xdr);
/// Turns hostile results into their packed image. The status of the call: 0, or the number of the declared error that
/// was raised. nullopt: as pack_arguments().
[[nodiscard]] std::optional<std::uint16_t> pack_results(const stubgen::Procedure& procedure,
                                                        std::span<const std::byte> xdr, Scratch& scratch,
                                                        std::vector<std::byte>& packed);
/// How long arguments may be in XDR. Types are shared between procedures and nested in each other many times over: each
/// is measured once, so the work on an interface is bounded by the length of its declaration. For one interface, which
/// outlives it.
class ArgumentSizes {
 public:
  /// The most bytes that the arguments of `procedure` take.
  [[nodiscard]] std::uint64_t most(const stubgen::Procedure& procedure);
  /// How many types have been looked at, repetitions included: the work so far.
  [[nodiscard]] std::size_t looked() const noexcept { return looked_; }

 private:
  [[nodiscard]] std::uint64_t most_of(const stubgen::Type& named);

  std::unordered_map<const stubgen::Type*, std::uint64_t> known_;
  std::size_t looked_ = 0;
};

}  // namespace lrpc::sun
