// rpcbind (RFC 1833): with it the Sun RPC programs of a host register their ports, and clients ask it for them. For
// threads that set up or look up a server: everything here blocks. docs/SUNRPC.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "lrpc/detail/shim/result.h"
#include "lrpc/netrpc/address.h"
#include "lrpc/netrpc/clock.h"
#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc {

/// Over IPv4.
enum class SunTransport : std::uint8_t { udp, tcp };

/// A version of a Sun RPC program, and the port where it is served.
struct SunProgram {
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::uint16_t port = 0;
  HostAddress host{};  ///< Where clients call it; unknown: any address of this host. rpcbind checks neither.
  SunTransport transport = SunTransport::udp;
};

struct RpcbindOptions {
  std::string socket = "/run/rpcbind.sock";    ///< Of the local rpcbind, which learns the caller's user from it.
  Duration timeout = std::chrono::seconds(5);  ///< Bound on the time that a function here takes; at most a day.
  /// First removes what is registered for this program, version and transport, as servers made by rpcgen do: a server
  /// that has crashed leaves its registration behind. Root removes everybody's registrations, others only their own.
  bool replaces = true;
};

/// A registration with rpcbind, from make() to its destruction. Clients on this host and others see it in versions 2, 3
/// and 4 of rpcbind. Make it when the program is served already. A restart of rpcbind loses it. Move-only; used by one
/// thread at a time.
class RpcbindRegistration {
 public:
  /// Registers `served`. Blocks up to `options.timeout`. Errors: invalid_argument (no program, no port, the socket's
  /// path), no_nameserver (no rpcbind runs here), name_taken (it is registered at another address, and stays),
  /// not_permitted, version_mismatch (rpcbind has no version 4), call_failed, bad_message, system_error; timed_out and
  /// peer_gone: rpcbind may register it all the same.
  [[nodiscard]] static Result<RpcbindRegistration> make(const SunProgram& served, const RpcbindOptions& options = {});
  RpcbindRegistration(RpcbindRegistration&& other) noexcept;
  /// First ends the former registration, as the destructor does.
  RpcbindRegistration& operator=(RpcbindRegistration&& other) noexcept;
  /// Removes the registration, unless another server has replaced it, or there is no memory for what rpcbind lists. One
  /// that replaces it at this very moment may be removed, too: rpcbind has no call that checks and removes. Blocks up
  /// to the timeout.
  ~RpcbindRegistration();
  /// The same for all of these, which are then as if moved from. Blocks up to `timeout` in all: if rpcbind does not
  /// answer, it keeps its entries.
  static void end_all(std::span<RpcbindRegistration> registrations,
                      Duration timeout = std::chrono::seconds(5)) noexcept;

 private:
  RpcbindRegistration(const SunProgram& served, RpcbindOptions options);
  void end(Time until) noexcept;
  SunProgram served_;  ///< Program 0: moved from.
  RpcbindOptions options_;
};

/// Asks the rpcbind of `host`, at port 111, for the port of a version of a program over `transport`: in rpcbind's
/// version 4, else 3, else 2. `sun`: a SUN_SELECT over UDP(peer_ports = any) or TCP. `user`: any protocol of the same
/// host; the session is opened for it. `gone`: see call_and_wait_inside(). The calling thread must not be inside the
/// monitor. Blocks up to `timeout`. Errors: name_unknown (the program is not registered, or there is no rpcbind at that
/// port), version_mismatch (no version of rpcbind in common), bad_message, limit_reached, call_aborted (timeout),
/// call_cancelled (`gone`), those of Protocol::open() and Transaction::completed().
/// If rpcbind knows only another version of the program, it may return that one's port: a call to it ends with
/// version_mismatch.
[[nodiscard]] Result<std::uint16_t> rpcbind_port(
    Protocol& sun, Protocol& user, HostAddress host, std::uint32_t program, std::uint32_t version,
    Duration timeout = std::chrono::seconds(5), SunTransport transport = SunTransport::udp,
    const std::function<bool()>& gone = [] { return false; });

}  // namespace lrpc::netrpc
