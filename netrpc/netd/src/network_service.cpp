#include "network_service.h"

#include <algorithm>
#include <new>
#include <utility>

#include "lrpc/netrpc/blocking_call.h"
#include "lrpc/netrpc/session_cache.h"
#include "lrpc/netrpc/wire.h"
#include "netrpc/src/attempt.h"
#include "principal.h"
#include "waiting_here.h"

namespace lrpc::netd {

namespace {

using netrpc::Message;
using netrpc::Session;
using netrpc::SessionRef;
using netrpc::Shepherd;
using netrpc::Time;

constexpr netrpc::Duration kForget = std::chrono::seconds(60);
/// How often to check which callers have gone.
constexpr netrpc::Duration kLook = std::chrono::seconds(5);
/// Replies up to this size are copied into a small buffer: they are kept until they are acknowledged.
constexpr std::size_t kSmallReply = 1500;
/// Command 0: all commands.
constexpr netrpc::ParticipantSet kAnyone{.protocol = netrpc::protocol_numbers::kNetworkPath, .local = {}, .remote = {}};

/// A refusal that a peer has sent.
Errc refused_with(std::uint16_t code) noexcept {
  switch (static_cast<Errc>(code)) {
    case Errc::not_permitted: return Errc::not_permitted;
    case Errc::limit_reached: return Errc::limit_reached;
    default: return Errc::bad_message;
  }
}

}  // namespace

NetworkService::NetworkService(netrpc::Host& host, netrpc::Protocol& below, std::vector<netrpc::Protocol*> groups,
                               unsigned receivers)
    : Protocol(host, "lrpc-netd"),
      below_(below),
      groups_(std::move(groups)),
      receivers_(receivers),
      forget_([this] { forget_unused(); }),
      look_([this] { look_who_has_gone(); }),
      workers_(
          kWorkers, kNoLimit, [this](Command&& command) { serve_in_worker(std::move(command)); },
          [this](Rebooted rebooted) {
            if (netpath::RemoteService* const service = service_.load())
              service->peer_rebooted(rebooted.host, rebooted.last);
          }),
      self_(std::make_shared<NetworkService*>(this)) {
  netrpc::control::MaximumMessage maximum;
  if (netrpc::control::ask(below_, maximum) != Errc::ok) maximum.size = 1024;
  // In one buffer, with the headers in front, so that nothing on the way down has to be copied for room.
  maximum.size = std::min(maximum.size, Message::kMaxContiguous - Message::kHeadroom);
  max_message_ = maximum.size - std::min(maximum.size, kRefusal);
}

NetworkService::~NetworkService() {
  self_.reset();
  (void)workers_.left();
}

Status NetworkService::enable() {
  if (auto enabled = below_.open_enable(*this, kAnyone); !enabled) return enabled;
  enabled_ = true;
  for (netrpc::Protocol* const group : groups_)
    if (auto enabled = group->open_enable(*this, kAnyone); !enabled) return enabled;
  return {};
}

void NetworkService::serve_with(netpath::RemoteService& service) {
  service_ = &service;
  const Shepherd inside(host().monitor());
  serving_ = true;
  host().peers().watch([self = std::weak_ptr(self_)](netrpc::HostAddress rebooted, netrpc::BootId, netrpc::BootId) {
    // Watchers stay as long as the host does.
    if (const auto alive = self.lock()) (*alive)->workers_.put_rebooted({rebooted.value, (*alive)->last_arrival_});
  });
}

void NetworkService::stop_serving() noexcept {
  {
    const Shepherd inside(host().monitor());
    serving_ = false;
    if (!std::exchange(enabled_, false)) return;
    below_.open_disable(*this, kAnyone);
    for (netrpc::Protocol* const group : groups_) group->open_disable(*this, kAnyone);
  }
  workers_.stop();
  const Shepherd inside(host().monitor());
  (void)workers_.left();
  (void)host().engine().wait(
      host(), [this] { return served_by_receivers_ == 0; }, Time::max());
  service_ = nullptr;
}

void NetworkService::stop_calling() noexcept {
  const Shepherd inside(host().monitor());
  calling_ = false;
  host().engine().wake(host());
}

// ---- calls to other hosts ----

Errc NetworkService::transport_outcome(Errc outcome) noexcept {
  switch (outcome) {
    case Errc::call_aborted: return Errc::timed_out;
    case Errc::not_permitted:
    case Errc::message_too_long:
    case Errc::call_lost:
    case Errc::host_unreachable: return outcome;
    case Errc::limit_reached:
    case Errc::system_error: return Errc::system_error;
    default: return Errc::peer_gone;
  }
}

Result<SessionRef> NetworkService::session_to(netrpc::HostAddress to, std::uint16_t command) noexcept try {
  const Called key{host().hash_seed(), to, command};
  if (SessionRef* const known = sessions_.resolve(key)) return *known;
  netrpc::ParticipantSet participants;
  participants.protocol = netrpc::protocol_numbers::kNetworkPath;
  participants.local.host = host().address();
  participants.remote.host = to;
  participants.remote.command = command;
  netrpc::Protocol* const way = way_to(to);
  if (way == nullptr) return Errc::host_unreachable;
  auto opened = way->open(*this, participants);
  if (!opened) return opened;
  if (!forget_.waiting()) host().events().schedule(forget_, kForget);
  sessions_.bind(key, *opened);
  return opened;
} catch (const std::bad_alloc&) {
  return Errc::limit_reached;
}

/// Drops the sessions on which no call waits: opening one again costs little.
void NetworkService::forget_unused() noexcept {
  sessions_.unbind_if([](const Called&, const SessionRef& session) { return session->references() == 1; });
  if (!sessions_.empty()) host().events().schedule(forget_, kForget);
}

netrpc::Protocol* NetworkService::way_to(netrpc::HostAddress host) noexcept {
  if (!netrpc::Groups::is_group(host)) return &below_;
  for (netrpc::Protocol* const group : groups_)
    if (netrpc::control::Members members; netrpc::control::ask(*group, members) == Errc::ok && members.group == host)
      return group;
  return nullptr;
}

std::optional<netpath::Group> NetworkService::group(std::string_view name) {
  const Shepherd inside(host().monitor());
  const auto found = std::ranges::find_if(groups_, [&](const Protocol* one) { return one->name() == name; });
  netrpc::control::Members members;
  if (found == groups_.end() || netrpc::control::ask(**found, members) != Errc::ok) return std::nullopt;
  netpath::Group group;
  group.address = members.group.value;
  for (const netrpc::HostAddress member : members.hosts) group.members.push_back(member.value);
  const auto opened = session_to(members.group, kAgree);
  // If no member can be reached yet, the import's BIND says why.
  group.sizes.request = group.sizes.reply = opened ? longest(**opened) : max_message_;
  return group;
}

/// The calling thread's transaction. With a collation, passes on the answer of each member of a group. In the list of
/// calls under way as long as it lives.
class NetworkService::Waiting final : public netrpc::AwaitedReply {
 public:
  Waiting(NetworkService& service, netpath::Collation* collation, const netpath::Gone& gone) noexcept
      : AwaitedReply(service.host()), service_(service), collation_(collation), gone_(gone), next_(service.waiting_) {
    service_.waiting_ = this;
    if (next_ != nullptr) next_->before_ = this;
  }
  ~Waiting() override {
    (before_ != nullptr ? before_->next_ : service_.waiting_) = next_;
    if (next_ != nullptr) next_->before_ = before_;
  }
  /// Notes whether its caller has gone. Returns the next one.
  Waiting* look() noexcept {
    in_vain_ = gone_ && gone_();
    return next_;
  }
  [[nodiscard]] bool in_vain() const noexcept { return in_vain_; }
  [[nodiscard]] bool counts(const Message& reply) noexcept override {
    if (collation_ == nullptr) return true;
    Message said = reply.share();
    return served(said) == Errc::ok && said.flatten() && collation_->counts(said.bytes());
  }
  void collated(netrpc::HostAddress member, Errc outcome, Message reply) noexcept override {
    if (collation_ == nullptr) return;
    if (outcome == Errc::ok) outcome = served(reply);
    if (outcome == Errc::ok && !reply.flatten()) outcome = Errc::limit_reached;
    collation_->said(member.value, outcome, outcome == Errc::ok ? reply.bytes() : std::span<const std::byte>());
  }
  /// Removes NetworkService's header from a reply. Returns the refusal that it holds, or ok.
  [[nodiscard]] static Errc served(Message& reply) noexcept {
    Message::Header<kRefusal> code;
    reply.pop(code);
    if (!code) return Errc::bad_message;
    const auto refused = netrpc::WireReader(code.bytes).get<std::uint16_t>();
    return refused == 0 ? Errc::ok : refused_with(refused);
  }

