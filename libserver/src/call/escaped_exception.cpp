// Reports exceptions that escaped a procedure or a hook. Off the call path of calls that do not throw.
#include <string_view>
#include <utility>

#include "call_path.h"

namespace lrpc::server {

constexpr std::string_view kWhose = "this export";

void tell_exception(const ServedInterface& interface, std::uint16_t procedure) noexcept {
  const std::string_view of = interface.pdl->interface.name;
  const std::string_view name = interface.pdl->procedures[procedure].name;
  if (const auto& told = interface.options.on_exception) {
    shim::CallLimits* const of_call = std::exchange(shim::calling_thread.limits, nullptr);  // not of the hook's calls
    call_hook(interface, "on_exception", [&] { told({of, name, shim::words_of_exception()}); });
    shim::calling_thread.limits = of_call;
  } else {
    interface.exceptions.print({of, ".", name}, kWhose);
  }
}

void tell_hook_threw(const ServedInterface& interface, std::string_view hook) noexcept {
  interface.exceptions.print({hook, " of ", interface.pdl->interface.name}, kWhose);
}

}  // namespace lrpc::server
