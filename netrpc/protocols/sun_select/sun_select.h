// SUN_SELECT: finds the server for a program, version and procedure, and says whether a call was accepted (RPC in the
// x-Kernel §5; RFC 5531 §9, accept_stat). SUN_CALL below it carries the numbers; docs/SUNRPC.md says why.
#pragma once

#include <memory>
#include <string>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

/// For users that have commands instead (lrpc-netd): the program whose procedures these are. 0: there are no such
/// users.
struct SunSelectOptions {
  std::uint32_t program = 0;
  std::uint32_t version = 1;
};

/// Makes a SUN_SELECT over `below`: AUTH_NONE, AUTH_SYS or SUN_CALL. `open` with participants.remote.host, program,
/// version and procedure. Calls are completed with name_unknown (no such program there), version_mismatch,
/// bad_procedure, argument_out_of_range (the arguments could not be decoded), not_permitted (the credential) or
/// call_failed. `open_enable` with participants.local.program, version and procedure; 0: all that nobody else has
/// enabled. Procedure 0, which does nothing, is answered here. To refuse a request: control::Refuse. A request that is
/// dropped without a reply fails (system_err). control::ClaimedUser is answered as long as somebody refers to the
/// server's session.
[[nodiscard]] std::unique_ptr<Protocol> make_sun_select(Host& host, std::string name, Protocol& below,
                                                        const SunSelectOptions& options = {});
[[nodiscard]] ProtocolKind sun_select_kind();

}  // namespace lrpc::netrpc
