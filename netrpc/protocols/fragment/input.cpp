// Upwards: finding the session of a packet, putting messages together, and asking for what is missing.
#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "lrpc/detail/shim/most_of_one.h"
#include "netrpc/protocols/fragment/protocol.h"
#include "netrpc/src/attempt.h"
#include "netrpc/src/dropped.h"
#include "netrpc/src/header_room.h"

namespace lrpc::netrpc::fragment {

namespace {
/// This many later fragments make a gap a loss; fewer may be reordering. The last fragment ends the burst: then what is
/// missing is asked for at once.
constexpr int kReordering = 3;
/// How long a gap may take to close by itself, in multiples of the lateness of the last late fragment. The time becomes
/// a little shorter with each wait in vain.
constexpr int kLate = 2;
constexpr Duration kShortest = std::chrono::microseconds(1);
/// The least wait for the next fragment: a delay by the scheduler is no loss.
constexpr Duration kLeastLate = std::chrono::microseconds(20);
/// In a session that no protocol of this host has opened, each fragment that arrives allows this many requests: if its
/// source address is forged, so many packets go there. And how many requests may be saved up.
constexpr unsigned kRequestsForEach = 3;
constexpr unsigned kMostRequests = 64;
}  // namespace

Reassembly::Reassembly(FragmentProtocol& protocol, FragmentSession& its_session, const Header& header)
    : session(&its_session),
      sequence(header.sequence_num),
      num_frag(header.num_frag),
      silence([this, &protocol] { protocol.silent(*this); }) {}

void FragmentProtocol::demux(Session& lower, Message message) noexcept {
  Message::Header<Header::kSize> bytes;
  message.pop(bytes);
  if (!bytes) [[unlikely]]
    return dropped(counted.malformed);
  // Fast path: a message in one fragment from the peer whose session `lower` had last. Nothing but comparisons.
  auto* const session = static_cast<FragmentSession*>(lower.above);
  if (session != nullptr && std::memcmp(bytes.bytes, session->incoming_.data(), Header::kPrefix) == 0) [[likely]] {
    WireReader reader(bytes.bytes + Header::kPrefix + 4);
    const auto fragments = reader.get<std::uint32_t>();
    const auto len = reader.get<std::uint16_t>();
    if (fragments == 0x0001'0001 && len <= message.size()) [[likely]] {
      if (len != message.size()) message.truncate(len);
      session->used = true;
      ++counted.received;
      return session->pop(std::move(message));
    }
  }
  demux_slowly(lower, Header::decode(bytes.bytes), std::move(message));
}

void FragmentProtocol::demux_slowly(Session& lower, const Header& header, Message message) noexcept {
  if (header.type != kData && header.type != kRequest && header.type != kAgain) return dropped(counted.malformed);
  if (header.type != kRequest &&
      (header.len > message.size() || header.num_frag == 0 || header.num_frag > Header::kMaxFragments ||
       !std::has_single_bit(header.frag_mask) || std::bit_width(header.frag_mask) > header.num_frag ||
       (header.num_frag > 1 ? header.len == 0 : header.type == kAgain)))
    return dropped(counted.malformed);
  FragmentSession* const session = session_of(lower, header);
  if (session == nullptr) return;
  session->used = true;
  if (header.type == kRequest) return session->request_arrived(header);
  message.truncate(header.len);
  if (header.num_frag > 1) return session->fragment_arrived(header, std::move(message));
  ++counted.received;
  session->pop(std::move(message));
}

FragmentSession* FragmentProtocol::session_of(Session& lower, const Header& header) noexcept {
  HostAddress peer = peer_host(lower, lower.participants());
  // If no layer below knows the peer's host, it is the one that the packet names, unless a device address identifies
  // it.
  if (!peer.known() && !lower.participants().remote.ethernet.known()) peer = header.clnt_host;
  if (peer.known() && header.clnt_host != peer) return dropped(counted.refused, nullptr);
  const PeerKey key = peer_key(host(), peer, lower.participants(), header.protocol_num);
  if (auto* const known = static_cast<FragmentSession*>(sessions_.find(key))) {
    if (header.svr_host != known->local_ || header.clnt_host != known->remote_)
      return dropped(counted.refused, nullptr);
    known->lower_.hear(lower);
    return known;
  }
  Protocol** const high = enabled_.resolve(header.protocol_num);
  if (high == nullptr || header.type == kRequest) return dropped(counted.no_session, nullptr);
  ParticipantSet participants = lower.participants();
  participants.protocol = header.protocol_num;
  participants.local.host = header.svr_host;
  participants.remote.host = peer;
  if (header.svr_host != local_host(lower)) return dropped(counted.refused, nullptr);
  const auto made = or_limit_reached(
      [&] { return make_session(**high, participants, key, SessionRef(&lower), true, header.clnt_host); });
  if (!made) return dropped(counted.refused, nullptr);
  FragmentSession* const session = *made;
  if ((*high)->open_done(*session, participants) == Errc::ok) return session;
  sessions_.remove(*session);
  return dropped(counted.refused, nullptr);
}

bool FragmentSession::finished_before(std::uint32_t sequence) const noexcept {
  const auto known = std::span(finished_).first(std::min(finished_count_, finished_.size()));
  return std::ranges::find(known, sequence) != known.end();
}

void FragmentSession::fragment_arrived(const Header& header, Message message) noexcept {
  FragmentProtocol& all = fragments();
  may_ask_ = std::min(may_ask_ + kRequestsForEach, kMostRequests);
  Reassembly* reassembly = newest_of(incomplete_, header.sequence_num);
  if (reassembly == nullptr) {
    if (finished_before(header.sequence_num)) return duplicate_arrived(header);
    reassembly = all.begin(*this, header);
    if (reassembly == nullptr) return dropped(all.counted.refused);
  }
  if (reassembly->num_frag != header.num_frag) return dropped(all.counted.malformed);
  if ((reassembly->received & header.frag_mask) != 0) return duplicate_arrived(header);
  // All fragments but the last are of one size, and the last is not larger: else the sender does not mean one message.
  const auto index = static_cast<unsigned>(std::countr_zero(header.frag_mask));
  const bool is_last = index + 1 == header.num_frag;
  const std::size_t size = message.size();
  const bool fits =
      is_last ? reassembly->fragment_size == 0 || size <= reassembly->fragment_size
              : (reassembly->fragment_size == 0 || size == reassembly->fragment_size) && size >= reassembly->last_size;
  if (!fits) return dropped(all.counted.malformed);
  message.fit();
  const std::size_t cost = message.footprint();
  if (!all.make_room(*reassembly, cost)) return dropped(all.counted.refused);
  (is_last ? reassembly->last_size : reassembly->fragment_size) = size;
  reassembly->bytes += cost;
  incomplete_bytes_ += cost;
  all.incomplete_bytes_ += cost;
  reassembly->fragments[index] = std::move(message);
  reassembly->received |= header.frag_mask;
  learn(*reassembly, header);
  reassembly->requests = 0;
  if (reassembly->missing() == 0) {
    Message whole = std::move(reassembly->fragments[0]);
    bool joined = true;
    for (unsigned i = 1; i < header.num_frag; ++i) joined = joined && whole.append(std::move(reassembly->fragments[i]));
    all.finish(*reassembly);
    if (!joined) return;  // out of memory: as if lost
    ++all.counted.received;
    return pop(std::move(whole));
  }
  look_for_gaps(*reassembly, header);
}

/// Two answers have come to two requests. Either the first request was not lost, so answers take longer than the wait;
/// or the first answer was only late, after others had overtaken it.
void FragmentSession::duplicate_arrived(const Header& header) noexcept {
  ++fragments().counted.duplicates;
  if (header.type != kAgain) return;
  if (asked_again_ == header.sequence_num) {
    answer_time_.needless(answer_time_.timeout());
    asked_again_.reset();
  } else if (guessed_ == header.sequence_num) {
    was_late(answer_time_.smoothed());
    guessed_.reset();
  }
}

/// A gap would have closed by itself in `time`.
void FragmentSession::was_late(Duration time) noexcept {
  reordering_ = std::min(std::max({reordering_, time, kShortest}), answer_time_.timeout());
}

/// Learns from an answer how long answers take, and from a fragment that was asked for and only late, how late
/// fragments are.
void FragmentSession::learn(Reassembly& reassembly, const Header& header) noexcept {
  if (reassembly.asked_at == Time::zero() || (reassembly.asked & header.frag_mask) == 0) return;
  const Duration since = fragments().host().now() - reassembly.asked_at;
  if (header.type == kData) return was_late(kLate * since);
  if ((reassembly.asked_last & header.frag_mask) == 0) return;
  const bool twice = (reassembly.asked_twice & header.frag_mask) != 0;
  // Within half a round trip it answers an earlier request: it had been overtaken.
  if (twice && 2 * since < answer_time_.smoothed()) return was_late(kLate * since);
  if (!twice) answer_time_.sample(std::min(since, kLongestWait));
  reassembly.asked_at = Time::zero();
}

/// The missing fragments that something sent later has overtaken.
std::uint16_t FragmentSession::overtaken(const Reassembly& reassembly, const Header& header) const noexcept {
  const std::uint16_t missing = reassembly.missing();
  // The fragments of an answer are sent in their order, after the burst and after the answers to earlier requests.
  const bool answer = header.type == kAgain && (reassembly.asked_last & header.frag_mask) != 0;
  if (answer && reordering_ == Duration::zero())
    return static_cast<std::uint16_t>(missing & ~(reassembly.asked_last & ~(header.frag_mask - 1U)));
  const int highest = std::bit_width(reassembly.received) - 1;
  const std::uint16_t gaps = reassembly.gaps();
  const bool enough = highest + 1 == reassembly.num_frag || highest - std::countr_zero(gaps) >= kReordering;
  return enough ? gaps : std::uint16_t{0};
}

void FragmentSession::look_for_gaps(Reassembly& reassembly, const Header& header) noexcept {
  EventManager& events = fragments().host().events();
  const Time now = events.now();
  const std::uint16_t lost = overtaken(reassembly, header);
  if (lost != 0 && reordering_ == Duration::zero()) {
    events.schedule(reassembly.silence, answer_time_.timeout());
    if ((lost & reassembly.asked) != 0) guessed_ = reassembly.sequence;
    return ask_for(reassembly, lost);
  }
  // Wait as long as the next fragment may be late; if an answer is due, until it is.
  Duration wait = std::max(answer_time_.timeout() - answer_time_.smoothed(), kLeastLate);
  if (reassembly.asked_at != Time::zero()) wait = std::max(wait, reassembly.asked_at + answer_time_.timeout() - now);
  if (lost == 0) {
    reassembly.gap_since = Time::zero();
  } else {
    if (reassembly.gap_since == Time::zero()) reassembly.gap_since = now;
    wait = std::min(wait, std::max(reassembly.gap_since + reordering_ - now, Duration::zero()));
  }
  events.schedule(reassembly.silence, wait);
}

void FragmentSession::ask_for(Reassembly& reassembly, std::uint16_t missing) noexcept {
  FragmentProtocol& all = fragments();
  ++reassembly.requests;
  reassembly.gap_since = Time::zero();
  if (!may_ask()) return;
  if (!opened_) --may_ask_;
  reassembly.asked_twice |= reassembly.asked & missing;
  reassembly.asked |= missing;
  reassembly.asked_last = missing;
  reassembly.asked_at = all.host().now();
  const Header header{.type = kRequest,
                      .clnt_host = local_,
                      .svr_host = remote_,
                      .protocol_num = key().protocol,
                      .sequence_num = reassembly.sequence,
                      .num_frag = reassembly.num_frag,
                      .frag_mask = missing};
  Message request(all.host().pool());
  if (!push_header(header, request)) return;
  ++all.counted.sent;
  // The answer may arrive before push() returns: do not touch the reassembly afterwards. A failure counts as a loss.
  static_cast<void>(lower_->push(std::move(request)));
}

Reassembly* FragmentProtocol::begin(FragmentSession& session, const Header& header) noexcept {
  // The oldest gives way, and is not begun again by its late fragments.
  if (session.incomplete_.size() >= options_.reassemblies) finish(*session.incomplete_.first());
  if (incomplete_.size() >= options_.all_reassemblies) finish(*incomplete_.first());
  Reassembly* const reassembly = reassembly_records_.make(*this, session, header);
  if (reassembly == nullptr) return nullptr;
  session.incomplete_.push_back(*reassembly);
  incomplete_.push_back(*reassembly);
  host().events().schedule(reassembly->silence, session.answer_time_.timeout());
  return reassembly;
}

void FragmentProtocol::finish(Reassembly& reassembly) noexcept {
  FragmentSession& session = *reassembly.session;
  session.incomplete_bytes_ -= reassembly.bytes;
  incomplete_bytes_ -= reassembly.bytes;
  session.incomplete_.remove(reassembly);
  incomplete_.remove(reassembly);
  session.finished_[session.finished_count_++ % session.finished_.size()] = reassembly.sequence;
  reassembly_records_.destroy(reassembly);
}

/// Makes room for `size` more bytes of `reassembly` by dropping the oldest messages: those of its own session, if that
/// has several and would exceed its fair share, otherwise of all. False: `reassembly` was dropped, too.
bool FragmentProtocol::make_room(const Reassembly& reassembly, std::size_t size) noexcept {
  const FragmentSession& session = *reassembly.session;
  for (;;) {
    const std::size_t has = session.incomplete_bytes_;
    const bool too_much = session.incomplete_.size() > 1 &&
                          has + size > shim::most_of_one(has, incomplete_bytes_, options_.incomplete_bytes);
    if (!too_much && incomplete_bytes_ + size <= options_.incomplete_bytes) return true;
    Reassembly& oldest = too_much ? *session.incomplete_.first() : *incomplete_.first();
    const bool itself = &oldest == &reassembly;
    finish(oldest);
    if (itself) return false;
  }
}

void FragmentProtocol::silent(Reassembly& reassembly) noexcept {
  FragmentSession& session = *reassembly.session;
  if (reassembly.gap_since != Time::zero()) {
    session.reordering_ -= session.reordering_ / 16;
    if (session.reordering_ < kShortest) session.reordering_ = Duration::zero();
    host().events().schedule(reassembly.silence, session.answer_time_.timeout());
    return session.ask_for(reassembly, reassembly.gaps());
  }
  if (reassembly.requests >= options_.requests) {
    ++counted.failed;
    return finish(reassembly);
  }
  const std::uint16_t missing = reassembly.missing();
  if ((reassembly.asked & missing) != 0 && session.may_ask()) session.asked_again_ = reassembly.sequence;
  // Other messages do not wait longer: a request or its answer is more likely lost than late.
  host().events().schedule(reassembly.silence,
                           RetryTimer::pause_after(reassembly.requests, session.answer_time_.timeout(), kLongestWait));
  session.ask_for(reassembly, missing);
}

}  // namespace lrpc::netrpc::fragment
