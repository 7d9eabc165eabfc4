// Users of the nameserver, and clients of a server, who do what costs others most.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"
#include "slow_to_close.h"

namespace lrpc::bench {

enum class Attack : std::uint8_t {
  ask,      ///< All connections that there are to be had ask for all that can be asked, and read no answer.
  connect,  ///< Connections come and go, half of them with unread messages.
  close,    ///< A client of the server sends what waits when it is closed, a socket that lingers, and goes.
  close_laden,
  close_stuck,  ///< The same with the other kinds (slow_to_close.h).
};
[[nodiscard]] constexpr Slow slow_of(Attack attack) noexcept {
  return attack == Attack::close_laden ? Slow::laden : attack == Attack::close_stuck ? Slow::stuck : Slow::lingering;
}

/// Of one kind, one after the other, by one process.
class HostileUsers {
 public:
  /// The limit of a nameserver's user that counts here. Each user keeps as many connections.
  static constexpr std::size_t kConnections = 64;

  /// `stuck_path`: of a StuckFile, for close_stuck.
  HostileUsers(std::string nameserver, uid_t first, uid_t users, Attack attack, const std::string& stuck_path)
      : nameserver_(std::move(nameserver)),
        first_(first),
        attack_(attack),
        connections_(users),
        slow_(slow_of(attack), stuck_path) {}

  /// Needs to be root. Ends the process, with 1, if it cannot be these users.
  [[noreturn]] void live();

 private:
  void attack(std::vector<UniqueFd>& connections);
  void ask(std::vector<UniqueFd>& connections);
  void connect();
  void leave_what_is_slow_to_close();
  bool send(const UniqueFd& to, shim::BinderBody body);

  const std::string nameserver_;
  const uid_t first_;
  const Attack attack_;
  std::vector<std::vector<UniqueFd>> connections_;
  SlowThings slow_;
  std::uint32_t request_ = 0;
};

}  // namespace lrpc::bench
