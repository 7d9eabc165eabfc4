// `name@` with several hosts: when the next one is tried. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/detail/shim/no_limit.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::client {

/// Whether, after this error, another host may accept, or the same one later: the error concerns that host or the path
/// to it, or is temporary.
[[nodiscard]] constexpr bool next_host_may_do(Errc code) noexcept {
  // name_unknown: withdrawn meanwhile
  for (const Errc one : {Errc::remote_unavailable, Errc::name_unknown, Errc::interface_mismatch, Errc::version_mismatch,
                         Errc::hash_mismatch, Errc::not_permitted, Errc::timed_out, Errc::peer_gone,
                         Errc::limit_reached, Errc::message_too_long, Errc::bad_message}) {
    if (code == one) return true;
  }
  return false;
}

/// The same for a host that the directory has named, not the program: then invalid_argument (no such host, or another
/// address of this machine) is no mistake of the program.
[[nodiscard]] constexpr bool next_named_host_may_do(Errc code) noexcept {
  return next_host_may_do(code) || code == Errc::invalid_argument;
}

/// Whether an import that waits asks again after this error: as above, or because lrpcd is being restarted, or because
/// this process lacks something now, such as memory to connect to lrpcd. There was an lrpcd, or the import would not be
/// bound to the directory.
[[nodiscard]] constexpr bool asking_again_may_do(Errc code) noexcept {
  return next_host_may_do(code) || code == Errc::no_nameserver || code == Errc::system_error;
}

/// How long one call to the directory may take in an import with this `timeout`, of which `left` is left: `left`, and
/// what etcd may take beyond it. kNoLimit as in ImportOptions.
[[nodiscard]] constexpr std::chrono::milliseconds patience_with_directory(std::chrono::milliseconds timeout,
                                                                          std::chrono::milliseconds left) noexcept {
  constexpr std::chrono::milliseconds kWithoutTimeout{15'000};
  constexpr std::chrono::milliseconds kBeyondTimeout{5'000};
  constexpr std::chrono::milliseconds kLongest{60'000};
  if (timeout.count() == 0) return kWithoutTimeout;
  return std::min(std::min(left, kLongest) + kBeyondTimeout, kLongest);
}

/// How long the network domain may take to bind in an import with this `timeout`: the timeout, and what it takes to
/// give up a host that does not answer. kNoLimit as in ImportOptions.
[[nodiscard]] constexpr std::chrono::milliseconds patience_with_network(std::chrono::milliseconds timeout) noexcept {
  constexpr std::chrono::milliseconds kBeyondTimeout{60'000};
  constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 365);
  return timeout == kNoLimit ? kNoLimit : std::min(timeout, kLongest) + kBeyondTimeout;
}

/// The error of a failed request to a service of this machine: the error that the service raises or, if it raised none,
/// the text `did_not` and the call's own error.
template <class Refused, class Outcome>
[[nodiscard]] Error why_refused(const Outcome& outcome, std::string_view did_not) {
  const Refused* const refused = outcome.template raised<Refused>();
  if (refused == nullptr) return {Errc::remote_unavailable, std::string(did_not) + ": " + outcome.error().message()};
  const auto code = static_cast<Errc>(refused->code);
  return {describe(code) == "unknown error" || code == Errc::ok ? Errc::remote_unavailable : code, refused->text.str()};
}

/// Whether the error means that the host itself was not reached. The directory then names it last for a while.
[[nodiscard]] constexpr bool not_reached(Errc code) noexcept {
  return code == Errc::remote_unavailable || code == Errc::timed_out || code == Errc::peer_gone;
}

/// Splits the directory's answer at its spaces: at most 8 hosts, none empty.
[[nodiscard]] inline std::vector<std::string_view> hosts_of(std::string_view answer) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string_view> hosts;
  while (!answer.empty() && hosts.size() < kMost) {
    const std::size_t space = answer.find(' ');
    if (space != 0) hosts.push_back(answer.substr(0, space));
    answer.remove_prefix(space == std::string_view::npos ? answer.size() : space + 1);
  }
  return hosts;
}

}  // namespace lrpc::client
