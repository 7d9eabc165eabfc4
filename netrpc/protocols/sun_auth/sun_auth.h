// AUTH_NONE and AUTH_SYS: Sun RPC's authentication flavours as optional layers (RPC in the x-Kernel §5; RFC 5531 §8.2
// and §10, appendix A): the credential and the verifier of a call, the verifier of a reply. Neither proves anything.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

/// The identity that AUTH_SYS puts into this host's calls.
struct AuthSysOptions {
  std::string machine{};  ///< At most 64 bytes; empty: the host's name in the graph.
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> gids{};  ///< At most 16.
};

/// Makes AUTH_NONE over `below`, a SUN_CALL: calls have an empty credential. The server accepts AUTH_SYS, too, and
/// ignores it; it denies other flavours.
[[nodiscard]] std::unique_ptr<Protocol> make_auth_none(Host& host, std::string name, Protocol& below);
/// Makes AUTH_SYS over `below`: calls have its credential. The server accepts nothing else, except for procedure 0. The
/// layer above may ask its session for control::ClaimedUser inside call_demux, before it leaves the monitor. Errors:
/// invalid_argument.
[[nodiscard]] Result<std::unique_ptr<Protocol>> make_auth_sys(Host& host, std::string name, Protocol& below,
                                                              AuthSysOptions options);
[[nodiscard]] ProtocolKind auth_none_kind();
/// AUTH_SYS(machine = "box", uid = 1000, gid = 1000, gids = "4,27"); uid and gid: by default those of the process.
[[nodiscard]] ProtocolKind auth_sys_kind();

}  // namespace lrpc::netrpc
