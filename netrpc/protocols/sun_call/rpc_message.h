// The numbers of Sun RPC's messages (RFC 5531 §9), for the layers that a message is made of.
//
//   call:   xid, CALL    | rpcvers, prog, vers, proc | cred, verf | arguments
//   reply:  xid, REPLY   | MSG_ACCEPTED              | verf       | accept_stat | results
//           xid, REPLY   | MSG_DENIED, reject_stat and its numbers
//   layer:  REQUEST_REPLY  SUN_CALL                    AUTH_*       SUN_SELECT
#pragma once

#include <cstdint>

#include "lrpc/detail/shim/result.h"
#include "lrpc/netrpc/map.h"
#include "lrpc/netrpc/participant_set.h"

namespace lrpc::netrpc::sun {

inline constexpr std::uint32_t kRpcVersion = 2;

/// Names a procedure (RFC 5531 §8).
struct ProcedureKey {
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::uint32_t procedure = 0;

  [[nodiscard]] static ProcedureKey of(const Participant& one) noexcept {
    return {one.program, one.version, one.procedure};
  }
  [[nodiscard]] std::uint64_t hash() const noexcept {
    return mix(mix(0, program), std::uint64_t{version} << 32 | procedure);
  }
  friend bool operator==(const ProcedureKey&, const ProcedureKey&) = default;
};

enum class ReplyStat : std::uint32_t { accepted = 0, denied = 1 };
enum class RejectStat : std::uint32_t { rpc_mismatch = 0, auth_error = 1 };
enum class AcceptStat : std::uint32_t {
  success = 0,
  prog_unavail = 1,   ///< Nobody serves the program here,
  prog_mismatch = 2,  ///< or not in this version: the lowest and the highest follow;
  proc_unavail = 3,   ///< it has no such procedure.
  garbage_args = 4,
  system_err = 5,
};
/// The outcome that an accept_stat means to a client. A peer may send any number.
[[nodiscard]] constexpr Errc outcome_of(std::uint32_t stat) noexcept {
  switch (static_cast<AcceptStat>(stat)) {
    case AcceptStat::success: return Errc::ok;
    case AcceptStat::prog_unavail: return Errc::name_unknown;
    case AcceptStat::prog_mismatch: return Errc::version_mismatch;
    case AcceptStat::proc_unavail: return Errc::bad_procedure;
    case AcceptStat::garbage_args: return Errc::argument_out_of_range;
    default: return Errc::call_failed;
  }
}
enum class AuthFlavor : std::uint32_t { none = 0, sys = 1 };
enum class AuthStat : std::uint32_t {
  ok = 0,
  bad_cred = 1,
  rejected_cred = 2,
  bad_verf = 3,
  rejected_verf = 4,
  too_weak = 5,
  failed = 7,
};

/// The most bytes of a credential or verifier (RFC 5531 §8.2).
inline constexpr std::uint32_t kMostAuthBytes = 400;

}  // namespace lrpc::netrpc::sun
