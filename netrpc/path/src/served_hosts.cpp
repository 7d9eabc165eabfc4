#include "served_hosts.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "lrpc/detail/server/run.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/detail/shim/most_of_one.h"

namespace lrpc::netpath {
namespace {

using std::chrono::milliseconds;

/// The longest that one BIND waits for a name here; for a client that waits longer, its host repeats the BIND.
constexpr milliseconds kLongestWait{10'000};
/// The first and the longest pause between two attempts to take an A-stack, while abandoned calls hold them. A call
/// without a limit counts its pauses, because no call finishes while the machine stands still.
constexpr milliseconds kAStackPause{1};
constexpr milliseconds kLongestAStackPause{20};

constexpr std::string_view kNoHandles = "handles do not go to groups, import from one host";

using server::failed;

std::size_t put(std::string_view message, std::span<std::byte> reply) noexcept {
  if (message.size() > reply.size()) return 0;
  std::memcpy(reply.data(), message.data(), message.size());
  return message.size();
}

/// The part of an error that another host may read. A clerk's refusal and a mismatch of interfaces are meant for it;
/// other texts tell of this machine's paths and processes, so it gets their codes only.
Error for_strangers(Error error) {
  const bool meant = error.code == Errc::not_permitted || error.code == Errc::interface_mismatch ||
                     error.code == Errc::version_mismatch || error.code == Errc::hash_mismatch;
  if (meant) return error;
  const Errc code = shim::code_for_peer(error.code);
  return {code, std::string(describe(code))};
}

}  // namespace

class ServedHosts::Served {
 public:
  Served(ServedHosts& hosts, const Principal& from, Command command) : hosts_(hosts) {
    std::lock_guard lock(hosts_.mutex_);
    at_ = hosts_.hosts_.try_emplace(from).first;
    host().heard = hosts_.options_.now();
    Holding& commands = host().commands;
    const std::size_t all = hosts_.options_.max_commands;
    const std::size_t most = shim::most_of_one(commands.amount(), hosts_.commands_.amount(), all);
    share_ = {{&commands, 1, std::min(most, hosts_.options_.max_commands_per_host)}, {&hosts_.commands_, 1, all}};
    // A PING that is not served, or for which there is no memory, says nothing of what the host knows: until one has
    // been served, none of its bindings ends because it was not named.
    if (command == Command::ping) host().names_all = false;
    if (!share_.granted() && host().unused()) hosts_.hosts_.erase(at_);
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served() {
    // A refused command is not counted, so it does not keep the host, which may have gone since.
    if (!share_.granted()) return;
    std::lock_guard lock(hosts_.mutex_);
    // The host is there: sweep() removes none with commands under way.
    share_.give();
    if (host().unused()) hosts_.hosts_.erase(at_);
  }
  [[nodiscard]] bool granted() const noexcept { return share_.granted(); }
  /// Precondition: granted().
  [[nodiscard]] Host& host() const noexcept { return at_->second; }

 private:
  ServedHosts& hosts_;
  Hosts::iterator at_;
  Share share_;
};

/// Ends the calls under way: only they still refer to these bindings.
ServedHosts::Gone::~Gone() {
  for (const auto& [id, remote] : bindings)
    if (remote.use_count() > 1) remote->binding.end();
}

std::uint16_t ServedHosts::serve(const Principal& from, Arrival arrived, std::uint16_t command,
                                 std::span<const std::byte> request, std::span<std::byte> reply, std::size_t& size) {
  const auto refused = [](Errc code) { return static_cast<std::uint16_t>(code); };
  size = 0;
  if (static_cast<Command>(command) == Command::unbind) {
    // Not counted, so that it is served even if calls take all commands that the host may have.
    const auto key = decode_unbind(request);
    if (!key) return refused(Errc::bad_message);
    return unbind(from, *key), std::uint16_t{0};
  }
  const Served served(*this, from, static_cast<Command>(command));
  if (!served.granted()) return refused(Errc::limit_reached);
  Host& host = served.host();
  std::optional<std::size_t> answered;
  switch (static_cast<Command>(command)) {
    case Command::bind:
      if (const auto message = decode_bind(request)) answered = bind(from, host, arrived, *message, reply);
      break;
    case Command::call:
      if (const auto message = decode_call(request)) answered = call(host, *message, false, reply);
      break;
    case Command::group_call:
      if (const auto message = decode_group_call(request, boot_)) answered = call(host, *message, true, reply);
      break;
    case Command::unbind: break;  // see above
    case Command::ping:
      if (const auto message = decode_ping(request)) answered = ping(host, arrived, *message, reply);
      break;
  }
  size = answered.value_or(0);
  return answered ? std::uint16_t{0} : refused(Errc::bad_message);
}

/// A host that has another boot id than before has forgotten its bindings: they move to `gone`, which the caller
/// destroys outside of the lock. False: the command is of an earlier life, and late.
bool ServedHosts::learn_boot_locked(Host& host, std::uint64_t boot, Arrival arrived, Gone& gone) {
  if (host.boot == boot) return true;
  if (arrived < host.since) return false;
  if (host.boot != 0) gone.bindings.swap(host.bindings);
  host.names_all = false;
  host.boot = boot;
  host.since = arrived;
  return true;
}

std::size_t ServedHosts::bind(const Principal& from, Host& host, Arrival arrived, const BindMessage& message,
                              std::span<std::byte> reply) {
  const auto refused = [&](const Error& error) {
    return put(encode(BindAnswer{error.code, {}, error.message()}), reply);
  };
  // A name that is not exported to the network is unknown to it, whatever this machine has.
  if (!shim::valid_name(message.name) || message.name == shim::kNetworkName || !options_.exported ||
      !options_.exported(message.name))
    return refused({Errc::name_unknown, "no '" + message.name + "' is exported to the network there"});
  if (options_.short_of_memory()) return refused({Errc::limit_reached, "it is short of memory"});
  const Error restarted{Errc::peer_gone, "the host has restarted meanwhile"};
  auto gone = std::make_optional<Gone>();
  Share binds;
  Share binding_of_all;
  // A BIND that waits for a name holds a thread and a connection to the nameserver, and the other host chooses the
  // names: so the number of waiting BINDs is limited, and each host has its share.
  Share waits;
  {
    std::lock_guard lock(mutex_);
    if (!learn_boot_locked(host, message.client_boot, arrived, *gone)) return refused(restarted);
    const std::size_t has = host.bindings.size() + host.binds.amount();
    const std::size_t most =
        std::min(shim::most_of_one(has, bindings_.amount(), options_.max_bindings), options_.max_bindings_per_host);
    binds = {{&host.binds, 1, most - std::min(most, host.bindings.size())}};
    if (!binds.granted()) return refused({Errc::limit_reached, "this host has as many bindings there as it may have"});
    binding_of_all = {{&bindings_, 1, options_.max_bindings}};
    if (!binding_of_all.granted()) return refused({Errc::limit_reached, "other hosts have all bindings there"});
    if (message.wait_ms != 0) {
      const std::size_t all = options_.max_waiting_binds;
      const std::size_t share = shim::most_of_one(host.waiting.amount(), waiting_.amount(), all);
      waits = {{&host.waiting, 1, std::min(share, options_.max_waiting_binds_per_host)}, {&waiting_, 1, all}};
    }
  }
  gone.reset();
  // call() waits for A-stacks itself, with the caller's limit.
  ImportOptions import{.nameserver = options_.nameserver, .supply = AStackSupply::fail};
  if (message.wait_ms != 0 && waits.granted()) import.timeout = std::min(milliseconds(message.wait_ms), kLongestWait);
  auto binding = client::RawBinding::import(message.name, message.interface.view(), from, import);
  if (!binding) return refused(for_strangers(binding.error()));
  std::shared_ptr<Remote> remote;  // destroyed after the lock
  std::lock_guard lock(mutex_);
  if (host.boot != message.client_boot) return refused(restarted);
  const BindingKey key{boot_, ++last_binding_, shim::make_nonce()};
  remote = std::make_shared<Remote>(*std::move(binding), key, message.interface.hash, std::move(binding_of_all));
  const std::size_t size = put(encode(BindAnswer{Errc::ok, key, {}}), reply);
  remote->named = host.heard;
  host.bindings.emplace(key.id, remote);  // the last that can fail: nobody knows of it yet
  return size;
}

std::shared_ptr<ServedHosts::Remote> ServedHosts::find(Host& host, const CallPrologue& prologue) {
  std::lock_guard lock(mutex_);
  const auto found = host.bindings.find(prologue.key.id);
  if (found == host.bindings.end()) return nullptr;
  Remote& remote = *found->second;
  if (remote.key != prologue.key || remote.hash != prologue.hash) return nullptr;
  remote.named = host.heard;
  return found->second;
}

std::size_t ServedHosts::call(Host& host, const CallMessage& message, bool to_group, std::span<std::byte> reply) {
  if (reply.size() < kReplyPrologue) return 0;
  const auto answer = [&](std::uint16_t status, bool ended, std::size_t size) {
    encode_reply_prologue(status, ended, size, reply.first<kReplyPrologue>());
    return kReplyPrologue + size;
  };
  const CallPrologue& prologue = message.prologue;
  // The boot id first: a call that was meant for another life of this broker is not executed in this one.
  if (prologue.key.boot != boot_) return answer(failed(Errc::call_failed), true, 0);
  const auto remote = find(host, prologue);
  if (remote == nullptr) return answer(failed(Errc::call_failed), true, 0);
  const auto procedures = remote->binding.procedures();
  const bool handles = prologue.procedure < procedures.size() && procedures[prologue.procedure].handles;
  if (to_group && handles) {  // our library refuses such calls, but the caller may use another
    const std::size_t size = put(kNoHandles, reply.subspan(kReplyPrologue));
    const std::uint16_t status = failed(Errc::not_supported);
    return answer(size == 0 ? status : static_cast<std::uint16_t>(status | shim::call_status::kTold), false, size);
  }

  const bool limited = prologue.remaining_ms != 0;
  milliseconds limit = limited ? milliseconds(prologue.remaining_ms) : kNoLimit;
  std::optional<Clock::time_point> until;  // set when there is something to wait for
  milliseconds patience = astack_patience;
  const auto room = reply.subspan(kReplyPrologue);
  std::size_t size = 0;
  std::uint16_t status = 0;
  for (milliseconds pause = kAStackPause;; pause = std::min(2 * pause, kLongestAStackPause)) {
    status = prologue.one_way ? remote->binding.send(prologue.procedure, message.image, limit)
                              : remote->binding.call(prologue.procedure, message.image, room, size, limit);
    if (status != failed(Errc::no_astack)) break;
    const auto now = Clock::now();
    if (limited && !until) until = now + limit;
    if (limited ? now >= *until : patience <= milliseconds(0)) {
      status = failed(limited ? Errc::call_aborted : Errc::limit_reached);
      break;
    }
    std::this_thread::sleep_for(std::min(pause, limit));
    patience -= pause;
    if (limited) limit = std::max(milliseconds(1), std::chrono::ceil<milliseconds>(*until - Clock::now()));
  }
  if (!remote->binding.revoked()) return answer(status, false, size);
  drop(host, *remote);
  if (status == failed(Errc::binding_revoked)) return answer(status, true, 0);
  return answer(status, true, size);
}

void ServedHosts::drop(Host& host, const Remote& remote) {
  Gone gone;
  std::lock_guard lock(mutex_);
  if (const auto found = host.bindings.find(remote.key.id); found != host.bindings.end())
    gone.bindings.insert(host.bindings.extract(found));
}

void ServedHosts::unbind(const Principal& from, const BindingKey& key) {
  Gone gone;
  std::lock_guard lock(mutex_);
  const auto host = hosts_.find(from);
  if (host == hosts_.end()) return;
  host->second.heard = options_.now();
  auto& bindings = host->second.bindings;
  const auto found = bindings.find(key.id);
  if (found == bindings.end() || found->second->key != key) return;
  gone.bindings.insert(bindings.extract(found));
  if (host->second.unused()) hosts_.erase(host);
}

std::size_t ServedHosts::ping(Host& host, Arrival arrived, const PingMessage& message, std::span<std::byte> reply) {
  Gone gone;
  PingAnswer answer{boot_, {}};
  {
    std::lock_guard lock(mutex_);
    const bool present = learn_boot_locked(host, message.client_boot, arrived, gone);
    for (const std::uint64_t id : message.bindings) {
      const auto found = host.bindings.find(id);
      if (present && found != host.bindings.end()) found->second->named = host.heard;
      answer.alive.push_back(present && found != host.bindings.end() && !found->second->binding.revoked());
    }
    if (present) host.names_all = message.bindings.size() < kMaxPinged;
  }
  return put(encode(answer), reply);
}

void ServedHosts::forget(HostAddress address, Arrival last) {
  Gone gone;  // binding ids are unique, so merge() moves all
  std::lock_guard lock(mutex_);
  for (auto host = hosts_.begin(); host != hosts_.end();) {
    // If the first command of its present life came after `last`, that is the new life: the former one's bindings went
    // then.
    const bool meant = host->first.host == address && host->second.since <= last;
    if (meant) {
      gone.bindings.merge(host->second.bindings);
      host->second.boot = 0;
      host->second.since = last + 1;
    }
    host = meant && host->second.unused() ? hosts_.erase(host) : std::next(host);
  }
}

void ServedHosts::stood_still(Clock::duration time) {
  const Clock::time_point now = options_.now();
  const std::lock_guard lock(mutex_);
  for (auto& [key, host] : hosts_) {
    host.heard = std::min(host.heard + time, now);
    for (auto& [id, remote] : host.bindings) remote->named = std::min(remote->named + time, now);
  }
}

void ServedHosts::sweep(Clock::time_point now) {
  Gone gone;
  std::lock_guard lock(mutex_);
  for (auto host = hosts_.begin(); host != hosts_.end();) {
    const bool silent = now - host->second.heard > options_.forget;
    auto& bindings = host->second.bindings;
    for (auto one = bindings.begin(); one != bindings.end();) {
      const auto at = one++;
      const bool unknown = host->second.names_all && now - at->second->named > options_.forget;
      if (silent || unknown || at->second->binding.revoked()) gone.bindings.insert(bindings.extract(at));
    }
    // A command that is being served keeps the host, but not its bindings. A host with neither is not remembered,
    // whatever `forget` is.
    host = host->second.unused() ? hosts_.erase(host) : std::next(host);
  }
}

std::size_t ServedHosts::known() const {
  std::lock_guard lock(mutex_);
  return hosts_.size();
}

void ServedHosts::count(BrokerStatistics& statistics) const {
  std::lock_guard lock(mutex_);
  for (const auto& [address, host] : hosts_) {
    statistics.bindings += host.bindings.size();
    if (!host.bindings.empty()) ++statistics.hosts;
  }
}

}  // namespace lrpc::netpath
