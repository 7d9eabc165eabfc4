#include "lrpc/netrpc/user/served_users.h"

#include <utility>

#include "user_service.h"

namespace lrpc::netuser {

namespace {

/// With more A-stacks than the interface declares, one process could make more threads wait in Await.
ServerOptions without_growth(ServerOptions options) {
  options.max_grown_astacks_per_binding = 0;
  return options;
}

}  // namespace

ServedUsers::ServedUsers(ServerOptions options) : server_(without_growth(std::move(options))) {}

ServedUsers::~ServedUsers() { stop(); }

void ServedUsers::stop() noexcept {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  for (const auto& service : services_) service->stop();
}

UserService& ServedUsers::add(UserObject& user) {
  const std::lock_guard lock(mutex_);
  services_.push_back(std::make_unique<UserService>(user));
  if (stopping_) services_.back()->stop();
  return *services_.back();
}

ExportOptions ServedUsers::offer(UserService& service) {
  return {.on_unbound = [&service](std::uint64_t binding) { service.unbound(binding); }};
}

Status ServedUsers::serve(UserObject& user, std::function<Status(const ClientCredentials&)> authorise) {
  UserService& service = add(user);
  ExportOptions options = offer(service);
  options.authorise = std::move(authorise);
  const auto exported = UserCalls::export_to(server_, exported_name(user.options().name), service, std::move(options));
  return exported ? Status() : Status(exported.error());
}

Status ServedUsers::serve_over(UserObject& user, UniqueFd socket) {
  UserService& service = add(user);
  return UserCalls::serve_over(server_, std::move(socket), service, offer(service));
}

}  // namespace lrpc::netuser
