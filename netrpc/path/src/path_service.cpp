#include "path_service.h"

#include <algorithm>
#include <array>
#include <new>
#include <thread>

#include "group_members.h"
#include "lrpc/detail/server/run.h"
#include "lrpc/detail/shim/call/call_word.h"
#include "resolve.h"
#include "rounds.h"

namespace lrpc::netpath {
namespace {

using std::chrono::milliseconds;
using Clock = PathService::Clock;

/// Longer than the other host itself may take for a BIND.
constexpr milliseconds kBindPatience{30'000};
/// The shortest pause between two BINDs for a name that a client waits for.
constexpr milliseconds kBindPause{250};
/// For agree() with a host, before a binding is made.
constexpr milliseconds kAgreePatience{5'000};
/// Until a host to which there is no way is tried again.
constexpr milliseconds kNoWayPause{100};

using server::failed;

/// The outcome of a command to `at`, while binding.
Status reached(Errc sent, const std::string& at) {
  if (sent == Errc::ok) return {};
  if (sent == Errc::timed_out) return Error{Errc::timed_out, at + " did not answer in time"};
  if (sent == Errc::peer_gone || sent == Errc::host_unreachable || sent == Errc::call_lost)
    return Error{Errc::remote_unavailable, at + " cannot be reached, or no lrpc-netd runs there"};
  if (sent == Errc::message_too_long)
    return Error{sent, at + " could not be asked: the question is longer than a message to it may be"};
  if (sent == Errc::system_error)
    return Error{Errc::limit_reached,
                 at + " could not be asked: this machine's network domain or the other's is at a limit of its own"};
  return Error{sent, at + " refused: " + std::string(describe(sent))};
}

}  // namespace

NetworkPath::Refused PathService::refusal(const Error& error) {
  return {.code = static_cast<std::uint16_t>(error.code), .text = String<512>::cut(error.message())};
}

Status PathService::fits(const Needed& needed, const MessageSizes& carried, const std::string& way) {
  const auto image = [](std::size_t message, std::size_t prologue) {
    return std::min(kMaxImage, message - std::min(message, prologue));
  };
  const auto over = [&](const std::string& name, const char* what, std::size_t size, std::size_t most) {
    return Error{Errc::message_too_long, "procedure " + needed.interface + "." + name + ": its " + what + " may take " +
                                             std::to_string(size) + " bytes, and " + std::to_string(most) +
                                             " are the most that go " + way + ": " + std::to_string(size - most) +
                                             " too many"};
  };
  const std::size_t call = image(carried.request, kPrologue);
  if (needed.call > call) return over(needed.call_name, "arguments", needed.call, call);
  const std::size_t result = image(carried.reply, kReplyPrologue);
  if (needed.result > result) return over(needed.result_name, "results", needed.result, result);
  return {};
}

PathService::BindOutcome PathService::Bind(CallContext& context, const String<255>& name, const String<255>& host,
                                           const String<255>& interface_name, std::uint16_t major_version,
                                           std::uint16_t minor_version, std::uint64_t hash, std::uint32_t wait_ms,
                                           std::uint32_t largest_call, const String<255>& call_name,
                                           std::uint32_t largest_return, const String<255>& return_name) {
  if (!shim::valid_name(name.view()))  // it goes to other hosts, and into what is shown and logged
    return raise(refusal({Errc::invalid_argument, "nothing can be exported under a name such as this"}));
  const Needed needed{interface_name.str(), largest_call, call_name.str(), largest_return, return_name.str()};
  constexpr MessageSizes kAtMost{kMaxCallMessage, kReplyPrologue + kMaxImage};
  if (Status small = fits(needed, kAtMost, "to or from any other host"); !small) return raise(refusal(small.error()));
  if (is_foreign(name, host)) return raise(NetworkPath::DeclarationWanted{});
  std::optional<Group> group = transport_.group(host.view());
  auto claim = accounts_.claim(context.binding_id(), context.caller().uid, group ? group->members.size() : 1);
  if (!claim) return raise(refusal(claim.error()));
  const std::shared_ptr<Account> of_user = (*claim)->of_user;
  const std::size_t asked = group ? std::min(group->members.size(), kHostsAtOnce) : 1;
  const Share share = accounts_.import(*of_user, asked);  // a thread each
  if (!share.granted())
    return raise(refusal({Errc::limit_reached, "this user has as many calls under way as one user may have"}));
  BindMessage message;
  message.client_boot = boot_;
  message.name = name.str();
  message.interface = {interface_name.str(), major_version, minor_version, hash};
  message.wait_ms = wait_ms;
  const auto make_path = [&](HostAddress address) {
    CallAccounts accounts =
        group ? accounts_.to_group(group->members.size(), **claim) : accounts_.to_host(address, **claim);
    return std::make_shared<Path>(*this, address, std::move(accounts), hash, *std::move(claim));
  };
  if (group) {
    auto path = make_path(group->address);
    const Status bound = bind_members(context, path, host.str(), *std::move(group), needed, std::move(message));
    if (!bound) return raise(refusal(bound.error()));
    return NetworkPath::BindResults{.path = context.grant<NetworkPath::Path>(std::move(path)), .to_group = true};
  }
  const auto address = resolve(host.str());
  if (!address) return raise(refusal(address.error()));
  if (options_.own_address != 0 && *address == options_.own_address)
    return raise(refusal({Errc::invalid_argument,
                          "host '" + host.str() + "' is this machine: import '" + name.str() + "' without '@'"}));
  const std::string at = "host '" + host.str() + "'";
  const uid_t user = context.caller().uid;
  if (const std::lock_guard lock(mutex_); !vain_.may_ask(user, *address, options_.now()))
    return raise(refusal(
        {Errc::limit_reached,
         "this user has recently asked too many hosts that did not answer or refused: try again in some minutes"}));
  const Status met = agree_with(*address, at, needed, kAgreePatience);
  if (!met) return raise(refusal(met.error()));
  // The path exists before the other host binds: if memory runs out afterwards, the path's end tells that host.
  auto path = make_path(*address);
  const auto key = bind_at(&context, *address, at, std::move(message), kBindPatience, &path->accounts);
  if (!key) return raise(refusal(key.error()));
  path->bound(*key);
  {
    const std::lock_guard lock(mutex_);
    list_locked(path);
    vain_.bound(user, *address);
  }
  return NetworkPath::BindResults{.path = context.grant<NetworkPath::Path>(std::move(path)), .to_group = false};
}

Status PathService::agree_with(HostAddress host, const std::string& at, const Needed& needed, milliseconds patience) {
  MessageSizes carried;
  Errc met = transport_.agree(host, carried, std::min(patience, kAgreePatience));
  if (met == Errc::timed_out || met == Errc::host_unreachable || met == Errc::call_lost)
    met = Errc::peer_gone;  // here they all mean that the host is unavailable
  if (unsent(met)) return reached(met, at).error();
  if (met != Errc::ok)
    return Error{met == Errc::peer_gone ? Errc::remote_unavailable : met, at + " " + transport_.why(host, met)};
  return fits(needed, carried, "between this host and " + at);
}

void PathService::list_locked(const std::shared_ptr<Path>& path) {
  silence_.heard(path->host, options_.now());
  paths_.emplace(place_of(*path), path);
}

/// The other host waits for a name for some seconds only, and not while its lrpcd is being restarted: for a client that
/// waits longer, this repeats the BIND.
Result<BindingKey> PathService::bind_at(const CallContext* caller, HostAddress host, const std::string& at,
                                        BindMessage message, milliseconds patience, const CallAccounts* counted) {
  const auto began = Clock::now();
  const bool for_ever = message.wait_ms == shim::ImportRequest::kForever;
  const std::uint32_t wait_ms = message.wait_ms;
  std::array<std::byte, 2048> reply;
  for (;;) {
    const auto waited = std::chrono::floor<milliseconds>(Clock::now() - began).count();
    if (!for_ever) message.wait_ms = static_cast<std::uint32_t>(std::max<std::int64_t>(wait_ms - waited, 0));
    std::size_t size = 0;
    const std::string request = encode(message);
    const auto asked = Clock::now();
    Errc sent = Errc::ok;
    {
      const Share question = counted != nullptr ? counted->question() : Share();
      if (!question.granted())
        return Error{Errc::limit_reached, "this user has as many calls to " + at + " under way as one user may have"};
      sent = transport_.call(host, static_cast<std::uint16_t>(Command::bind), bytes_of(request), reply, size, patience,
                             {});
    }
    if (Status there = reached(sent, at); !there) return there.error();
    auto answer = decode_bind_answer(std::span(reply).first(std::min(size, reply.size())));
    if (!answer) return Error{Errc::bad_message, at + " speaks another protocol"};
    if (answer->code == Errc::ok) return answer->key;
    // Nobody waits for a name for a client that has gone.
    const bool waits = caller != nullptr && !caller->abandoned();
    const bool without_lrpcd = answer->code == Errc::no_nameserver;
    const bool may_come = without_lrpcd || answer->code == Errc::name_unknown || answer->code == Errc::peer_gone;
    // To the importer no_nameserver would mean its own machine's lrpcd.
    if (!may_come || message.wait_ms == 0 || !waits)
      return Error{without_lrpcd ? Errc::remote_unavailable : answer->code, at + ": " + answer->text};
    // A host that has as many waiting BINDs as it may have answers at once.
    if (Clock::now() - asked < kBindPause)
      std::this_thread::sleep_for(std::min(kBindPause, milliseconds(message.wait_ms)));
  }
}

/// Makes a CALL. `answer` gets the reply, if it makes sense: a view into `reply`. While there is no way to the host,
/// nothing has been executed: repeats the CALL until its time is over, the path ends, or `caller` (null: nobody) no
/// longer waits.
Errc PathService::deliver(const Path& path, const CallContext* caller, CallPrologue prologue,
                          std::span<const std::byte> image, std::span<std::byte> reply,
                          std::optional<CallAnswer>& answer) {
  std::array<std::byte, kMaxCallMessage> room;
  const std::span request = std::span(room).first(kPrologue + image.size());
  // The client may change its image meanwhile: from here on there is a copy.
  std::ranges::copy(image, room.begin() + kPrologue);
  const milliseconds limit(prologue.remaining_ms);
  const auto began = limit.count() != 0 ? Clock::now() : Clock::time_point();
  milliseconds left = limit.count() != 0 ? limit : milliseconds(kNoLimit);
  const Gone client_gone = gone(path);
  for (;;) {
    encode_prologue(prologue, image.size(), request.first<kPrologue>());
    std::size_t size = 0;
    const Errc sent =
        transport_.call(path.host, static_cast<std::uint16_t>(Command::call), request, reply, size, left, client_gone);
    if (sent == Errc::ok) answer = decode_call_answer(reply.first(std::min(size, reply.size())));
    if (sent != Errc::host_unreachable) return sent;
    if (path.has_ended()) return Errc::peer_gone;
    if (caller != nullptr && caller->abandoned()) return Errc::call_cancelled;
    {
      std::lock_guard lock(mutex_);
      if (silence_.over(path.host, options_.now())) return Errc::peer_gone;
    }
    std::this_thread::sleep_for(std::min(kNoWayPause, left));
    if (limit.count() == 0) continue;
    left = limit - std::chrono::floor<milliseconds>(Clock::now() - began);
    if (left.count() <= 0) return Errc::timed_out;
    prologue.remaining_ms = static_cast<std::uint32_t>(left.count());
  }
}

NetworkPath::CallResults PathService::call(const CallContext* caller, Path& path, const CallPrologue& prologue,
                                           std::span<const std::byte> image, Buffer& results) {
  if (path.has_ended()) return {.status = failed(Errc::binding_revoked), .ended = true};
  const Share share = path.accounts.call();
  if (!share.granted()) return {.status = failed(Errc::limit_reached), .ended = false};
  if (path.foreign) return call_foreign(caller, path, prologue, image, results);
  if (path.members) return call_first(path, prologue, image, results);
  std::array<std::byte, kMaxCallMessage> reply;
  std::optional<CallAnswer> answer;
  const Errc sent = deliver(path, caller, prologue, image, reply, answer);
  if ((sent == Errc::timed_out && prologue.remaining_ms != 0) || sent == Errc::call_cancelled)
    return {.status = failed(Errc::call_aborted), .ended = false};
  if (wanting(sent)) return {.status = failed(what_wants(sent)), .ended = false};
  if (sent == Errc::call_lost) return {.status = failed(sent), .ended = false};
  if (!answer || !results.assign(answer->image)) {
    // Nobody knows whether the call was executed; no later one is.
    path.end();
    return {.status = failed(Errc::call_failed), .ended = true};
  }
  if (answer->ended) path.end();
  return {.status = answer->status, .ended = answer->ended};
}

Result<NetworkPath::CallResults> PathService::Call(CallContext& context, Path& path, std::uint16_t number,
                                                   std::uint32_t limit_ms, std::span<const std::byte> image,
                                                   Buffer& results) {
  return call(&context, path, {path.key(), path.hash, number, false, limit_ms}, image, results);
}

/// The sender does not wait: only the deadline limits the call.
void PathService::Send(CallContext& context, Path& path, std::uint16_t number, std::span<const std::byte> image) {
  std::uint32_t left_ms = 0;
  if (const auto left = context.remaining())
    left_ms = shim::ImportRequest::wire_timeout(std::max(std::chrono::ceil<milliseconds>(*left), milliseconds(1)));
  Buffer none;
  (void)call(nullptr, path, {path.key(), path.hash, number, true, left_ms}, image, none);
}

Result<NetworkPath::ExportsResults> PathService::Exports(CallContext&, const String<255>& name) {
  const bool exported = shim::valid_name(name.view()) && options_.exported && options_.exported(name.view());
  return NetworkPath::ExportsResults{.exported = exported, .address = options_.own_address};
}

PathService::Path::Path(PathService& service, HostAddress at, CallAccounts counted_in, std::uint64_t of,
                        std::unique_ptr<Claim> claim)
    : host(at),
      accounts(std::move(counted_in)),
      hash(of),
      local_binding(claim ? claim->binding : 0),
      service_(service),
      claim_(std::move(claim)),
      unbind_{{at, {}, {}}} {}

PathService::Path::~Path() { service_.let_go(*this); }

void PathService::let_go(Path& path) noexcept {
  path.claim_.reset();  // first: a client that sees one path less may bind another
  {
    std::lock_guard lock(mutex_);
    paths_.erase(place_of(path));
    groups_.erase(place_of(path));
    if (path.foreign) --foreign_;
    if (path.key() == BindingKey()) return;
    // Even if the path has ended here: the other host may not know.
    path.unbind_.front().since = options_.now();
    unbinds_.splice(unbinds_.end(), path.unbind_);
  }
  if (on_work) on_work();
}

void PathService::client_gone(std::uint64_t binding) noexcept {
  Unbinds unbinds;
  const auto tell = [&](const Path& path) {
    if (path.key() == BindingKey() || path.has_ended()) return;
    unbinds.push_back({path.host, path.key(), options_.now()});
  };
  try {
    std::shared_ptr<Path> group;  // released after the lock
    std::unique_lock lock(mutex_);
    for (Listed* const listed : {&paths_, &groups_})
      for (auto one = first_of(*listed, binding); one != first_of(*listed, binding + 1); ++one)
        one->first.second->left.store(options_.now());
    for (auto one = first_of(paths_, binding); one != first_of(paths_, binding + 1); ++one) tell(*one->first.second);
    if (const auto found = first_of(groups_, binding); found != first_of(groups_, binding + 1)) {
      group = found->second.lock();
      groups_.erase(found);  // its members are not bound anew
    }
    lock.unlock();
    if (group != nullptr) {
      const std::lock_guard of_group(group->members->mutex);
      for (const Members::Member& member : group->members->all)
        if (member.bound()) tell(*member.path);
    }
  } catch (const std::bad_alloc&) {  // the hosts are told when the calls have returned
  }
  if (unbinds.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    unbinds_.splice(unbinds_.end(), unbinds);
  }
  if (on_work) on_work();
}

std::size_t PathService::paths() const {
  std::lock_guard lock(mutex_);
  return paths_.size() + foreign_;
}

}  // namespace lrpc::netpath
