#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "caller.h"
#include "lrpc/sealed.h"
#include "lrpc/server.h"
#include "remote_caller.h"
#include "roles.h"

namespace lrpc::storm {
namespace {

using namespace std::chrono_literals;

/// Short, so that grown A-stacks which are not given back show at the end of a round.
constexpr auto kGrownIdle = 100ms;

/// The callback interface of a client.
struct Listener {
  std::uint32_t Answer(CallContext&, std::uint64_t call, std::uint32_t question) {
    execute(call);
    return 3 * question;
  }
};

/// A binding, and what its caller knows about it.
struct Bound {
  std::shared_ptr<Client> client;
  Terms terms;
};

void pause_for(std::uint32_t microseconds) {
  const timespec time{microseconds / 1'000'000, static_cast<long>(microseconds % 1'000'000) * 1000};
  nanosleep(&time, nullptr);
}

Bound bind(Random& random, const Orders& orders, bool shared) {
  const std::string name = some_name(random);
  ImportOptions options{.nameserver = orders.nameserver, .gate = orders.gate};
  options.timeout = std::chrono::milliseconds(random.below(150));
  options.watcher = !random.chance(10);
  Bound bound;
  if (random.chance(20)) options.supply = random.chance(50) ? AStackSupply::fail : AStackSupply::grow;
  options.grown_idle = kGrownIdle;
  if (random.chance(30)) options.call_timeout = std::chrono::milliseconds(random.between(1, 30));
  bound.terms.survivor = name == kSurvivorName;
  bound.terms.may_refuse = options.supply == AStackSupply::fail;
  bound.terms.may_abort = !(options.call_timeout == kNoLimit);
  bound.terms.grows = options.supply == AStackSupply::grow;
  bound.terms.shared = shared;
  if (random.chance(15)) {
    options.timeout = bound.terms.survivor ? 240s : std::chrono::milliseconds(random.between(50, 200));
    bound.client = import_privately_or_not(name, options);
  } else {
    bound.client = import_or_not(name, options);
  }
  return bound;
}

/// The threads of a client: what they share, and when they end.
class Crowd {
 public:
  Crowd(const Orders& orders, Random& random) : orders_(orders) {
    const std::uint32_t count = random.between(1, 3);
    if (count > 1 && random.chance(60)) shared_ = bind(random, orders_, true);
    if (orders.ends_itself) calls_left_.store(static_cast<std::int64_t>(random.between(1, 400)));
    end_kind_ = random.below(4);
    try {
      for (std::uint32_t i = 0; i < count; ++i) threads_.emplace_back([this, seed = random.seed()] { run(seed); });
    } catch (const std::system_error&) {  // EAGAIN: go on with fewer threads
    }
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    ending_.store(true);
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  [[nodiscard]] bool ended() const { return ending_.load() || ledger().draining.load(); }

  void run(std::uint64_t seed) {
    Caller caller(seed);
    Random& random = caller.random();
    RemoteCaller remote_caller(random.seed());
    Listener listener;
    while (!ended()) {
      if (ledger().machines.load() == 2 && random.chance(50)) {
        call_the_other_machine(remote_caller);
        continue;
      }
      Server own_domain({.nameserver = orders_.nameserver});
      Bound bound = shared_.client != nullptr && random.chance(50) ? shared_ : bind(random, orders_, false);
      if (bound.client == nullptr) {
        pause_for(random.between(200, 5000));
        continue;
      }
      if (!bound.terms.shared && random.chance(20)) serve_callbacks(bound, own_domain, listener);
      call_for_a_while(caller, bound);
    }
  }

  static void serve_callbacks(Bound& bound, Server& own_domain, Listener& listener) {
    const InCall waiting("serve_callbacks", 0, &lrpc::detail::StubAccess::object(bound.client->binding()));
    const Status served = bound.client->serve_callbacks(own_domain, listener);
    bound.terms.callbacks = served.has_value();
    const bool fits = served || served.code() == Errc::binding_revoked || served.code() == Errc::peer_gone ||
                      served.code() == Errc::timed_out;
    if (!fits || (!served && bound.terms.survivor)) complain("serve_callbacks: %s", served.error().message().c_str());
  }

  void call_for_a_while(Caller& caller, const Bound& bound) {
    Random& random = caller.random();
    const bool hurries = random.chance(40);  // calls back to back, so that pollers execute them
    for (std::uint32_t i = random.between(1, hurries ? 600 : 60); i > 0 && !ended(); --i) {
      if (calls_left_.fetch_sub(1) == 1) end_here();
      if (!caller.call(*bound.client, bound.terms)) return;
      if (!hurries && random.chance(30)) pause_for(random.below(2000));
    }
  }

  void call_the_other_machine(RemoteCaller& caller) {
    const RemoteBound bound = caller.import(orders_.nameserver);
    if (bound.client == nullptr) return pause_for(caller.random().between(200, 5000));
    for (std::uint32_t i = caller.random().between(1, 80); i > 0 && !ended(); --i) {
      if (calls_left_.fetch_sub(1) == 1) end_here();
      if (!caller.call(bound)) return;
    }
  }

  void end_here() const {
    if (end_kind_ == 0) _exit(0);
    if (end_kind_ == 1) abort();
    if (end_kind_ == 2) exit(0);
    std::terminate();  // as an uncaught exception ends the process
  }

  const Orders& orders_;
  Bound shared_;
  std::atomic<bool> ending_{false};
  std::atomic<std::int64_t> calls_left_{-1};
  std::uint32_t end_kind_ = 0;
  std::vector<std::thread> threads_;
};

/// Checks that a binding without calls has all its A-stacks: takes each of them, and puts them back.
void take_all_astacks(Client& client) {
  client::BindingObject& object = lrpc::detail::StubAccess::object(client.binding());
  const auto classes = Storm::kPdl.classes;
  for (std::uint16_t i = 0; i < static_cast<std::uint16_t>(classes.size()); ++i) {
    const InCall waiting("taking all A-stacks", 0, &object);
    const CallScope scope(fault_is(Fault::lost_astack) ? 2s : 120s);
    client::AStackList& list = object.astacks(i);
    std::vector<shim::LinkageRecord*> taken;
    while (taken.size() < classes[i].count) {
      shim::LinkageRecord* const record = object.take_slow(list).record;
      if (record == nullptr) break;
      taken.push_back(record);
    }
    if (taken.size() != classes[i].count) {
      complain("rests, but has %zu of the %u A-stacks of class %u", taken.size(), unsigned{classes[i].count},
               unsigned{i});
    }
    for (; !taken.empty(); taken.pop_back()) list.put(nullptr, *taken.back());
  }
}

/// A client that never comes back from a call.
void hang(const Binding& binding) {
  const MadeCall made("Add, that hangs on purpose", binding);
  for (;;) pause();
}

}  // namespace

int run_client(const Orders& orders) {
  block_sigterm();
  Random random(orders.seed);
  const Crowd crowd(orders, random);
  while (!ledger().draining.load() && !sleep_or_end(20'000)) {
  }
  return 0;
}

int run_sealed_client(const Orders& orders) {
  Caller caller(orders.seed);
  Random& random = caller.random();
  const std::string name = some_name(random);
  auto client = import_or_not(
      name, {.nameserver = orders.nameserver, .timeout = std::chrono::milliseconds(200), .gate = Gate::trap});
  if (client == nullptr) return 0;
  if (const Status sealed = lrpc::seal(client->binding()); !sealed) {
    const bool fits = sealed.code() == Errc::peer_gone || sealed.code() == Errc::not_supported;
    if (sealed.code() == Errc::not_supported) ledger().cannot_seal.store(true);
    if (!fits) complain("seal: %s", sealed.error().message().c_str());
    return 0;
  }
  const Terms terms{.survivor = name == kSurvivorName, .sealed = true};
  while (!ledger().draining.load()) {
    if (!caller.call(*client, terms)) break;
    if (random.chance(10)) pause_for(random.below(500));
  }
  return 0;
}

int run_survivor_client(const Orders& orders) {
  block_sigterm();
  Random random(orders.seed);
  // The client may start before its server has exported.
  const auto import_patiently = [&](ImportOptions options) {
    options.nameserver = orders.nameserver;
    options.timeout = 5s;
    std::shared_ptr<Client> client;
    while (client == nullptr && !ledger().ending.load()) client = import_or_not(kSurvivorName, options);
    return client;
  };
  const auto steady = import_patiently({});
  // Grows in each round, and shrinks to its first size when it has no calls.
  const auto growing =
      import_patiently({.supply = AStackSupply::grow, .grown_idle = fault_is(Fault::kept_growth) ? 1h : kGrownIdle});
  if (steady == nullptr || growing == nullptr) return 0;
  Caller caller(random.seed());
  std::vector<std::shared_ptr<Client>> kept;
  std::vector<RemoteBound> kept_paths;
  bool lost = false;
  while (!ledger().ending.load()) {
    place().quiet.store(false);
    {
      const Crowd crowd(orders, random);
      while (!ledger().draining.load() && !ledger().ending.load()) {
        (void)caller.call(*steady, {.survivor = true, .shared = true, .lasting = true});
        if (random.chance(10)) (void)caller.burst(*growing, {.survivor = true, .lasting = true}, random.between(5, 40));
        if (fault_is(Fault::lost_astack) && !std::exchange(lost, true))
          (void)lrpc::detail::StubAccess::object(steady->binding()).astacks(0).take_any();
        pause_for(random.below(5000));
        if (fault_is(Fault::hang) && random.chance(5)) hang(steady->binding());
        if (fault_is(Fault::kept_binding) && kept.size() < 3)
          kept.push_back(import_or_not(kSurvivorName, {.nameserver = orders.nameserver, .timeout = 1s}));
        if (fault_is(Fault::kept_path) && kept_paths.size() < 3)
          kept_paths.push_back(RemoteCaller::import_survivor({.nameserver = orders.nameserver, .timeout = 1s}));
      }
    }
    take_all_astacks(*steady);
    place().quiet.store(true);
    while (ledger().draining.load() && !ledger().ending.load()) pause_for(5000);
  }
  return 0;
}

namespace {

/// Imports a name that must be there, and calls it once. Retries a failed import for some time.
template <class Interface>
void be_let_in(const std::string& name, const Orders& orders, const Terms& terms) {
  for (int tries = 0;; ++tries) {
    auto client = [&] {
      const InCall waiting("import", 0, nullptr);
      return Interface::import(name, {.nameserver = orders.nameserver, .timeout = 2s});
    }();
    if (client) {
      const MadeCall made("a newcomer's Add", client->binding());
      const auto sum = client->Add(made.number(), 3, 4);
      (void)made.judge(sum, terms, sum && *sum == 7);
      return;
    }
    if (tries == (fault_is(Fault::shut_out) ? 20 : 160))
      return complain("is not let in by %s: %s", name.c_str(), client.error().message().c_str());
    pause_for(50'000);
  }
}

}  // namespace

int run_newcomer(const Orders& orders) {
  be_let_in<Client>(kSurvivorName, orders, {.survivor = true});
  if (ledger().machines.load() == 2) {
    be_let_in<Remote::Client>(over_there(kRemoteSurvivorName), orders,
                              {.survivor = true, .remote = true, .network_ends = ledger().network_ends_over.load()});
  }
  return 0;
}

}  // namespace lrpc::storm
