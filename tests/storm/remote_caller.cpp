#include "remote_caller.h"

#include <chrono>
#include <utility>

#include "caller.h"

namespace lrpc::storm {

using namespace std::chrono_literals;

std::string remote_name(std::uint32_t number) { return "remote-" + std::to_string(number); }

std::string over_there(const std::string& name) {
  return name + "@" + ledger().addresses[1 - place().machine.load()].data();
}

RemoteBound RemoteCaller::import(const std::string& name, const ImportOptions& options) {
  const bool survivor = name == kRemoteSurvivorName;
  const std::uint32_t round = ledger().round.load();
  RemoteBound bound;
  bound.terms = {.survivor = survivor, .remote = true, .network_ends = ledger().network_ends_over.load()};
  bound.terms.may_abort = !(options.call_timeout == kNoLimit);
  bound.terms.may_refuse = options.supply == AStackSupply::fail;
  auto imported = [&] {
    const InCall waiting("remote import", 0, nullptr);
    return Remote::Client::import(over_there(name), options);
  }();
  if (imported) {
    ledger().remote_bindings.fetch_add(1, std::memory_order_relaxed);
    bound.client = std::make_shared<Remote::Client>(*std::move(imported));
    return bound;
  }
  switch (imported.code()) {
    case Errc::name_unknown:
    case Errc::limit_reached:
    case Errc::remote_unavailable:
      // In a round without daemon deaths, both network domains are up and the survivor is exported.
      if (survivor && round % 2 == 0 && round == ledger().round.load())
        complain("import of %s, which is there: %s%s", name.c_str(), imported.error().message().c_str(), kNoNetworkEnd);
      break;
    case Errc::timed_out:
    case Errc::peer_gone:
    case Errc::no_nameserver: break;
    default: complain("import of %s: %s", name.c_str(), imported.error().message().c_str());
  }
  return bound;
}

RemoteBound RemoteCaller::import_survivor(const ImportOptions& options) { return import(kRemoteSurvivorName, options); }

RemoteBound RemoteCaller::import(const std::string& nameserver) {
  ImportOptions options{.nameserver = nameserver};
  options.timeout = std::chrono::milliseconds(random_.below(150));
  options.watcher = !random_.chance(10);
  if (random_.chance(20)) options.supply = random_.chance(50) ? AStackSupply::fail : AStackSupply::grow;
  if (random_.chance(30)) options.call_timeout = std::chrono::milliseconds(random_.between(1, 50));
  return import(random_.chance(40) ? std::string(kRemoteSurvivorName) : remote_name(random_.below(kRemoteNames)),
                options);
}

bool RemoteCaller::call(const RemoteBound& bound) {
  const std::uint32_t kind = random_.below(100);
  if (kind < 40) return Calls::add(*bound.client, bound.terms, random_);
  if (kind < 50) return add_in_scope(*bound.client, bound.terms);
  if (kind < 60) return started(*bound.client, bound.terms);
  if (kind < 67) return Calls::fill(*bound.client, bound.terms, random_, random_.below(12'001), 12'000);
  if (kind < 75) return Calls::sum(*bound.client, bound.terms, random_, random_.below(12'001));
  if (kind < 85) return Calls::handles(*bound.client, bound.terms, random_, 3);
  return uncommon(*bound.client, bound.terms);
}

/// A scope that is often too short for the answer.
bool RemoteCaller::add_in_scope(Remote::Client& client, const Terms& terms) {
  const CallScope scope(std::chrono::microseconds(random_.between(20, 5000)));
  Terms in_scope = terms;
  in_scope.may_abort = true;
  return Calls::add(client, in_scope, random_);
}

/// Starts a call, then finishes or abandons it.
bool RemoteCaller::started(Remote::Client& client, const Terms& terms) {
  MadeCall made("started remote Add", client.binding());
  const bool abandoned = random_.chance(25);
  auto pending = client.start().Add(made.number(), 40, 2);
  if (abandoned) {
    made.fate(Fate::unknown);
    return true;
  }
  const auto sum = pending.finish();
  return made.judge(sum, terms, sum && *sum == 42);
}

bool RemoteCaller::uncommon(Remote::Client& client, const Terms& terms) {
  switch (random_.below(4)) {
    case 0: return Calls::nap(client, terms, random_.below(12'000));
    case 1: {
      const MadeCall made("remote Tell", client.binding());
      const auto told = client.Tell(made.number(), random_.seed());
      if (!told) return made.failed(told.code(), terms);
      made.fate(Fate::unknown);
      return true;
    }
    case 2: return Calls::check(client, terms, random_);
    default: {
      const auto a = static_cast<std::int32_t>(random_.below(1000));
      const auto b = static_cast<std::int32_t>(random_.below(1000));
      const MadeCall made("remote Onward", client.binding());
      const auto sum = client.Onward(made.number(), some_name(random_), a, b);
      if (sum.raised<Remote::Refused>() != nullptr) return made.answered(true);
      return sum ? made.answered(*sum == a + b) : made.failed(sum.code(), terms, true);
    }
  }
}

}  // namespace lrpc::storm
