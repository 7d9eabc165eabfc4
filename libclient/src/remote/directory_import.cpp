// Importing a name from any host (`name@`).
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "directory.client.h"
#include "failover.h"
#include "import/import.h"
#include "lrpc/detail/client/call/call_scope.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/no_limit.h"
#include "remote_import.h"

namespace lrpc::client {
namespace {

namespace advice = lrpc::directory::Directory;
using std::chrono::milliseconds;

/// The longest that one call to the directory waits for a name; after that the call is made again.
constexpr milliseconds kWaitOfOneCall{5'000};
constexpr milliseconds kBetweenAttempts{250};
constexpr milliseconds kLongestForRoom{60'000};  ///< The longest wait for room at lrpc-directory.

/// Repeats `attempt` while it returns an error for which `waiting_may_help` and time is left. Returns its last outcome.
template <class Attempt>
auto attempt_within(const shim::Wait& wait, bool (*waiting_may_help)(Errc), Attempt attempt) {
  for (;;) {
    auto outcome = attempt();
    const milliseconds left = wait.left();
    if (outcome || !waiting_may_help(outcome.code()) || left.count() == 0) return outcome;
    std::this_thread::sleep_for(std::min(kBetweenAttempts, left));
  }
}

Result<advice::Client> import_directory(const ImportOptions& options) {
  ImportOptions inner;
  inner.nameserver = options.nameserver;
  inner.watcher = false;                                                 // for some calls only
  inner.call_timeout = patience_with_directory(kDoNotWait, kDoNotWait);  // until each call sets its own
  auto client = advice::Client::import(shim::kDirectoryName, inner);
  if (client || client.code() != Errc::name_unknown) return client;
  return Error{Errc::remote_unavailable,
               "no directory here: start lrpc-directory with the same nameserver, or name a host behind the '@'"};
}

/// The same, but waits while other imports of this user use up the user's limit at lrpc-directory. Not for ever:
/// limit_reached may also mean that this process lacks a resource.
Result<advice::Client> import_directory(const ImportOptions& options, const shim::Wait& whole) {
  const auto may_become_free = [](Errc error) { return error == Errc::limit_reached; };
  return attempt_within(shim::Wait(std::min(whole.left(), kLongestForRoom)), may_become_free,
                        [&] { return import_directory(options); });
}

Result<advice::LookupResults> look_up(advice::Client& directory, std::string_view name, const Pdl& pdl,
                                      const shim::Wait& wait) {
  const milliseconds left = wait.left();
  const auto wait_ms = static_cast<std::uint32_t>(std::min(left, kWaitOfOneCall).count());
  detail::StubAccess::object(directory.binding()).set_call_timeout(patience_with_directory(wait.whole(), left));
  auto answer =
      directory.Lookup(name, pdl.interface.name, pdl.interface.major, pdl.interface.minor, pdl.interface.hash, wait_ms);
  if (!answer) return why_refused<advice::Refused>(answer, "lrpc-directory did not answer");
  return *std::move(answer);
}

/// Tries the hosts of one answer, one after the other. If all refuse, the error is the last one after which waiting may
/// help, or else the first host's, with the number of hosts that were tried.
Result<Binding> bind_to_one(advice::Client& directory, const advice::LookupResults& answer, std::string_view name,
                            const Pdl& pdl, ImportOptions options) {
  options.timeout = milliseconds(0);  // do not wait for a host that does not have the name now
  const std::string hosts = answer.hosts.str();
  Error last{Errc::name_unknown, "the directory names no host"};
  std::size_t tried = 0;
  for (const std::string_view host : hosts_of(hosts)) {
    const bool own = answer.own && tried == 0;
    ++tried;
    auto binding = own ? Binding::import(name, pdl, options)
                       : import_remote(std::string(name).append("@").append(host), pdl, options);
    if (!own && (binding || not_reached(binding.code()))) (void)directory.Report(host, static_cast<bool>(binding));
    if (binding || !(own ? next_host_may_do(binding.code()) : next_named_host_may_do(binding.code()))) return binding;
    if (tried == 1 || next_host_may_do(binding.code())) last = binding.error();  // tells whether waiting may help
  }
  if (tried > 1) last.text = last.message() + " (the last of " + std::to_string(tried) + " hosts that were tried)";
  return last;
}

}  // namespace

Result<Binding> import_by_directory(std::string_view name, const Pdl& pdl, const ImportOptions& given) {
  const CallScope own(fresh);  // an import has its own timeout
  const shim::Wait wait(given.timeout.value_or(kDoNotWait));
  ImportOptions options = given;
  auto settled = shim::settled_nameserver(given.nameserver);  // each attempt connects to it anew
  if (!settled) return settled.error();
  options.nameserver = *std::move(settled);
  auto directory = import_directory(options, wait);
  if (!directory) return directory.error();
  // An import that waits for a name waits until a host has the name, can be reached, and has an interface that fits
  // (hosts may be updated one after the other), and until lrpcd, etcd and lrpc-directory answer and permit it.
  return attempt_within(wait, asking_again_may_do, [&]() -> Result<Binding> {
    if (directory->binding().revoked()) {
      auto again = import_directory(options);
      if (again.code() == Errc::system_error) return again.error();
      if (again) directory = std::move(again);
    }
    const auto answer = look_up(*directory, name, pdl, wait);
    return answer ? bind_to_one(*directory, *answer, name, pdl, options) : answer.error();
  });
}

}  // namespace lrpc::client
