#include "host_turns.h"

#include <algorithm>
#include <utility>

#include "lrpc/detail/shim/most_of_one.h"

namespace lrpc::netd {

bool HostTurns::add(Command& command) {
  if (spare_.empty()) spare_.emplace_back();
  if (spare_hosts_.empty()) spare_hosts_.emplace_back();
  auto host = find(command.from.host);
  const std::size_t has = host == hosts_.end() ? 0 : host->waiting.size();
  if (!shim::one_may_take(1, has, waiting_, most_waiting_)) return false;
  if (host == hosts_.end()) {
    host = spare_hosts_.begin();
    host->address = command.from.host;
    hosts_.splice(hosts_.end(), spare_hosts_, host);
  }
  spare_.front() = std::move(command);
  host->waiting.splice(host->waiting.end(), spare_, spare_.begin());
  ++waiting_;
  return true;
}

Command HostTurns::next() noexcept {
  const auto host = next_host();
  Command command = std::exchange(host->waiting.front(), Command{});
  spare_.splice(spare_.begin(), host->waiting, host->waiting.begin());
  --waiting_;
  ++host->served;
  ++served_;
  hosts_.splice(hosts_.end(), hosts_, host);
  return command;
}

void HostTurns::done(netpath::HostAddress address) noexcept {
  const auto host = find(address);
  --host->served;
  --served_;
  drop_unused(host);
}

std::list<Command> HostTurns::take_all() noexcept {
  std::list<Command> all;
  for (auto host = hosts_.begin(); host != hosts_.end();) {
    const auto of = host++;
    all.splice(all.end(), of->waiting);
    drop_unused(of);
  }
  waiting_ = 0;
  return all;
}

HostTurns::Hosts::iterator HostTurns::find(netpath::HostAddress host) noexcept {
  return std::ranges::find(hosts_, host, &Host::address);
}

HostTurns::Hosts::iterator HostTurns::next_host() noexcept {
  auto next = hosts_.end();
  for (auto host = hosts_.begin(); waiting_ != 0 && host != hosts_.end(); ++host) {
    const bool may = !host->waiting.empty() && host->served < shim::most_of_one(host->served, served_, threads_);
    if (may && (next == hosts_.end() || host->served < next->served)) next = host;
  }
  return next;
}

void HostTurns::drop_unused(Hosts::iterator host) noexcept {
  if (host->served == 0 && host->waiting.empty()) spare_hosts_.splice(spare_hosts_.begin(), hosts_, host);
}

}  // namespace lrpc::netd
