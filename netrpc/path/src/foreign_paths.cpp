// Paths to servers that speak another protocol (foreign.h): no boot id, no keepalive and no UNBIND, for such a server
// keeps nothing of its clients.
#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <utility>

#include "claim.h"
#include "lrpc/server/run.h"
#include "resolve.h"
#include "turn.h"

namespace lrpc::netpath {
namespace {

using server::failed;
using std::chrono::milliseconds;

/// Between two looks at whether a server is there that is waited for.
constexpr milliseconds kForeignPause{250};

}  // namespace

Result<NetworkPath::Path, NetworkPath::Refused> PathService::BindDeclared(CallContext& context, const String<255>& name,
                                                                          const String<255>& host,
                                                                          std::uint32_t wait_ms,
                                                                          std::span<const std::byte> declaration) {
  if (!is_foreign(name, host))
    return raise(refusal({Errc::invalid_argument, "this name is bound without a declaration"}));
  Claim claim(*this, context, 1);
  if (!claim.made()) return raise(refusal(claim.made().error()));
  const Share share(*claim.of_user, half(kMaxEStacks));
  if (!share.granted())
    return raise(refusal({Errc::limit_reached, "this user has as many calls under way as one user may have"}));
  const auto address = resolve(host.str());
  if (!address) return raise(refusal(address.error()));
  const uid_t user = context.caller().uid;
  ForeignServers::Wanted wanted{name.str(), host.str(), *address, user, {}, {}};
  wanted.declaration.assign(reinterpret_cast<const char*>(declaration.data()), declaration.size());  // a private copy
  const Loads loads = loads_to(*address, user, claim.of_user);
  const auto began = Clock::now();
  for (;;) {
    auto bound = bind_foreign(wanted, loads);
    if (bound) {
      auto path = claim.keep(std::make_shared<Path>(*this, *address, loads, 0, context.binding_id()));
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

/// What it asks the host counts among the calls to it; `loads.of_user` counts the import already.
Result<std::unique_ptr<ForeignBinding>> PathService::bind_foreign(ForeignServers::Wanted& wanted, const Loads& loads) {
  const HostTurn turn(loads, options_.max_calls_to_host);
  if (!turn.granted())
    return Error{Errc::limit_reached, "as many calls to host '" + wanted.host + "' are under way as there may be"};
  return options_.foreign->bind(wanted);
}

NetworkPath::CallResults PathService::call_foreign(const CallContext* caller, const Path& path, std::uint16_t number,
                                                   milliseconds limit, std::span<const std::byte> image,
                                                   Buffer* results) {
  std::array<std::byte, kMaxImage> arguments;  // the client may change its image meanwhile
  std::array<std::byte, kMaxImage> room;
  std::ranges::copy(image, arguments.begin());
  const auto [status, size] = path.foreign->call(caller, number, std::span(arguments).first(image.size()), limit, room);
  if (results != nullptr && !results->assign(std::span(room).first(size)))
    return {.status = failed(Errc::bad_result), .ended = false};
  return {.status = status, .ended = false};
}

}  // namespace lrpc::netpath
