#include "claim.h"

#include "turn.h"

namespace lrpc::netpath {

PathService::Claim::Claim(PathService& service, const CallContext& context, std::size_t paths)
    : service_(service), local_(context.binding_id()), made_(make(context, paths)) {}

PathService::Claim::~Claim() {
  if (!made_ || kept_) return;
  std::lock_guard lock(service_.mutex_);
  service_.of_binding_.erase(local_);
}

Status PathService::Claim::make(const CallContext& context, std::size_t paths) {
  const BrokerOptions& options = service_.options_;
  if (options.short_of_memory()) return Error{Errc::limit_reached, "this machine's network domain is short of memory"};
  const uid_t user = context.caller().uid;
  std::lock_guard lock(service_.mutex_);
  std::erase_if(service_.loads_, [](const auto& one) { return one.second.expired(); });
  std::size_t all = paths;
  std::size_t of_this = paths;
  for (const auto& [binding, bound] : service_.of_binding_) {
    all += bound.paths;
    if (bound.user == user) of_this += bound.paths;
  }
  if (all > options.max_paths)
    return Error{Errc::limit_reached, "this machine has as many remote bindings as it may have"};
  if (of_this > half(options.max_paths))
    return Error{Errc::limit_reached, "this user has as many remote bindings as one user may have"};
  auto load = service_.load_locked(std::nullopt, user);
  // With the path its local binding ends: there cannot be two.
  if (!service_.of_binding_.emplace(local_, Bound{user, paths}).second)
    return Error{Errc::invalid_argument, "one remote binding for each binding to the network domain"};
  of_user = std::move(load);
  return {};
}

}  // namespace lrpc::netpath
