// Where this machine's clients and the Sun RPC programs of other hosts meet: clients know nothing of Sun RPC; their
// values are turned into XDR here (netrpc/sun), and calls go out through SUN_SELECTs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "declarations.h"
#include "found_ports.h"
#include "lrpc/detail/shim/shares.h"
#include "lrpc/netrpc/blocking_call.h"
#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/path/foreign.h"
#include "lrpc/netrpc/xdr.h"
#include "sun/sun_programs.h"

namespace lrpc::netd {

class SunClient final : public netrpc::Protocol, public netpath::ForeignServers {
 public:
  /// SUN_SELECTs with peers at any port; null: none of `imports` uses that transport.
  struct Below {
    netrpc::Protocol* udp = nullptr;
    netrpc::Protocol* tcp = nullptr;
  };
  /// `imports`: no two of them have the same name and host. Inside the monitor.
  SunClient(netrpc::Host& host, Below below, std::vector<SunImport> imports);

  /// Makes UDP's socket, before the sandbox forbids that. Inside the monitor. Errors: those of open().
  Status open_sockets();
  /// Calls under way end with call_failed, and all later ones. Not inside the monitor.
  void stop_calling() noexcept;

  // ---- ForeignServers ----
  [[nodiscard]] bool knows(std::string_view name, std::string_view host) const noexcept override;
  [[nodiscard]] Result<std::unique_ptr<netpath::ForeignBinding>> bind(Wanted& wanted) override;

 private:
  /// A version of a program, and where it is.
  struct Place {
    netrpc::HostAddress host;
    std::uint16_t port = 0;
    std::uint32_t program = 0;
    std::uint32_t version = 0;
    netrpc::SunTransport transport = netrpc::SunTransport::udp;
  };
  /// For whom another host is asked, and until when. `caller` null: for nobody who could go.
  struct Asker {
    uid_t user = 0;
    const CallContext* caller = nullptr;
    netrpc::Time until = netrpc::Time::max();
  };
  class Binding;
  class Asking;

  [[nodiscard]] const SunImport* find(std::string_view name, std::string_view host) const noexcept;
  [[nodiscard]] netrpc::Protocol& below(netrpc::SunTransport transport) const noexcept {
    return transport == netrpc::SunTransport::tcp ? *below_.tcp : *below_.udp;
  }
  /// All who ask share the answers. Errors have a text for the importing program. `at`: "host 'NAME'".
  [[nodiscard]] Result<std::uint16_t> ask_rpcbind(const Place& place, const std::string& at, const Asker& asker);
  [[nodiscard]] Status fits(const stubgen::Interface& interface, const Place& place, const std::string& at);
  [[nodiscard]] Status ping(const Place& place, const std::string& at, uid_t user);
  /// Calls a procedure by its number in Sun RPC. `reply`: the results; of a version_mismatch what
  /// Transaction::completed() says. `sent` becomes true before anything is sent. Blocks, at most until the asker's
  /// deadline and as long as REQUEST_REPLY waits, and not much longer than the asker's caller waits. Errors, besides
  /// those of completed(): call_aborted (the deadline), call_cancelled. Throws std::bad_alloc.
  [[nodiscard]] Errc call(const Place& place, std::uint32_t number, netrpc::XdrWriter arguments, const Asker& asker,
                          std::vector<std::byte>& reply, bool& sent);
  /// `asker`, with a deadline at most kPatience from now.
  [[nodiscard]] Asker patient(const Asker& asker) const;
  /// Whether nobody waits for the answer. Inside the monitor.
  [[nodiscard]] bool gone(const Asker& asker) const { return !calling_ || (asker.caller && asker.caller->abandoned()); }

  const Below below_;
  const std::vector<SunImport> imports_;
  sun::Declarations declarations_;
  // Inside the monitor.
  bool calling_ = true;
  shim::UserShares buffers_;  ///< Bytes of the requests under way.
  sun::FoundPorts ports_;
  std::set<std::pair<sun::FoundPorts::Program, std::uint32_t>>
      asking_;  ///< Programs and versions that rpcbind is being asked for.
};

}  // namespace lrpc::netd
