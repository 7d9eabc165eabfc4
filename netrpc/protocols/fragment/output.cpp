// Downwards: cutting, saving, and sending again what is asked for.
#include <bit>
#include <cstring>

#include "netrpc/protocols/fragment/protocol.h"
#include "netrpc/src/dropped.h"
#include "netrpc/src/header_room.h"

namespace lrpc::netrpc::fragment {

namespace {
/// A message is kept for this many times the time that a request is expected to take.
constexpr int kPatience = 8;
constexpr Duration kLeastPatience = std::chrono::milliseconds(100);
/// The most requests for one message that are answered. It bounds what forged requests can cause.
constexpr unsigned kMaxAnswers = 32;
}  // namespace

inline Errc FragmentSession::push_fragment(Message&& piece, std::uint32_t sequence, std::uint16_t num_frag,
                                           std::size_t index, std::uint8_t type) noexcept {
  const auto len = static_cast<std::uint16_t>(piece.size());
  std::byte* const to = piece.push(Header::kSize);
  if (to == nullptr) [[unlikely]]
    return Errc::limit_reached;
  std::memcpy(to, outgoing_.data(), Header::kPrefix);
  *to = std::byte{type};
  WireWriter(to + Header::kPrefix).put(sequence, std::uint32_t{num_frag} << 16 | 1U << index, len);
  ++fragments().counted.sent;
  return lower_->push(std::move(piece));
}

Errc FragmentSession::push(Message message) noexcept {
  used = true;
  look_at_lower();
  if (message.size() > fragment_size_) [[unlikely]]
    return push_large(std::move(message));
  // Nothing to save: a receiver that has no part of a message cannot ask for it.
  if (message.size() <= kSurelyCarried) [[likely]]
    return push_fragment(std::move(message), ++sequence_, 1, 0);
  Message whole = message.share();
  const Errc outcome = push_fragment(std::move(message), ++sequence_, 1, 0);
  return outcome != Errc::message_too_long ? outcome : push_shrunk(std::move(whole));
}

/// If the layer below carries less without cutting than before, cuts `message` smaller. If no copy of it was kept
/// (`message` is not allocated()), it is lost, but it is not too long: the next push cuts it smaller.
Errc FragmentSession::push_shrunk(Message message) noexcept {
  const std::size_t before = fragment_size_;
  learn_fragment_size();
  if (fragment_size_ >= before) return Errc::message_too_long;
  return message.allocated() ? push_large(std::move(message)) : Errc::limit_reached;
}

Errc FragmentSession::push_large(Message message) noexcept {
  const std::size_t size = message.size();
  const std::size_t cut = fragment_size_;
  const std::size_t count = (size + cut - 1) / cut;
  if (count > fragments().options_.fragments) return Errc::message_too_long;
  const std::uint32_t sequence = ++sequence_;
  const auto num_frag = static_cast<std::uint16_t>(count);
  // Saved first: over a fast wire the request for a fragment may arrive before the burst has ended.
  const bool saved = save(message, sequence, num_frag);
  for (std::size_t i = 0; i < count; ++i) {
    // NOLINTNEXTLINE(bugprone-use-after-move): only the last piece takes it
    Message piece = i + 1 == count ? std::move(message) : message.split(cut);
    const bool whole = i + 1 == count || piece.size() == cut;
    const Errc outcome = whole ? push_fragment(std::move(piece), sequence, num_frag, i) : Errc::limit_reached;
    if (outcome == Errc::ok) continue;
    // Once the receiver knows of the message it asks for the rest.
    if (i > 0 && saved) {
      if (outcome == Errc::message_too_long) learn_fragment_size();
      return Errc::ok;
    }
    Message all_of_it;
    if (SavedMessage* const copy = newest_of(saved_, sequence)) {
      all_of_it = copy->message.share();
      fragments().discard(*copy);
    }
    return outcome == Errc::message_too_long ? push_shrunk(std::move(all_of_it)) : outcome;
  }
  return Errc::ok;
}

bool FragmentSession::save(const Message& message, std::uint32_t sequence, std::uint16_t num_frag) {
  FragmentProtocol& all = fragments();
  const std::size_t cost = message.footprint();
  if (all.options_.saved == 0 || cost > all.options_.saved_bytes) return false;
  Message copy = message.share();
  if (!copy.allocated()) return false;
  if (saved_.size() >= all.options_.saved) all.discard(*saved_.first());
  while (all.saved_bytes_ + cost > all.options_.saved_bytes) all.discard(*all.saved_.first());
  SavedMessage* const saved = all.saved_records_.make();
  if (saved == nullptr) return false;
  const Duration patience = std::max(kPatience * request_time_.timeout(), kLeastPatience);
  saved->session = this;
  saved->sequence = sequence;
  saved->num_frag = num_frag;
  saved->fragment_size = fragment_size_;
  saved->message = std::move(copy);
  saved->sent_at = all.host().now();
  saved->expires = saved->sent_at + patience;
  all.saved_bytes_ += cost;
  saved_.push_back(*saved);
  all.saved_.push_back(*saved);
  if (!expiry_.waiting()) all.host().events().schedule(expiry_, patience);
  return true;
}

void FragmentProtocol::discard(SavedMessage& saved) noexcept {
  saved.session->saved_.remove(saved);
  saved_.remove(saved);
  saved_bytes_ -= saved.message.footprint();
  saved_records_.destroy(saved);
}

void FragmentSession::discard_expired() {
  FragmentProtocol& all = fragments();
  const Time now = all.host().now();
  while (!saved_.empty() && saved_.first()->expires <= now) all.discard(*saved_.first());
  if (!saved_.empty()) all.host().events().schedule(expiry_, saved_.first()->expires - now);
}

void FragmentSession::request_arrived(const Header& header) noexcept {
  FragmentProtocol& all = fragments();
  if (header.num_frag < 2 || header.num_frag > Header::kMaxFragments || header.frag_mask == 0 || header.len != 0 ||
      std::bit_width(header.frag_mask) > header.num_frag)
    return dropped(all.counted.malformed);
  const Time now = all.host().now();
  SavedMessage* const saved = newest_of(saved_, header.sequence_num);
  // If this host stood still, the expiry timer is late: the receiver may have forgotten what it had of the message.
  const bool kept = saved != nullptr && now < saved->expires;
  if (!kept || saved->num_frag != header.num_frag || saved->answered >= kMaxAnswers)
    return dropped(all.counted.refused);
  if (saved->answered++ == 0) request_time_.sample(std::min(now - saved->sent_at, kLongestWait));
  saved->expires = now + std::max(kPatience * request_time_.timeout(), kLeastPatience);
  saved_.remove(*saved);
  saved_.push_back(*saved);
  // The record may be discarded while its fragments are pushed: copy what is needed.
  const Message message = saved->message.share();
  const std::size_t cut = saved->fragment_size;
  for (unsigned i = 0; i < header.num_frag && message.allocated(); ++i) {
    if ((header.frag_mask >> i & 1) == 0) continue;
    Message piece = message.share();
    if (!piece.allocated() || piece.split(i * cut).size() != i * cut) return;
    piece.truncate(cut);
    ++all.counted.retransmissions;
    if (push_fragment(std::move(piece), header.sequence_num, header.num_frag, i, kAgain) != Errc::ok) return;
  }
}

}  // namespace lrpc::netrpc::fragment
