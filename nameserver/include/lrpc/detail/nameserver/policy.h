// Who may export and import which names, and how much of a nameserver one user may take. docs/POLICY.md.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/call/region.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::nameserver {

/// The process at the other end of a connection, as the kernel described it when it connected.
struct Peer : Credentials {
  /// Supplementary groups; none if the kernel does not tell them.
  std::optional<std::vector<gid_t>> groups = {};
  [[nodiscard]] bool is_member_of(gid_t group) const noexcept;
};

/// The most that all connections of one user may take together. The limits of all users (Limits) may allow less.
/// kNoLimit: no limit; 0: nothing.
struct UserQuota {
  std::size_t connections = 512;
  std::size_t names = 1024;                     ///< Exported at a time.
  std::uint64_t declaration_bytes = 32U << 20;  ///< Of the declarations of those names.
  std::size_t imports = 512;                    ///< Imports that wait for a name, for their turn or for a clerk.
  std::uint64_t region_bytes = std::uint64_t{64} << 30;  ///< Of regions made for its imports, not handed over yet.
  std::size_t descriptors_in_flight = 384;               ///< Sent to the user and not read yet.
  std::size_t binds = 512;                               ///< Of its imports, those that wait for a clerk's answer.
  friend bool operator==(const UserQuota&, const UserQuota&) = default;
};

/// Decides who may do what. Called on the event loop's thread: it must be quick, must not block, and must throw nothing
/// but std::bad_alloc. The peer gets the text of a refusal.
class Policy {
 public:
  virtual ~Policy() = default;
  [[nodiscard]] virtual Status may_export(const Peer& server, std::string_view name) = 0;
  /// Called when the import arrives, and again before the exporter is asked, because the policy may have changed while
  /// the import waited. `server` is null as long as nobody exports the name. It has no supplementary groups: those of
  /// two peers may take half a megabyte.
  [[nodiscard]] virtual Status may_import(const Peer& client, std::string_view name, const Credentials* server) = 0;
  /// The quota of `user`; `standard` is the quota that the nameserver's options give to every user.
  [[nodiscard]] virtual UserQuota quota(uid_t user, const UserQuota& standard);
};

/// Who may export under the default policy. Everybody who may connect to the socket may import: each server's clerk
/// decides about its own clients.
enum class ExportRule : std::uint8_t {
  own_user,  ///< Root and the nameserver's own user: nobody else can take a name. The default.
  anyone,    ///< Everybody who may connect to the socket. The first exporter of a name gets it.
};
/// Whether `user` may export this name at all, whatever the policy says. Only root and the nameserver's own user may
/// have the names of the network domain, of the directory, and those that the network domain exports ("lrpc.user.*").
[[nodiscard]] bool may_have_name(uid_t user, std::string_view name, uid_t own_user) noexcept;
std::shared_ptr<Policy> default_policy(ExportRule rule = ExportRule::own_user);

}  // namespace lrpc::nameserver
