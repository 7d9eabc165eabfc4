// Paths to servers that speak another protocol (foreign.h): no boot id, no keepalive and no UNBIND, for such a server
// keeps nothing of its clients.
#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "lrpc/detail/server/run.h"
#include "path_service.h"
#include "resolve.h"

namespace lrpc::netpath {
namespace {

using server::failed;
using std::chrono::milliseconds;

/// The pause between two attempts to bind to a server that is not there yet.
constexpr milliseconds kForeignPause{250};

}  // namespace

Result<NetworkPath::Path, NetworkPath::Refused> PathService::BindDeclared(CallContext& context, const String<255>& name,
                                                                          const String<255>& host,
                                                                          std::uint32_t wait_ms,
                                                                          std::span<const std::byte> declaration) {
  if (!is_foreign(name, host))
    return raise(refusal({Errc::invalid_argument, "this name is bound without a declaration"}));
  const uid_t user = context.caller().uid;
  auto claim = accounts_.claim(context.binding_id(), user, 1);
  if (!claim) return raise(refusal(claim.error()));
  const std::shared_ptr<Account> of_user = (*claim)->of_user;
  const Share share = accounts_.import(*of_user, 1);
  if (!share.granted())
    return raise(refusal({Errc::limit_reached, "this user has as many calls under way as one user may have"}));
  const auto address = resolve(host.str());
  if (!address) return raise(refusal(address.error()));
  ForeignServers::Wanted wanted{name.str(), host.str(), *address, user, {}, {}};
  wanted.declaration.assign(reinterpret_cast<const char*>(declaration.data()), declaration.size());  // a private copy
  const CallAccounts accounts = accounts_.to_host(*address, **claim);
  const auto began = Clock::now();
  for (;;) {
    auto bound = bind_foreign(wanted, accounts);
    if (bound) {
      auto path = std::make_shared<Path>(*this, *address, accounts, 0, *std::move(claim));
      path->foreign = *std::move(bound);
      {
        std::lock_guard lock(mutex_);
        ++foreign_;
      }
      return context.grant<NetworkPath::Path>(std::move(path));
    }
    const bool in_time = wait_ms == shim::ImportRequest::kForever || Clock::now() - began < milliseconds(wait_ms);
    if (bound.code() != Errc::name_unknown || !in_time || context.abandoned()) return raise(refusal(bound.error()));
    std::this_thread::sleep_for(kForeignPause);
  }
}

Result<std::unique_ptr<ForeignBinding>> PathService::bind_foreign(ForeignServers::Wanted& wanted,
                                                                  const CallAccounts& accounts) {
  const Share share = accounts.question();
  if (!share.granted())
    return Error{Errc::limit_reached, "as many calls to host '" + wanted.host + "' are under way as there may be"};
  return options_.foreign->bind(wanted);
}

NetworkPath::CallResults PathService::call_foreign(const CallContext* caller, const Path& path,
                                                   const CallPrologue& prologue, std::span<const std::byte> image,
                                                   Buffer& results) {
  std::array<std::byte, kMaxImage> arguments;  // the client may change its image meanwhile
  std::array<std::byte, kMaxImage> room;
  std::ranges::copy(image, arguments.begin());
  const auto [status, size] = path.foreign->call(caller, prologue.procedure, std::span(arguments).first(image.size()),
                                                 milliseconds(prologue.remaining_ms), room);
  if (!results.assign(std::span(room).first(size))) return {.status = failed(Errc::bad_result), .ended = false};
  return {.status = status, .ended = false};
}

}  // namespace lrpc::netpath
