// The world in which the nameserver is attacked: its core, an honest server, an honest client, and attackers.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core.h"
#include "input.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::nameserver {

using fuzz::Input;
using fuzz::require;
using shim::BinderMessage;

constexpr std::size_t kSlots = 8;  ///< Connections of attackers.
constexpr uid_t kAttackers[] = {1001, 1002};
constexpr unsigned kConnectionsPerUser = 4;
constexpr std::string_view kHonestName = "honest";

/// Counts those of this process.
std::size_t open_descriptors();
bool printable(std::string_view text);
/// Whether there is something to receive. Cheaper than receiving, which first allocates room for the longest message.
bool anything_from(const UniqueFd& socket);
shim::OwnedInterfaceId honest_interface();

/// The nameserver, an honest server and an honest client; attackers connect and disconnect.
class World {
 public:
  /// Puts its socket into `directory`.
  explicit World(const std::string& directory);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void act(Input& input);
  /// The honest client imports the honest name, and must get it.
  void bind_honestly();
  /// All attackers disconnect. Afterwards all must be as it was before they came.
  void finish();

 private:
  struct Attacker {
    UniqueFd socket;
    std::vector<std::uint64_t> exports;   ///< Ids that it was given.
    std::vector<std::uint64_t> bindings;  ///< Ids it was asked about.
    std::vector<UniqueFd> received;
  };

  UniqueFd connect(uid_t user);
  void ask_honestly();
  std::uint32_t ask(const UniqueFd& client);
  void expect_bound(const UniqueFd& client, std::uint32_t request);
  void expect_served(uid_t user);
  bool step();
  void settle();
  void send(const UniqueFd& socket, std::uint32_t request, shim::BinderBody body);
  std::optional<BinderMessage> receive(const UniqueFd& socket);
  void serve_honestly();
  void listen(Attacker& attacker);
  void say(Input& input, Attacker& attacker);
  shim::BinderBody body(Input& input, const Attacker& attacker);
  static std::string name(Input& input);
  std::vector<UniqueFd> descriptors(Input& input, const Attacker& attacker);
  void transmit(const Attacker& attacker, std::span<const std::byte> bytes, const std::vector<UniqueFd>& fds);

  NameserverOptions options_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Core> core_;
  UniqueFd server_;
  UniqueFd client_;
  std::uint32_t last_request_ = 0;
  std::uint32_t asked_ = 0;  ///< The honest client's request, if it is unanswered and need not be answered yet.
  std::array<Attacker, kSlots> attackers_;
  std::size_t at_rest_ = 0;  ///< Descriptors without any attacker.
};

}  // namespace lrpc::nameserver
