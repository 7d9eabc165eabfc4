#include "lrpc/detail/nameserver/policy.h"

#include <unistd.h>

#include <algorithm>
#include <string>

namespace lrpc::nameserver {
namespace {

class DefaultPolicy final : public Policy {
 public:
  explicit DefaultPolicy(ExportRule rule) noexcept : rule_(rule) {}

  Status may_export(const Peer& server, std::string_view name) override {
    if (rule_ == ExportRule::anyone || server.uid == 0 || server.uid == own_user_) return {};
    return Error{Errc::not_permitted, "user " + std::to_string(server.uid) + " may not export '" + std::string(name) +
                                          "': this nameserver takes names from root" +
                                          (own_user_ == 0 ? "" : " and from user " + std::to_string(own_user_)) +
                                          " only; run one of your own, or start it with --allow-export anyone or a "
                                          "policy that allows it"};
  }
  Status may_import(const Peer&, std::string_view, const shim::Credentials*) override { return {}; }

 private:
  ExportRule rule_;
  uid_t own_user_ = ::geteuid();
};

}  // namespace

bool Peer::is_member_of(gid_t group) const noexcept {
  return gid == group || (groups && std::ranges::find(*groups, group) != groups->end());
}

UserQuota Policy::quota(uid_t, const UserQuota& standard) { return standard; }

bool may_have_name(uid_t user, std::string_view name, uid_t own_user) noexcept {
  const bool own = name == shim::kNetworkName || name == shim::kDirectoryName || name.starts_with(shim::kUserPrefix);
  return !own || user == 0 || user == own_user;
}

std::shared_ptr<Policy> default_policy(ExportRule rule) { return std::make_shared<DefaultPolicy>(rule); }

}  // namespace lrpc::nameserver
