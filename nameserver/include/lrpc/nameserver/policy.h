// Who may export and import which names, and how much of a nameserver one user may take. docs/POLICY.md.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lrpc/shim/binder/binder_protocol.h"
#include "lrpc/shim/call/region.h"
#include "lrpc/shim/result.h"

namespace lrpc::nameserver {

/// Who is at the other end of a connection: the kernel's word, as of when it connected.
struct Peer : Credentials {
  /// Supplementary groups; none where the kernel does not tell.
  std::optional<std::vector<gid_t>> groups = {};
  [[nodiscard]] bool is_member_of(gid_t group) const noexcept;
};

/// What all connections of one user may take together, while there is enough for the others (Limits). kNoLimit:
/// no limit; 0: nothing.
struct UserQuota {
  std::size_t connections = 512;
  std::size_t names = 1024;                              ///< Exported now.
  std::uint64_t declaration_bytes = 32U << 20;           ///< Of the declarations of those names.
  std::size_t imports = 512;                             ///< That wait for a name, for their turn or for a clerk.
  std::uint64_t region_bytes = std::uint64_t{64} << 30;  ///< Of regions made for its imports and not handed over yet.
  std::size_t descriptors_in_flight = 384;               ///< Sent to it and not read yet.
  std::size_t binds = 512;                               ///< Of its imports, those that a clerk is being asked about.
  friend bool operator==(const UserQuota&, const UserQuota&) = default;
};

/// Who may do what. Asked on the event loop's thread: must not block, must throw nothing but std::bad_alloc, and must
/// be quick. A refusal's text reaches the peer.
class Policy {
 public:
  virtual ~Policy() = default;
  [[nodiscard]] virtual Status may_export(const Peer& server, std::string_view name) = 0;
  /// Asked when the import arrives, and once more when the exporter is about to be asked: the policy may have changed
  /// while the import waited. `server` is null as long as nobody exports the name. Of its supplementary groups nothing
  /// is said: those of two peers may take half a megabyte.
  [[nodiscard]] virtual Status may_import(const Peer& client, std::string_view name, const Credentials* server) = 0;
  /// What `user` may take; `standard` is what the nameserver's options say of every user.
  [[nodiscard]] virtual UserQuota quota(uid_t user, const UserQuota& standard);
};

/// Who may export under the default policy. Importing is free to whoever may connect to the socket: each server's clerk
/// decides about its own clients.
enum class ExportRule : std::uint8_t {
  own_user,  ///< Root and the user the nameserver runs as: nobody else can squat a name. The default.
  anyone,    ///< Whoever may connect to the socket. Names go to who comes first.
};
/// Whether `user` may export names such as this one at all, whatever a policy says: the names of the network domain, of
/// the directory and of what the network domain exports ("lrpc.user.*") are root's and those of the user the nameserver
/// runs as.
[[nodiscard]] bool may_have_name(uid_t user, std::string_view name, uid_t own_user) noexcept;
std::shared_ptr<Policy> default_policy(ExportRule rule = ExportRule::own_user);

}  // namespace lrpc::nameserver
