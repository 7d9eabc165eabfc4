// The messages to and from rpcbind (RFC 1833 §2.1, §3.1; RFC 5531 §9, §11). No system call, no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/netrpc/rpcbind.h"

namespace lrpc::netrpc::rpcbind {

inline constexpr std::uint32_t kProgram = 100000;
inline constexpr std::uint16_t kPort = 111;
/// A procedure has the same number in all versions that have it.
enum class Procedure : std::uint32_t { set = 1, unset = 2, port_of = 3, dump = 4 };
/// The versions of rpcbind that we use: from 2 (the port mapper) to 4.
inline constexpr std::uint32_t kPortMapper = 2;
inline constexpr std::uint32_t kNewest = 4;

/// "127.0.0.1.0.111": a host and a port (RFC 5665 §5.2.3.3).
[[nodiscard]] std::string universal_address(HostAddress host, std::uint16_t port);
/// The port of a universal address; 0: it has none, for example because it is empty. Nullopt: it is not IPv4's.
[[nodiscard]] std::optional<std::uint16_t> port_of(std::string_view address) noexcept;

/// Arguments of Procedure::port_of in a version of rpcbind, and the port in its results (0: not registered).
[[nodiscard]] std::vector<std::byte> lookup(std::uint32_t rpcbind_version, std::uint32_t program, std::uint32_t version,
                                            SunTransport transport = SunTransport::udp);
[[nodiscard]] std::optional<std::uint16_t> found(std::uint32_t rpcbind_version, std::span<const std::byte> results);

/// A whole call of version 4 to the local rpcbind, marked as one record: to register, to unregister, or to list all.
[[nodiscard]] std::vector<std::byte> local_call(Procedure procedure, std::uint32_t xid, const SunProgram& served);
/// More bytes than any answer to local_call() has: a list of some thousand entries.
inline constexpr std::size_t kMostAnswer = 256 * 1024;
/// The results in the record of an answer. Errors: bad_message (none to the call `xid`), not_permitted (denied),
/// version_mismatch, call_failed.
[[nodiscard]] Result<std::span<const std::byte>> results_of(std::span<const std::byte> record, std::uint32_t xid);
/// Whether rpcbind has done a set or unset, by its results. Nullopt: they are malformed.
[[nodiscard]] std::optional<bool> done(std::span<const std::byte> results) noexcept;
/// Whether the results of dump list `served` at its address. False also if they are malformed.
[[nodiscard]] bool lists(std::span<const std::byte> results, const SunProgram& served);

}  // namespace lrpc::netrpc::rpcbind
