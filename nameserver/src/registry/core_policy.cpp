// Who may do what: the policy in force, and the change to another one.
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "core.h"

namespace lrpc::nameserver {

Status Core::begin_policy() {
  new_policy_event_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!new_policy_event_) return system_error("eventfd", errno);
  auto watched = loop_.watch(new_policy_event_.get(), {.readable = true}, [this](Readiness) {
    take_new_policy();
    reap();
  });
  if (!watched) return watched.error();
  new_policy_watch_ = *watched;
  for (const ExtraWatch& extra : options_.extra_watches) {
    if (auto done = watch_extra(extra); !done) return done;
  }
  return {};
}

Status Core::watch_extra(const ExtraWatch& extra) {
  const std::size_t place = extra_watches_.size();
  auto watched = loop_.watch(extra.fd, {.readable = true}, [this, place, told = extra.on_readable](Readiness) {
    if (!told()) loop_.forget(extra_watches_[place]);
  });
  if (!watched) return watched.error();
  extra_watches_.push_back(*watched);
  return {};
}

void Core::set_policy(std::shared_ptr<Policy> policy) {
  const std::lock_guard lock(new_policy_mutex_);
  new_policy_ = std::move(policy);
  (void)::eventfd_write(new_policy_event_.get(), 1);
}

void Core::take_new_policy() {
  eventfd_t count = 0;
  (void)::eventfd_read(new_policy_event_.get(), &count);
  std::shared_ptr<Policy> taken;
  {
    const std::lock_guard lock(new_policy_mutex_);
    taken.swap(new_policy_);
  }
  if (taken == nullptr) return;
  policy_.swap(taken);
  apply_policy();
}

/// What was decided stays: names and bindings live on. What is still to be decided the new policy decides at once.
void Core::apply_policy() {
  std::vector<std::pair<ImportId, Error>> refused;
  for (const auto& [name, ids] : waiting_) {
    const auto exported = exports_.find(name);
    const Connection* const server = exported != exports_.end() ? exported->second.server : nullptr;
    for (const ImportId id : ids) {
      if (auto may = may_import(*imports_.at(id).client, name, server); !may) refused.emplace_back(id, may.error());
    }
  }
  for (const auto& [id, why] : refused) answer_import(id, why);
  for (const auto& [name, exported] : exports_) {
    if (policy_->may_export(WholePeer(*exported.server).get(), name)) continue;
    log(LogLevel::warning, describe_peer(exported.server->peer) + " exports '" + name +
                               "', which the policy would not allow now: the name stays until that process "
                               "withdraws it");
  }
  log(LogLevel::info, "the new policy is in force");
}

/// Everything that can be said against an export but its size, before it is asked whether the name is taken.
Status Core::may_export(const Connection& peer, const shim::ExportRequest& body) {
  if (!shim::valid_name(body.name)) {
    return Error{Errc::invalid_argument, "'" + body.name + "' cannot be exported: a name is 1 to " +
                                             std::to_string(shim::kMaxNameLength) +
                                             " printable ASCII characters without space, '@' and '/'"};
  }
  if (body.interface.name.empty()) return Error{Errc::invalid_argument, "the interface has no name"};
  if (!may_have_name(peer.peer.uid, body.name, ::geteuid())) {
    return Error{Errc::not_permitted, "'" + body.name + "' is for lrpc-netd: root or the nameserver's user"};
  }
  Status may = policy_->may_export(WholePeer(peer).get(), body.name);
  if (!may) {
    log_about(peer.peer, LogLevel::info,
              describe_peer(peer.peer) + " was refused: " + sanitized(may.error().message()));
  }
  return may;
}

Status Core::may_import(const Connection& client, const std::string& name, const Connection* server) {
  Status may = policy_->may_import(WholePeer(client).get(), name, server != nullptr ? &server->peer : nullptr);
  if (!may) {
    log_about(client.peer, LogLevel::info,
              describe_peer(client.peer) + " was refused: " + sanitized(may.error().message()));
  }
  return may;
}

}  // namespace lrpc::nameserver
