// One request or reply in up to 16 packets: cut by its sender, which keeps it until it is acknowledged, and put
// together by its receiver.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "lrpc/netrpc/message.h"
#include "netrpc/protocols/mrpc/header.h"

namespace lrpc::netrpc::mrpc {

inline constexpr std::size_t kMaxMessage = 16384;  ///< The paper: arguments and results of up to 16 k.
inline constexpr std::size_t kMaxFragments = 16;   ///< The bits of frag_mask.

/// The longest message, where one packet carries `single` bytes of it.
[[nodiscard]] constexpr std::size_t longest(std::size_t single) noexcept {
  return std::min(kMaxMessage, single * kMaxFragments);
}

[[nodiscard]] constexpr std::uint16_t all_of(std::size_t fragments) noexcept {
  return static_cast<std::uint16_t>((1U << fragments) - 1);
}

/// The saved copy of what was sent.
struct Outgoing {
  Message whole;
  std::uint16_t cut = 0;  ///< The size of each fragment but the last.
  std::uint16_t fragments = 1;

  /// Precondition: message.size() <= cut * kMaxFragments.
  void set(Message message, std::size_t cut_at) noexcept {
    cut = static_cast<std::uint16_t>(cut_at);
    fragments = message.size() <= cut_at ? std::uint16_t{1}
                                         : static_cast<std::uint16_t>((message.size() + cut_at - 1) / cut_at);
    whole = std::move(message);
  }
  /// Hands the fragments in `mask` to `send(message)`, each when `header` says where it lies, until that returns false.
  /// They share the bytes of the whole. `please_ack`: the last of them asks for an answer. Stops early when the pool
  /// has no more: as if the rest had been lost.
  template <class Send>
  void each(Header& header, std::uint16_t mask, bool please_ack, Send send) const noexcept {
    const std::uint16_t last = std::bit_floor(mask);
    Message rest = whole.share();
    for (std::uint16_t i = 0; i < fragments && mask != 0; ++i) {
      const std::size_t size = i + 1 < fragments ? cut : whole.size() - std::size_t{i} * cut;
      Message part = rest.split(size);
      if (part.size() != size) return;
      if ((mask >> i & 1) == 0) continue;
      header.mask = static_cast<std::uint16_t>(1U << i);
      header.bits = please_ack && header.mask == last ? kPleaseAck : std::uint16_t{0};
      header.size = static_cast<std::uint16_t>(size);
      header.offset = static_cast<std::uint16_t>(i * cut);
      mask = static_cast<std::uint16_t>(mask & ~header.mask);
      if (!send(std::move(part))) return;
    }
  }
};

/// What has arrived of a message in several fragments.
class Incoming {
 public:
  enum class Added : std::uint8_t { part, duplicate, contradiction, complete };

  /// `header` must be well_formed(). A fragment that does not fit those before it is a contradiction, and not taken.
  Added add(const Header& header, Message&& part) noexcept {
    const auto index = static_cast<unsigned>(std::countr_zero(header.mask));
    const std::uint16_t cut = index == 0 ? header.size : static_cast<std::uint16_t>(header.offset / index);
    if (mask_ == 0) {
      fragments_ = header.fragments;
      cut_ = cut;
    } else if (fragments_ != header.fragments || cut_ != cut) {
      return Added::contradiction;
    }
    if ((mask_ & header.mask) != 0) return Added::duplicate;
    mask_ = static_cast<std::uint16_t>(mask_ | header.mask);
    parts_[index] = std::move(part);
    return mask_ == all_of(fragments_) ? Added::complete : Added::part;
  }
  /// Takes the message out, once complete. Not allocated(): the pool has no more; all parts are dropped.
  [[nodiscard]] Message join() noexcept {
    Message whole = std::move(parts_[0]);
    for (unsigned i = 1; i < fragments_; ++i)
      if (!whole.append(std::move(parts_[i]))) {
        whole.clear();
        break;
      }
    clear();
    return whole;
  }
  void clear() noexcept {
    if (mask_ == 0) return;
    for (Message& part : parts_) part.clear();
    mask_ = 0;
  }
  [[nodiscard]] std::uint16_t mask() const noexcept { return mask_; }
  [[nodiscard]] std::uint16_t fragments() const noexcept { return fragments_; }

 private:
  std::array<Message, kMaxFragments> parts_;
  std::uint16_t mask_ = 0;
  std::uint16_t fragments_ = 0;
  std::uint16_t cut_ = 0;
};

/// A header that carries one fragment: all fields that place it are in range and agree.
[[nodiscard]] constexpr bool well_formed(const Header& header) noexcept {
  if (header.fragments == 1) return header.mask == 1 && header.offset == 0 && header.size <= kMaxMessage;
  if (header.fragments == 0 || header.fragments > kMaxFragments || !std::has_single_bit(header.mask)) return false;
  const auto index = static_cast<unsigned>(std::countr_zero(header.mask));
  if (index >= header.fragments || header.size == 0 || std::size_t{header.offset} + header.size > kMaxMessage)
    return false;
  if (index == 0) return header.offset == 0;
  if (header.offset == 0 || header.offset % index != 0) return false;
  const unsigned cut = header.offset / index;
  return index + 1U < header.fragments ? header.size == cut : header.size <= cut;
}

}  // namespace lrpc::netrpc::mrpc
