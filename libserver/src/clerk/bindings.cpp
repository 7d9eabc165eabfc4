#include "bindings.h"

#include <algorithm>
#include <new>
#include <string>
#include <thread>

#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/call/step.h"
#include "lrpc/detail/shim/system/handover.h"

namespace lrpc::server {
namespace {

/// Rings taken off a bell before its A-stacks are looked at.
constexpr int kRingsPerLook = 64;
/// Any other message counts as this many rings more, because it takes longer.
constexpr int kRingsPerOffer = 15;

/// Of a region for these procedures; 0 without any. Throws std::bad_alloc.
std::uint64_t region_bytes_of(const Pdl* pdl) {
  if (pdl == nullptr) return 0;
  const auto layout = shim::RegionLayout::of(pdl->classes);
  return layout ? layout->size() : 0;
}

/// What a binding counts for, beside its own region and its descriptors. With callbacks, this includes the region of
/// the binding to the client's callback: it counts for this client, and is made when a procedure first calls back.
/// Throws std::bad_alloc.
Holding holding_of(const ServedInterface& interface) {
  return {.bindings = 1, .region_bytes = region_bytes_of(interface.pdl->callback)};
}

/// The descriptors of a binding, until they are closed: its bell and its client's pidfd; with callbacks also the socket
/// that the client offers, and the bell and the pidfd of the binding over it.
Holding descriptors_of(const ServedInterface& interface) noexcept {
  return {.descriptors = interface.pdl->callback != nullptr ? 5U : 2U};
}

/// Whether the calling thread is ending this binding of ending_.
constexpr auto ended_here = [](const auto& one) { return one.second->ended_by == std::this_thread::get_id(); };

/// See client_process_of().
constexpr bool is_one_process(pid_t process) noexcept { return process != 0; }

/// For people.
std::string name_of(pid_t process) {
  return process > 0 ? std::to_string(process) : std::to_string(-process) + " (lrpcd's number)";
}

}  // namespace

Bindings::Bindings(const ServerOptions& options, PollerGrant& grant, shim::Watcher& watcher)
    : options_(options),
      watcher_(watcher),
      accounts_(std::make_shared<Accounts>(options)),
      pollers_(options, processors_, grant),
      estacks_(options, processors_, pollers_,
               [this](std::uint32_t later) { (void)watcher_.post(supply_estacks_, later); }),
      traps_(options, accounts_),
      secondary_(options, watcher, estacks_, accounts_, unmapper_) {}

Bindings::OfNumbers Bindings::revoke_all() {
  OfNumbers ending;
  {
    std::lock_guard lock(mutex_);
    ending.swap(bindings_);
  }
  for (auto& [id, binding] : ending) {
    watcher_.unwatch(binding->bell_watch);
    watcher_.unwatch(binding->pidfd_watch);
    binding->revoke();
  }
  return ending;
}

void Bindings::abandon_all() {
  OfNumbers abandoned = revoke_all();
  std::lock_guard lock(mutex_);
  ending_.merge(abandoned);
}

void Bindings::end_all() {
  const OfNumbers ending = revoke_all();
  pollers_.stop();
  estacks_.stop();  // waits for running procedures
  traps_.stop();    // so does this
  for (auto& [id, binding] : ending) {
    secondary_.end(*binding);
    shim::take_over(shim::handover_place(binding->id(), nullptr));  // what its procedures have done with the objects
    binding->handles().close_all();
    binding->callback_port().take_stub().reset();
  }
  {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return std::ranges::all_of(ending_, ended_here); });
  }
  callbacks_.reset();  // nobody posts to it any more
  let_go_of_stubs();   // those that its thread has not handled yet
}

Status Bindings::room_for(const shim::Credentials& client, pid_t told, const ServedInterface& interface,
                          shim::Gate gate) {
  if (gate == shim::Gate::trap && !shim::knows_seccomp_listeners()) {
    return Error{Errc::not_supported,
                 "Gate::trap: the server has no /proc of its process namespace, by which it knows a seccomp listener"};
  }
  if (gate == shim::Gate::trap && client.pid <= 0) {
    return Error{Errc::not_supported,
                 "Gate::trap: the client has no process number in the server's process namespace, or none that the "
                 "server's /proc tells (a sandbox must let the server read /proc/self)"};
  }
  accounts_->settle_ended(client.uid);
  Holding wanted = holding_of(interface);
  wanted.region_bytes += region_bytes_of(interface.pdl);
  if (client.uid == kNobodyHere.uid) wanted.region_bytes = 0;  // the network domain limits these, for each host
  if (Status room = accounts_->room(wanted); !room) return room;
  std::lock_guard lock(mutex_);
  const pid_t process = client_process_of(client, told);
  const auto counted = is_one_process(process) ? bindings_of_.find(process) : bindings_of_.end();
  const std::size_t of_client = counted != bindings_of_.end() ? counted->second : 0;
  if (of_client >= options_.max_bindings_per_client_process) {
    return Error{Errc::limit_reached, "process " + name_of(process) + " has " + std::to_string(of_client) +
                                          " bindings to the server, as many as it lets one process have "
                                          "(max_bindings_per_client_process)"};
  }
  if (Status room = accounts_->room(client.uid, wanted); !room) return room;
  Holding descriptors = descriptors_of(interface);
  if (gate == shim::Gate::trap) descriptors.descriptors += TrapServer::kDescriptors.descriptors;  // of its listener
  return accounts_->room(client.uid, descriptors);
}

