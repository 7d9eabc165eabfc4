#include "sun/sun_failures.h"

#include <fmt/format.h>

#include "lrpc/netrpc/xdr.h"

namespace lrpc::netd {

Errc import_error(Errc outcome) noexcept {
  switch (outcome) {
    case Errc::name_unknown:
    case Errc::version_mismatch:
    case Errc::not_permitted:
    case Errc::not_supported:
    case Errc::message_too_long:
    case Errc::limit_reached: return outcome;
    default: return Errc::remote_unavailable;
  }
}

Errc call_error(Errc outcome) noexcept {
  switch (outcome) {
    case Errc::call_aborted:
    case Errc::call_lost:
    case Errc::bad_procedure:
    case Errc::argument_out_of_range:
    case Errc::not_permitted:
    case Errc::not_supported:
    case Errc::message_too_long:
    case Errc::limit_reached: return outcome;
    case Errc::call_cancelled: return Errc::call_aborted;
    default: return Errc::call_failed;  // an earlier copy of the request may have been executed
  }
}

std::string why_failed(Errc outcome, std::uint32_t version, std::span<const std::byte> reply) {
  switch (outcome) {
    case Errc::name_unknown: return "Sun RPC: the program is not there (PROG_UNAVAIL)";
    case Errc::version_mismatch: {
      netrpc::XdrReader reader(reply);
      const std::uint32_t lowest = reader.word();
      const std::uint32_t highest = reader.word();
      if (!reader.at_end()) return "Sun RPC: the program is there in other versions (PROG_MISMATCH)";
      return fmt::format("Sun RPC: the program is there in versions {} to {}, not {} (PROG_MISMATCH)", lowest, highest,
                         version);
    }
    case Errc::bad_procedure: return "Sun RPC: the program has no such procedure (PROC_UNAVAIL)";
    case Errc::argument_out_of_range: return "Sun RPC: the server cannot decode the arguments (GARBAGE_ARGS)";
    case Errc::not_permitted: return "Sun RPC: the server refuses the credential (AUTH_ERROR)";
    case Errc::not_supported: return "Sun RPC: the server speaks another version of RPC (RPC_MISMATCH)";
    case Errc::host_unreachable: return "Sun RPC: there is no way to the host";
    case Errc::message_too_long: return "Sun RPC: the arguments are longer than a message";
    case Errc::call_failed: return "Sun RPC: the server does not answer, or has failed (SYSTEM_ERR)";
    case Errc::call_aborted:
    case Errc::call_cancelled: return {};
    default: return "Sun RPC: " + std::string(describe(outcome));
  }
}

bool may_have_moved(Errc outcome) noexcept {
  switch (outcome) {
    case Errc::call_failed:
    case Errc::call_aborted:
    case Errc::call_cancelled:
    case Errc::name_unknown:
    case Errc::version_mismatch: return true;
    default: return false;
  }
}

}  // namespace lrpc::netd
