// Users of the nameserver, and clients of a server, that do what costs others most.
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
  ask,      ///< Keep kConnections connections each, send all requests that they can, and read no answer.
  connect,  ///< Connect and close at once, again and again; every other connection leaves unread messages behind.
  close,    ///< Again and again, a client of the server sends it a descriptor whose close(2) waits (a socket that
            ///< lingers), and disconnects.
  close_laden,
  close_stuck,  ///< The same with the other kinds (slow_to_close.h).
};
[[nodiscard]] constexpr Slow slow_of(Attack attack) noexcept {
  return attack == Attack::close_laden ? Slow::laden : attack == Attack::close_stuck ? Slow::stuck : Slow::lingering;
}

/// Users that make one kind of attack, in turn, all played by one process.
class HostileUsers {
 public:
  /// How many connections each user keeps (Attack::ask) or makes in a turn (Attack::connect), unless the nameserver
  /// refuses some.
  static constexpr std::size_t kConnections = 64;

  /// `stuck_path`: that of a StuckFile, for close_stuck.
  HostileUsers(std::string nameserver, uid_t first, uid_t users, Attack attack, const std::string& stuck_path)
      : nameserver_(std::move(nameserver)),
        first_(first),
        attack_(attack),
        connections_(users),
        slow_(slow_of(attack), stuck_path) {}

  /// Attacks for ever; needs root. Ends the process with status 1 if it cannot become these users.
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