void Bindings::forget_if_none_locked(pid_t process) noexcept {
  const auto found = bindings_of_.find(process);
  if (found != bindings_of_.end() && found->second == 0) bindings_of_.erase(found);
}

std::shared_ptr<ServedBinding> Bindings::make(ServedParts parts) {
  const shim::Credentials client = parts.client;
  const pid_t process = parts.process();
  const std::uint64_t id = parts.id;
  parts.share = accounts_->take(client.uid, holding_of(*parts.interface));
  const std::uint64_t bytes = parts.region.layout().size();
  parts.unmapping = unmapper_->place_for(bytes, accounts_->take(client.uid, {.region_bytes = bytes}));
  parts.handles = accounts_->handles(parts.holder());
  parts.descriptors = std::make_shared<const Share>(accounts_->take(client.uid, descriptors_of(*parts.interface)));
  std::shared_ptr<ServedBinding> binding;  // on failure it is released after the lock: that unmaps
  std::lock_guard lock(mutex_);
  try {
    std::size_t* const of_process = is_one_process(process) ? &bindings_of_[process] : nullptr;
    shim::Watcher::Task unbound;
    if (parts.interface->options.on_unbound) {
      unbound = shim::Watcher::Task([interface = parts.interface, id] {
        call_hook(*interface, "on_unbound", [&] { interface->options.on_unbound(id); });
      });
    }
    binding = std::make_shared<ServedBinding>(std::move(parts));
    binding->unbound = std::move(unbound);
    bindings_.emplace(id, binding);
    estacks_.admit(*binding);
    if (of_process != nullptr) ++*of_process;
    return binding;
  } catch (const std::bad_alloc&) {
    bindings_.erase(id);
    forget_if_none_locked(process);
    throw;
  }
}

Status Bindings::watch(const std::shared_ptr<ServedBinding>& binding) {
  const auto on_news = [this, binding](shim::Watcher::Event event) { on_bell(binding, event); };
  auto bell = watcher_.watch(binding->bell(), on_news, binding->user());
  if (!bell) return bell.error();
  binding->bell_watch = *bell;
  if (binding->client_pidfd() < 0) return {};  // a client of another process namespace
  const auto on_death = [this, id = binding->id()](shim::Watcher::Event) { end(id); };
  auto pidfd = watcher_.watch(binding->client_pidfd(), on_death, binding->user());
  if (!pidfd) return pidfd.error();
  binding->pidfd_watch = *pidfd;
  return {};
}

Status Bindings::add(ServedParts parts) {
  processors_.refer_to_this_thread();
  if (parts.interface->pdl->callback != nullptr) {  // the thread starts now, because a binding's end must not fail
    if (const Status started = callbacks_->start(); !started)
      return Error{Errc::limit_reached, "the server cannot call clients back: " + started.error().message()};
  }
  const auto binding = make(std::move(parts));
  Status watched;
  try {
    watched = watch(binding);
  } catch (const std::bad_alloc&) {
    watched = Errc::limit_reached;
  }
  if (!watched) {
    remove(binding->id());
    return watched;
  }
  if (const auto& told = binding->interface().options.on_bound)
    call_hook(binding->interface(), "on_bound", [&] { told(binding->id(), binding->client()); });
  return {};
}

void Bindings::expect_call(std::uint64_t id) noexcept {
  const auto binding = find(id);
  if (binding == nullptr || binding->gate() == shim::Gate::none || binding->gate() == shim::Gate::trap) return;
  if (binding->interface().options.scheduling) return;     // such an E-stack would end with the binding, called or not
  estacks_.stand_by(binding, binding->astacks().front());  // the one that its client takes first
}

// B17
void Bindings::end(std::uint64_t id) noexcept {
  const auto binding = remove(id);
  if (binding == nullptr) return;
  const auto& told = binding->interface().options.on_unbound;
  if (!told) return;
  if (watcher_.on_watcher_thread()) {
    call_hook(binding->interface(), "on_unbound", [&] { told(id); });
  } else {
    (void)watcher_.post(binding->unbound);
  }
}