 private:
  NetworkService& service_;
  netpath::Collation* const collation_;
  const netpath::Gone& gone_;
  bool in_vain_ = false;
  Waiting* before_ = nullptr;
  Waiting* next_;
};

/// Ends calls whose callers have gone: a host may report for ever that it is still at work.
void NetworkService::look_who_has_gone() noexcept {
  if (waiting_ == nullptr) return;
  for (Waiting* one = waiting_; one != nullptr;) one = one->look();
  host().engine().wake(host());
  host().events().schedule(look_, kLook);
}

Errc NetworkService::call(netpath::HostAddress to, std::uint16_t command, std::span<const std::byte> request,
                          std::span<std::byte> reply, std::size_t& reply_size, std::chrono::milliseconds timeout,
                          const netpath::Gone& gone) noexcept {
  if (netrpc::Groups::is_group({to})) return Errc::host_unreachable;
  return call(netrpc::HostAddress{to}, command, request, reply, reply_size, nullptr, timeout, gone);
}

Errc NetworkService::call_group(netpath::HostAddress group, std::uint16_t command, std::span<const std::byte> request,
                                std::span<std::byte> reply, std::size_t& reply_size, netpath::Collation& collation,
                                std::chrono::milliseconds timeout, const netpath::Gone& gone) noexcept {
  return call(netrpc::HostAddress{group}, command, request, reply, reply_size, &collation, timeout, gone);
}

Errc NetworkService::call(netrpc::HostAddress to, std::uint16_t command, std::span<const std::byte> request,
                          std::span<std::byte> reply, std::size_t& reply_size, netpath::Collation* collation,
                          std::chrono::milliseconds timeout, const netpath::Gone& gone) noexcept {
  if (request.size() > max_message_) return Errc::message_too_long;
  const Shepherd inside(host().monitor());
  if (!calling_) return Errc::peer_gone;
  ++statistics_.calls;
  const Result<SessionRef> opened = session_to(to, command);
  Message message = Message::copy_of(host().pool(), request);
  if (!opened || !message.allocated()) {
    ++statistics_.calls_failed;
    return opened ? Errc::system_error : transport_outcome(opened.code());
  }
  const SessionRef& session = *opened;
  const WaitingHere here;
  Waiting waiting(*this, collation, gone);
  session->call(std::move(message), waiting, timeout == kNoLimit ? netrpc::Duration(kNoLimit) : timeout);
  if (gone && !look_.waiting()) netrpc::attempt([this] { host().events().schedule(look_, kLook); });
  // The protocols keep the deadline: their timers complete the transaction.
  if (!waiting.done())
    (void)host().engine().wait(
        host(), [&] { return waiting.done() || waiting.in_vain() || !calling_; }, Time::max());
  if (!waiting.done()) session->cancel(waiting);
  const Errc outcome = waiting.done() ? waiting.outcome() : Errc::peer_gone;
  if (outcome != Errc::ok) {
    ++statistics_.calls_failed;
    return transport_outcome(outcome);
  }
  Message answer = waiting.take_reply();
  if (const Errc refused = Waiting::served(answer); refused != Errc::ok) return refused;
  if (answer.size() > reply.size()) return Errc::bad_message;
  reply_size = answer.copy_to(reply);
  return Errc::ok;
}

std::size_t NetworkService::longest(Session& session) const noexcept {
  netrpc::control::MaximumMessage maximum;
  if (netrpc::control::ask(session, maximum) != Errc::ok) return max_message_;
  return std::min(maximum.size - std::min(maximum.size, kRefusal), max_message_);
}

std::string NetworkService::why(netpath::HostAddress to, Errc outcome) {
  constexpr std::string_view kSilent = "cannot be reached, or no lrpc-netd runs there";
  netrpc::control::SharesKey shares{{to}, false, false, false};
  const Shepherd inside(host().monitor());
  const bool keyed = netrpc::control::ask(below_, shares) == Errc::ok;
  if (outcome == Errc::not_permitted && keyed && !shares.has_key)
    return "has no line in this host's file of keys: add one, and send lrpc-netd SIGHUP";
  if (outcome != Errc::peer_gone) return "refused: " + std::string(describe(outcome));
  if (keyed && shares.no_cipher)
    return "has no cipher in common with this host: compare the option cipher of AUTH in both graphs";
  if (!keyed) return std::string(kSilent);
  if (shares.shown)  // shown before; its present key is not known
    return "does not answer any more: it has no key or another one for this host now, or it " + std::string(kSilent);
  // A host does not answer a peer without the right key, so it does not say either that this is the reason.
  std::string text = "does not answer to this host's key for it: it has none, or another one, for this host; or it " +
                     std::string(kSilent);
  host().notice([&] { return "host " + to_string(netrpc::HostAddress{to}) + " " + text; });
  return text;
}

// ---- commands of other hosts ----

Message NetworkService::refusal(Errc code) noexcept {
  Message message(host().pool());
  if (std::byte* const at = message.push(kRefusal)) netrpc::WireWriter(at).put(static_cast<std::uint16_t>(code));
  return message;
}

/// Outside the monitor.
Message NetworkService::answer(Command& command) noexcept {
  netpath::RemoteService* const service = service_.load();
  Message reply = Message::make(host().pool(), kRefusal + max_message_);
  if (service == nullptr || !reply.allocated() || !command.request.flatten()) return refusal(Errc::limit_reached);
  std::size_t size = 0;
  const std::uint16_t refused = service->serve(command.from, command.arrived, command.number, command.request.bytes(),
                                               reply.bytes().subspan(kRefusal), size);
  if (refused != 0) return refusal(static_cast<Errc>(refused));
  netrpc::WireWriter(reply.bytes().data()).put(std::uint16_t{0});
  reply.truncate(kRefusal + std::min(size, max_message_));
  if (reply.size() > kSmallReply) return reply;
  Message small = Message::copy_of(host().pool(), reply.bytes());
  return small.allocated() ? std::move(small) : std::move(reply);
}

void NetworkService::call_demux(Session& lower, Message request) noexcept {
  if (!serving_) return;  // the layer below tells the caller that the call has failed
  ++statistics_.served;
  if (lower.participants().local.command == kAgree) return answer_agree(lower, std::move(request));
  Command command{SessionRef(&lower), std::move(request), {}, ++last_arrival_, lower.participants().local.command};
  try {
    command.from = principal_of(lower);
  } catch (const std::bad_alloc&) {  // as if its host were not known
  }
  // Nothing tells hosts of unknown addresses apart: a BIND of one would end the bindings of the others. With this
  // refusal no binding ends, and the host may be known when it asks again.
  if (command.from.host == 0) {
    ++statistics_.refused;
    return lower.reply(refusal(Errc::limit_reached));
  }
  if (!WaitingHere::any() && served_by_receivers_ + 1 < receivers_) {
    // In the thread that has received it: no switch. One receiver is always left to receive.
    ++served_by_receivers_;
    struct {
      NetworkService& self;
      Command& command;
      Message reply;
    } job{*this, command, {}};
    host().engine().outside(host(), [&job] { job.reply = job.self.answer(job.command); });
    if (--served_by_receivers_ == 0 && !serving_) host().engine().wake(host());
    lower.reply(std::move(job.reply));
    return;
  }
  if (workers_.put(command)) return;
  ++statistics_.refused;
  lower.reply(refusal(Errc::limit_reached));
}

void NetworkService::serve_in_worker(Command command) noexcept {
  Message reply = answer(command);
  const Shepherd inside(host().monitor());
  command.session->reply(std::move(reply));
  command.session = {};
}

Errc NetworkService::control(netrpc::control::Request& request) noexcept {
  if (netrpc::control::answered(request, netrpc::control::AdvertisedMaximum{max_message_ + kRefusal})) return Errc::ok;
  return Protocol::control(request);
}

}  // namespace lrpc::netd
