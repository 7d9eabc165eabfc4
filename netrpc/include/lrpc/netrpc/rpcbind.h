// rpcbind (RFC 1833): with it the Sun RPC programs of a host register their ports, and clients ask it for them. For
// threads that set up or look up a server: everything here blocks. docs/SUNRPC.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "lrpc/netrpc/address.h"
#include "lrpc/netrpc/clock.h"
#include "lrpc/netrpc/protocol.h"
#include "lrpc/shim/result.h"

namespace lrpc::netrpc {

/// A version of a Sun RPC program, and the UDP port where it is served.
struct SunProgram {
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::uint16_t port = 0;
  HostAddress host{};  ///< Where it can be reached; unknown: at all addresses of this host.
};

struct RpcbindOptions {
  std::string socket = "/run/rpcbind.sock";    ///< Of the local rpcbind, which learns by it which user asks.
  Duration timeout = std::chrono::seconds(5);  ///< Bound on the time that a function here takes.
  /// First takes back what is registered for this program and version, as the servers that rpcgen makes do: a server
  /// that crashed leaves its registration behind. Else a registration that exists is name_taken.
  bool replaces = true;
};

/// What rpcbind tells the clients on this host and others, from make() on until its end. Clients see it in versions 2,
/// 3 and 4 of rpcbind. Move-only; used by one thread at a time.
class RpcbindRegistration {
 public:
  /// Registers `served`. Blocks up to `options.timeout`. Errors: no_nameserver (no rpcbind runs here), name_taken (also
  /// where another user has registered it), timed_out, bad_message, peer_gone, not_permitted, system_error.
  [[nodiscard]] static Result<RpcbindRegistration> make(const SunProgram& served, const RpcbindOptions& options = {});
  RpcbindRegistration(RpcbindRegistration&& other) noexcept;
  RpcbindRegistration& operator=(RpcbindRegistration&& other) noexcept;
  /// Takes it back. Blocks up to the timeout.
  ~RpcbindRegistration();

 private:
  RpcbindRegistration(const SunProgram& served, RpcbindOptions options);
  SunProgram served_;  ///< Program 0: moved from.
  RpcbindOptions options_;
};

/// Asks the rpcbind of `host`, at UDP port 111, for the port of a version of a program: in rpcbind's version 4, else 3,
/// else 2. `sun`: a SUN_SELECT over UDP(peer_ports = any), through which `user` calls. The thread is not inside the
/// monitor. Blocks up to `timeout`. Errors: name_unknown (no such program there), bad_message, those of calls.
/// rpcbind may know only another version of the program: a call to that ends with version_mismatch.
[[nodiscard]] Result<std::uint16_t> rpcbind_port(Protocol& sun, Protocol& user, HostAddress host, std::uint32_t program,
                                                 std::uint32_t version, Duration timeout = std::chrono::seconds(5));

}  // namespace lrpc::netrpc