std::shared_ptr<ServedBinding> Bindings::remove(std::uint64_t id) noexcept {
  std::shared_ptr<ServedBinding> binding;
  {
    std::lock_guard lock(mutex_);
    const auto found = bindings_.find(id);
    if (found == bindings_.end()) return nullptr;
    binding = found->second;
    binding->ended_by = std::this_thread::get_id();
    ending_.insert(bindings_.extract(found));
    const pid_t process = binding->process();
    if (is_one_process(process)) --bindings_of_[process];
    forget_if_none_locked(process);
  }
  watcher_.unwatch(binding->bell_watch);
  watcher_.unwatch(binding->pidfd_watch);
  binding->revoke();
  estacks_.dismiss(*binding);
  traps_.end(*binding);
  secondary_.end(*binding);
  shim::take_over(shim::handover_place(binding->id(), nullptr));  // what its procedures have done with the objects
  binding->handles().close_all();
  shim::hand_over(shim::handover_place(binding->id(), nullptr));  // to the thread that lets go of the binding last
  const bool called_back = binding->callback_port().keeps_stub();
  if (!called_back) accounts_->settle(binding);
  std::lock_guard lock(mutex_);
  if (called_back) {
    // Not on this thread, maybe the clerk's: the release may wait for a hook of the program that waits for the clerk.
    called_back_.insert(ending_.extract(id));
    (void)callbacks_->post(let_go_of_stubs_);  // which cannot fail: add() has started the thread
  } else {
    ending_.erase(id);
  }
  ended_.notify_all();
  return binding;
}

void Bindings::let_go_of_stubs() noexcept {
  for (;;) {
    OfNumbers::node_type next;
    {
      std::lock_guard lock(mutex_);
      if (called_back_.empty()) return;
      next = called_back_.extract(called_back_.begin());
    }
    next.mapped()->callback_port().take_stub().reset();
    accounts_->settle(next.mapped());
  }
}

void Bindings::wait_until_ended(std::uint64_t id) noexcept {
  std::unique_lock lock(mutex_);
  if (std::ranges::any_of(ending_, ended_here)) return;
  ended_.wait(lock, [&] { return !ending_.contains(id); });
}

std::shared_ptr<ServedBinding> Bindings::find(std::uint64_t id) {
  std::lock_guard lock(mutex_);
  const auto found = bindings_.find(id);
  return found != bindings_.end() ? found->second : nullptr;
}

/// If there is no memory to handle its bell, the binding ends, because its client's request is lost.
void Bindings::on_bell(const std::shared_ptr<ServedBinding>& binding, shim::Watcher::Event event) noexcept {
  try {
    if (!event.hung_up && hear(binding)) return;
  } catch (const std::bad_alloc&) {
  }
  end(binding->id());
}

bool Bindings::hear(const std::shared_ptr<ServedBinding>& binding) {
  // Only so many: a client that rings without end must not hold up the clerk. What is left brings us back here.
  for (int i = 0; i < kRingsPerLook; ++i) {
    auto news = shim::receive_bell(binding->bell(), binding->stranger());
    if (news && !news->has_value()) break;
    if (!news || (*news)->message != shim::BellMessage::ring) i += kRingsPerOffer;
    if (news.code() == Errc::peer_gone) return false;
    if (!news) continue;  // a malformed message counts as a ring
    if ((*news)->message == shim::BellMessage::callback) binding->callback_port().offer(std::move((*news)->offered));
    if ((*news)->message == shim::BellMessage::trap) (void)traps_.adopt(binding, std::move((*news)->listener));
    if ((*news)->message == shim::BellMessage::grow) secondary_.grow(binding, std::move((*news)->offered));
  }
  if (binding->gate() == shim::Gate::none || binding->gate() == shim::Gate::trap) return true;
  LRPC_STEP("T13");
  std::size_t waiting = 0;
  associate_callers(binding, binding->astacks(), waiting);
  for (const auto& region : binding->secondary())
    associate_callers(SecondaryRegion::as_binding(region), region->astacks(), waiting);
  if (waiting != 0) estacks_.reclaim(binding->holder(), waiting);
  return true;
}

/// c, T13 · associates an E-stack with each A-stack that has a call and no E-stack. Counts the calls that get none:
/// one search for E-stacks that may leave their A-stacks is enough for all of them.
void Bindings::associate_callers(const std::shared_ptr<ServedBinding>& hold, std::span<ServedAStack> astacks,
                                 std::size_t& waiting) {
  for (ServedAStack& astack : astacks) {
    if (astack.estack.load() != nullptr) continue;
    const std::uint64_t next = astack.linkage.next_generation();
    const shim::CallWord word = shim::load_word(*astack.head);
    if (next == 0 || !(word.is(shim::Turn::called, next) || word.is(shim::Turn::abandoned, next))) continue;
    if (!estacks_.associate(hold, astack, waiting != 0)) ++waiting;
  }
}

void Bindings::count(ServerStatistics& counted) {
  {
    std::lock_guard lock(mutex_);
    counted.bindings = bindings_.size();
    // An ending binding counts until it is revoked; so once the count is 0, all are revoked.
    for (const auto& [id, binding] : ending_) counted.bindings += binding->revoked() ? 0U : 1U;
  }
  counted.astacks_grown = accounts_->all().grown_astacks;
  counted.growths_refused = secondary_.refused();
  estacks_.count(counted);
  pollers_.count(counted);
  traps_.count(counted);
}

}  // namespace lrpc::server
