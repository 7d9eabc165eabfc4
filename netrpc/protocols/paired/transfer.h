// What to do when a segment arrives, or does not: the states of a message at its sender and at its receiver, and the
// probes that ask whether the peer is still there. Pure state: no time, no packets.
#pragma once

#include <algorithm>

#include "lrpc/netrpc/clock.h"
#include "netrpc/protocols/paired/header.h"

namespace lrpc::netrpc::paired {

/// A message at its sender. One segment at a time is unacknowledged (§2.3, §2.5).
class Sending {
 public:
  enum class Next : std::uint8_t {
    wait,
    send,    ///< Send the present segment; for the first time if it has just become the present one.
    sent,    ///< The peer has received the whole message.
    failed,  ///< The peer has not answered max_retry times (§2.7).
  };

  /// Begins a message of `segments` segments, whose first one is to be sent now.
  void begin(std::uint16_t segments) noexcept { *this = Sending{segments}; }
  void stop() noexcept { active_ = false; }
  /// The peer has acknowledged `segment` explicitly.
  [[nodiscard]] Next acknowledged(std::uint16_t segment) noexcept {
    if (!active_) return Next::wait;
    // An acknowledgement of the previous segment: the peer's receive buffer is full. The peer is there, and gets all
    // the time that it takes (§3.4).
    if (segment + 1 == segment_) retries_ = 0;
    if (segment != segment_) return Next::wait;
    if (segment_ == segments_) return active_ = false, Next::sent;
    ++segment_;
    retries_ = resends_ = 0;
    resent_ = false;
    return Next::send;
  }
  /// The first segment of the message in the other direction acknowledges this whole message (§2.5). False: it cannot,
  /// because not all segments have been sent.
  [[nodiscard]] bool answered() noexcept {
    if (active_ && segment_ != segments_) return false;
    active_ = false;
    return true;
  }
  /// The retransmission timer has run out.
  [[nodiscard]] Next expired(unsigned max_retry) noexcept {
    if (retries_ == max_retry) return active_ = false, Next::failed;
    ++retries_;
    ++resends_;
    return again();
  }
  /// The peer has shown that it lacks the present segment.
  Next again() noexcept {
    resent_ = true;
    return Next::send;
  }

  [[nodiscard]] bool active() const noexcept { return active_; }
  [[nodiscard]] bool resent() const noexcept { return resent_; }
  /// How often the timer has run out for the present segment: the back-off doubles as often.
  [[nodiscard]] unsigned resends() const noexcept { return resends_; }
  [[nodiscard]] std::uint16_t segment() const noexcept { return segment_; }
  [[nodiscard]] bool last() const noexcept { return segment_ == segments_; }
  /// The control bits of the present segment. All but the last ask for an acknowledgement, the last one only when it is
  /// sent again.
  [[nodiscard]] std::uint16_t control() const noexcept {
    return static_cast<std::uint16_t>((last() ? bits::kLastSegment : 0) | (!last() || resent_ ? bits::kPleaseAck : 0));
  }

  Sending() noexcept = default;

 private:
  explicit Sending(std::uint16_t segments) noexcept : segments_(segments), active_(true) {}
  std::uint16_t segment_ = 1;
  std::uint16_t segments_ = 1;
  unsigned retries_ = 0;  ///< Timeouts since the last sign of life.
  unsigned resends_ = 0;
  bool active_ = false;
  bool resent_ = false;
};

/// A message at its receiver (§2.4).
class Receiving {
 public:
  struct Verdict {
    bool take = false;         ///< The segment is the next one. If false, it is dropped.
    bool acknowledge = false;  ///< Acknowledge the last segment that was taken.
  };

  void begin() noexcept { *this = {}; }
  /// A data segment has arrived. `full`: the one before is still in the receive buffer.
  [[nodiscard]] Verdict arrived(const Header& header, bool full) noexcept {
    const bool asked = header.has(bits::kPleaseAck);
    if (header.segment <= last_) return {.take = false, .acknowledge = asked};
    if (complete_ || header.segment != last_ + 1) return {};
    if (full) return {.take = false, .acknowledge = asked};
    last_ = header.segment;
    complete_ = header.has(bits::kLastSegment);
    return {.take = true, .acknowledge = asked};
  }
  [[nodiscard]] std::uint16_t last() const noexcept { return last_; }
  [[nodiscard]] bool complete() const noexcept { return complete_; }

 private:
  std::uint16_t last_ = 0;
  bool complete_ = false;
};

/// Finds out whether the peer is still there when nothing else shows it (§2.6). A probe is due after an interval. It
/// doubles with each acknowledged probe. Ours: the acknowledgement may take as long as the first interval.
class Probing {
 public:
  enum class Next : std::uint8_t { send, failed };

  void begin(Duration first) noexcept {
    interval_ = first_ = first;
    unanswered_ = 0;
  }
  void acknowledged(Duration longest) noexcept {
    if (unanswered_ == 0) return;
    unanswered_ = 0;
    interval_ = std::min(2 * backed_off_, longest);
  }
  /// The timer has run out.
  [[nodiscard]] Next expired(unsigned max_retry) noexcept {
    if (unanswered_ > max_retry) return Next::failed;
    backed_off_ = unanswered_++ == 0 ? interval_ : first_;
    interval_ = first_;
    return Next::send;
  }
  [[nodiscard]] Duration interval() const noexcept { return interval_; }

 private:
  Duration first_{};
  Duration interval_{};
  Duration backed_off_{};  ///< The interval before the last probe.
  unsigned unanswered_ = 0;
};

}  // namespace lrpc::netrpc::paired
