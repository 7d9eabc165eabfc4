// FRAGMENT's sessions and protocol object: opening, enabling, control.
#include "netrpc/protocols/fragment/protocol.h"

#include <algorithm>

namespace lrpc::netrpc {

Result<std::unique_ptr<Protocol>> make_fragment(Host& host, std::string name, Protocol& lower,
                                                const FragmentOptions& options) {
  if (options.fragments < 1 || options.fragments > fragment::Header::kMaxFragments)
    return Error{Errc::invalid_argument,
                 "fragments must be from 1 to 16: a message's fragments are bits of a 16-bit mask"};
  if (options.fragment_size > 65535 - fragment::Header::kSize)
    return Error{Errc::invalid_argument, "fragment_size must be less than 64 KiB"};
  if (options.reassemblies == 0 || options.all_reassemblies == 0 || options.sessions == 0)
    return Error{Errc::invalid_argument, "reassemblies, all_reassemblies and sessions must be at least 1"};
  if (options.idle <= Duration::zero()) return Error{Errc::invalid_argument, "idle must be more than nothing"};
  return std::make_unique<fragment::FragmentProtocol>(host, std::move(name), lower, options);
}

namespace fragment {

namespace {
using namespace std::chrono_literals;
// Before anything has been measured; the floors, because a delay by the scheduler is no loss; and the longest.
constexpr RetryTimer kAnswerTime{5ms, 40us, 40us, kLongestWait};
constexpr RetryTimer kRequestTime{100ms, 200us, 200us, kLongestWait};
}  // namespace

FragmentSession::FragmentSession(FragmentProtocol& protocol, Protocol& high, const ParticipantSet& participants,
                                 const PeerKey& key, SessionRef lower, bool heard, HostAddress local,
                                 HostAddress remote)
    : CachedSession(protocol, high, participants, key),
      lower_(*this),
      local_(local),
      remote_(remote),
      sequence_(static_cast<std::uint32_t>(protocol.host().random())),
      opened_(!heard),
      answer_time_(kAnswerTime),
      request_time_(kRequestTime),
      expiry_([this] { discard_expired(); }) {
  WireWriter(outgoing_.data()).put(kData).put(local_).put(remote_).put(std::uint32_t{key.protocol});
  WireWriter(incoming_.data()).put(kData).put(remote_).put(local_).put(std::uint32_t{key.protocol});
  heard ? lower_.take_from_peer(std::move(lower)) : lower_.take(std::move(lower));
  learn_fragment_size();
}

FragmentSession::~FragmentSession() {
  while (!saved_.empty()) fragments().discard(*saved_.first());
  while (!incomplete_.empty()) fragments().finish(*incomplete_.first());
}

void FragmentSession::learn_fragment_size() {
  const std::size_t carried = control::carried_uncut(*lower_);
  fragment_size_ = fragments().data_in(carried != 0 ? carried : fragments().uncut());
}

void FragmentSession::follow_lower() noexcept {
  // If no path leads there now, the session keeps its present lower session.
  if (remote_.known()) (void)lower_.open(fragments().lower_, fragments().for_lower(participants()));
  learn_fragment_size();
}

Errc FragmentSession::control(control::Request& request) noexcept {
  look_at_lower();
  if (control::answered(request, control::MaximumMessage{fragment_size_ * fragments().options_.fragments}))
    return Errc::ok;
  if (control::answered(request, control::OptimumMessage{fragment_size_})) return Errc::ok;
  // A session that only sends large messages never asks for fragments, but has measured how soon it is asked.
  const bool only_sends = !answer_time_.measured() && request_time_.measured();
  const RetryTimer& time = only_sends ? request_time_ : answer_time_;
  if (control::answered(request, control::RoundTrip{time.smoothed(), time.timeout()})) return Errc::ok;
  if (control::answered(request, control::LocalHost{local_})) return Errc::ok;
  const Errc own = Session::control(request);
  return own == Errc::not_supported ? lower_->control(request) : own;
}

FragmentProtocol::FragmentProtocol(Host& host, std::string name, Protocol& lower, const FragmentOptions& options)
    : Protocol(host, std::move(name)),
      lower_(lower),
      options_(options),
      sessions_(host, options.sessions, options.idle) {}

FragmentProtocol::~FragmentProtocol() {
  if (lower_enabled_) lower_.open_disable(*this, for_lower({}));
}

ParticipantSet FragmentProtocol::for_lower(const ParticipantSet& participants) const {
  ParticipantSet lower = participants;
  lower.protocol = protocol_numbers::kFragment;
  return lower;
}

/// Needed by sessions that only open, too: the peer's answer may come by another path than this host's packets.
Status FragmentProtocol::enable_lower() {
  if (lower_enabled_) return {};
  auto enabled = lower_.open_enable(*this, for_lower({}));
  if (enabled) lower_enabled_ = true;
  return enabled;
}

Result<FragmentSession*> FragmentProtocol::make_session(Protocol& high, const ParticipantSet& participants,
                                                        const PeerKey& key, SessionRef lower, bool heard,
                                                        HostAddress remote) {
  const HostAddress local = local_host(*lower);
  auto* const session = new FragmentSession(*this, high, participants, key, std::move(lower), heard, local, remote);
  if (!sessions_.add(*session, heard ? SessionCache::Origin::of_peer : SessionCache::Origin::opened))
    return no_room(*this, "sessions");
  return session;
}

Result<SessionRef> FragmentProtocol::open(Protocol& high, const ParticipantSet& participants) {
  if (Status port = refuse_port(*this, participants); !port) return port.error();
  if (!participants.remote.host.known())
    return Error{Errc::invalid_argument, name() + " needs the host address of the peer"};
  const PeerKey key = peer_key(host(), participants.remote.host, participants, participants.protocol);
  if (CachedSession* const known = sessions_.find(key)) {
    if (&known->high() != &high) return Error{Errc::name_taken, name() + ": another protocol uses this number"};
    known->used = true;
    static_cast<FragmentSession*>(known)->opened_ = true;
    return SessionRef(known);
  }
  (void)enable_lower();  // if this fails, the opening of the lower session fails, too, or answers come through it
  auto lower = lower_.open(*this, Way::by_host(for_lower(participants)));
  if (!lower) return lower.error();
  auto session = make_session(high, participants, key, *lower, false, participants.remote.host);
  if (!session) return session.error();
  return SessionRef(*session);
}

Status FragmentProtocol::open_enable(Protocol& high, const ParticipantSet& participants) {
  if (Protocol** const known = enabled_.resolve(participants.protocol)) {
    if (*known == &high) return {};
    return Error{Errc::name_taken, name() + ": another protocol has enabled this number"};
  }
  if (auto enabled = enable_lower(); !enabled) return enabled;
  enabled_.bind(participants.protocol, &high);
  return {};
}

void FragmentProtocol::open_disable(Protocol& high, const ParticipantSet& participants) noexcept {
  enabled_.unbind(participants.protocol, &high);
}

std::size_t FragmentProtocol::uncut() const noexcept {
  if (const std::size_t carried = control::carried_uncut(lower_); carried != 0) return carried;
  return 1480;  // an Ethernet frame with an IP header
}

/// Bytes of data in a fragment where the layer below carries `packet` bytes uncut.
std::size_t FragmentProtocol::data_in(std::size_t packet) const noexcept {
  const std::size_t carried = std::min<std::size_t>(packet, 65535);
  const std::size_t room = carried > Header::kSize ? carried - Header::kSize : 1;
  return options_.fragment_size != 0 ? std::min(options_.fragment_size, room) : room;
}

/// This host's address as the peers of `lower` know it.
HostAddress FragmentProtocol::local_host(Session& lower) const noexcept {
  control::LocalHost local;
  return control::ask(lower, local) == Errc::ok && local.host.known() ? local.host : host().address();
}

Errc FragmentProtocol::control(control::Request& request) noexcept {
  if (told_statistics(request, sessions_.size(), saved_.size() + incomplete_.size())) return Errc::ok;
  if (std::holds_alternative<control::DropIdle>(request) || std::holds_alternative<control::MakeRoom>(request)) {
    sessions_.drop_idle();
    return Errc::ok;
  }
  const std::size_t cut = data_in(uncut());
  if (control::answered(request, control::MaximumMessage{cut * options_.fragments})) return Errc::ok;
  if (control::answered(request, control::OptimumMessage{cut})) return Errc::ok;
  // It cuts to what goes uncut below, so that VIP need not keep IP ready for it (RPC in the x-Kernel §3.1).
  if (control::answered(request, control::AdvertisedMaximum{cut + Header::kSize})) return Errc::ok;
  return lower_.control(request);
}

}  // namespace fragment

ProtocolKind fragment_kind() {
  ProtocolKind kind;
  kind.name = "FRAGMENT";
  kind.summary = "large messages in up to 16 fragments; what is lost is asked for";
  kind.below = {{"the protocol that carries the fragments", Service::datagram}};
  kind.options = {
      {"fragments", OptionType::number, "of one message at most, 1 to 16 (16)"},
      {"fragment_size", OptionType::number, "bytes of data in one (what the protocol below carries uncut)"},
      {"saved", OptionType::number, "messages kept for each session in case of a request (32)"},
      {"saved_bytes", OptionType::number, "bytes of buffers kept by all sessions together (8388608)"},
      {"reassemblies", OptionType::number, "incomplete messages from one peer (16)"},
      {"all_reassemblies", OptionType::number, "incomplete messages from all peers (256)"},
      {"incomplete_bytes", OptionType::number, "bytes of buffers of all incomplete messages (8388608)", false, "36864"},
      {"requests", OptionType::number, "requests in vain for missing fragments of one message (20)", false, "0",
       "4294967295"},
      {"sessions", OptionType::number, "sessions at once (4096)"},
      {"idle", OptionType::duration, "after which an unused session is dropped (60s)", false, "1ms"},
  };
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    FragmentOptions options;
    const Options& given = parts.options;
    options.fragments = given.number("fragments", options.fragments);
    options.fragment_size = given.number("fragment_size", options.fragment_size);
    options.saved = given.number("saved", options.saved);
    options.saved_bytes = given.number("saved_bytes", options.saved_bytes);
    options.reassemblies = given.number("reassemblies", options.reassemblies);
    options.all_reassemblies = given.number("all_reassemblies", options.all_reassemblies);
    options.incomplete_bytes = given.number("incomplete_bytes", options.incomplete_bytes);
    options.requests = static_cast<unsigned>(given.number("requests", options.requests));
    options.sessions = given.number("sessions", options.sessions);
    options.idle = given.duration("idle", options.idle);
    return make_fragment(parts.host, parts.name, *parts.below.front(), options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
