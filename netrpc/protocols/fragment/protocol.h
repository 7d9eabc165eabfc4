// The FRAGMENT protocol object, its sessions, and what they keep: output.cpp cuts and saves, input.cpp puts together.
#pragma once

#include <array>
#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "lrpc/netrpc/session_cache.h"
#include "netrpc/protocols/fragment/fragment.h"
#include "netrpc/protocols/fragment/header.h"
#include "netrpc/src/cells.h"
#include "netrpc/src/queue.h"
#include "netrpc/src/round_trip.h"
#include "netrpc/src/way.h"

namespace lrpc::netrpc::fragment {

/// The longest wait. A time that is longer is measured as this long: the host may have stood still.
inline constexpr Duration kLongestWait = std::chrono::seconds(1);

class FragmentProtocol;
class FragmentSession;

/// A message that has been sent in several fragments, kept while the receiver may ask for some of them again. Shares
/// the message's bytes.
struct SavedMessage {
  FragmentSession* session = nullptr;
  std::uint32_t sequence = 0;
  std::uint16_t num_frag = 0;
  std::size_t fragment_size = 0;
  Message message;
  Time sent_at{};
  Time expires{};
  unsigned answered = 0;
  Link<SavedMessage> of_session;
  Link<SavedMessage> of_protocol;
};

/// A message some fragments of which have arrived.
struct Reassembly {
  /// For the message that a fragment with this header is part of.
  Reassembly(FragmentProtocol& protocol, FragmentSession& its_session, const Header& header);
  FragmentSession* const session;
  const std::uint32_t sequence;
  const std::uint16_t num_frag;
  std::uint16_t received = 0;     ///< Mask.
  std::uint16_t asked = 0;        ///< Mask: asked for at least once.
  std::uint16_t asked_twice = 0;  ///< Mask: asked for more than once, so its arrival measures nothing (Karn).
  std::uint16_t asked_last = 0;   ///< Mask: by the last request.
  std::size_t fragment_size = 0;  ///< Of all but the last; 0: only the last has been seen.
  std::size_t last_size = 0;      ///< Of the last; 0: not seen.
  std::size_t bytes = 0;          ///< Of the buffers of what has arrived.
  unsigned requests = 0;          ///< In vain: since something new has arrived.
  Time asked_at{};                ///< Zero: not asked, or answered.
  Time gap_since{};               ///< A gap has been seen and may still close by itself. Zero: none.
  std::array<Message, Header::kMaxFragments> fragments;
  Event silence;  ///< Nothing has arrived for as long as it should take, or a gap has not closed by itself.
  Link<Reassembly> of_session;
  Link<Reassembly> of_protocol;

  /// Mask: what has not arrived.
  [[nodiscard]] std::uint16_t missing() const noexcept {
    return static_cast<std::uint16_t>(((1U << num_frag) - 1) & ~received);
  }
  /// Mask: what has not arrived, though something behind it has, and was not asked for.
  [[nodiscard]] std::uint16_t gaps() const noexcept {
    return static_cast<std::uint16_t>((std::bit_floor(received) - 1U) & ~received & ~asked);
  }
};

/// The newest one of `messages` with this number; null: none has it.
template <class Messages>
[[nodiscard]] auto* newest_of(const Messages& messages, std::uint32_t sequence) noexcept {
  auto* message = messages.last();
  while (message != nullptr && message->sequence != sequence) message = messages.before(*message);
  return message;
}

class FragmentSession final : public CachedSession {
 public:
  /// `heard`: the peer has chosen `lower`, by sending through it.
  FragmentSession(FragmentProtocol& protocol, Protocol& high, const ParticipantSet& participants, const PeerKey& key,
                  SessionRef lower, bool heard, HostAddress local, HostAddress remote);
  ~FragmentSession() override;

  Errc push(Message message) noexcept override;
  /// The message has been put together, or came in one piece.
  void pop(Message message) noexcept { high().demux(*this, std::move(message)); }
  Errc control(control::Request& request) noexcept override;

 private:
  friend class FragmentProtocol;
  bool busy() const noexcept override { return !saved_.empty() || !incomplete_.empty(); }
  void swept() noexcept override { follow_lower(); }
  FragmentProtocol& fragments() const noexcept;

  // output.cpp
  Errc push_fragment(Message&& piece, std::uint32_t sequence, std::uint16_t num_frag, std::size_t index,
                     std::uint8_t type = kData) noexcept;
  Errc push_large(Message message) noexcept;
  [[nodiscard]] Errc push_shrunk(Message message) noexcept;
  bool save(const Message& message, std::uint32_t sequence, std::uint16_t num_frag);
  void request_arrived(const Header& header) noexcept;
  void discard_expired();

  // input.cpp
  void fragment_arrived(const Header& header, Message message) noexcept;
  [[nodiscard]] bool may_ask() const noexcept { return opened_ || may_ask_ != 0; }
  void ask_for(Reassembly& reassembly, std::uint16_t missing) noexcept;
  void learn(Reassembly& reassembly, const Header& header) noexcept;
  void duplicate_arrived(const Header& header) noexcept;
  void was_late(Duration time) noexcept;
  [[nodiscard]] std::uint16_t overtaken(const Reassembly& reassembly, const Header& header) const noexcept;
  void look_for_gaps(Reassembly& reassembly, const Header& header) noexcept;
  [[nodiscard]] bool finished_before(std::uint32_t sequence) const noexcept;

  void learn_fragment_size();
  /// If paths have changed, the lower session may be another one, and carry less without cutting, or more.
  void look_at_lower() noexcept;
  void follow_lower() noexcept;

  Way lower_;
  HostAddress local_;
  HostAddress remote_;
  std::uint32_t sequence_;
  std::size_t fragment_size_ = 0;
  /// The first fields of outgoing packets, and of acceptable incoming ones. They are compared as bytes, so that a
  /// message in one fragment touches its header once.
  std::array<std::byte, Header::kPrefix> outgoing_{};
  std::array<std::byte, Header::kPrefix> incoming_{};

  Queue<SavedMessage, &SavedMessage::of_session> saved_;
  Queue<Reassembly, &Reassembly::of_session> incomplete_;
  std::size_t incomplete_bytes_ = 0;
  bool opened_;           ///< A protocol of this host has opened it. Otherwise it was made for what the peer sent.
  unsigned may_ask_ = 0;  ///< Requests that may be sent if not opened_.
  /// Messages that were finished or given up lately: a fragment that comes late must not begin them again.
  std::array<std::uint32_t, 32> finished_{};
  std::size_t finished_count_ = 0;
  /// How long a gap may take to close by itself: no time, until a fragment that was asked for was only late.
  Duration reordering_{};
  RetryTimer answer_time_;  ///< From a request for fragments to the first of them.
  /// The last message of which a fragment was asked for again after silence, until that is known to have been needless.
  std::optional<std::uint32_t> asked_again_;
  std::optional<std::uint32_t> guessed_;  ///< The same, if it was asked for again because later answers had come.
  RetryTimer request_time_;               ///< From a burst to the first request for a part of it.
  Event expiry_;
};

class FragmentProtocol final : public Protocol {
 public:
  FragmentProtocol(Host& host, std::string name, Protocol& lower, const FragmentOptions& options);
  ~FragmentProtocol() override;

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  void demux(Session& lower, Message message) noexcept override;
  Errc control(control::Request& request) noexcept override;

 private:
  friend class FragmentSession;
  friend struct Reassembly;

  void demux_slowly(Session& lower, const Header& header, Message message) noexcept;
  [[nodiscard]] FragmentSession* session_of(Session& lower, const Header& header) noexcept;
  Result<FragmentSession*> make_session(Protocol& high, const ParticipantSet& participants, const PeerKey& key,
                                        SessionRef lower, bool heard, HostAddress remote);
  [[nodiscard]] Status enable_lower();
  [[nodiscard]] ParticipantSet for_lower(const ParticipantSet& participants) const;
  [[nodiscard]] std::size_t uncut() const noexcept;
  [[nodiscard]] std::size_t data_in(std::size_t packet) const noexcept;
  [[nodiscard]] HostAddress local_host(Session& lower) const noexcept;

  void discard(SavedMessage& saved) noexcept;
  /// Null: there is no memory.
  [[nodiscard]] Reassembly* begin(FragmentSession& session, const Header& header) noexcept;
  void finish(Reassembly& reassembly) noexcept;
  [[nodiscard]] bool make_room(const Reassembly& reassembly, std::size_t size) noexcept;
  void silent(Reassembly& reassembly) noexcept;

  Protocol& lower_;
  const FragmentOptions options_;
  bool lower_enabled_ = false;
  Map<ProtocolNumber, Protocol*> enabled_;
  Cells<SavedMessage> saved_records_;
  Cells<Reassembly> reassembly_records_;
  Queue<SavedMessage, &SavedMessage::of_protocol> saved_;
  Queue<Reassembly, &Reassembly::of_protocol> incomplete_;
  std::size_t saved_bytes_ = 0;
  std::size_t incomplete_bytes_ = 0;
  SessionCache sessions_;  // last, so destroyed first: its sessions release the above
};

inline FragmentProtocol& FragmentSession::fragments() const noexcept {
  return static_cast<FragmentProtocol&>(protocol());
}

inline void FragmentSession::look_at_lower() noexcept {
  if (lower_.changed()) [[unlikely]]
    follow_lower();
}

}  // namespace lrpc::netrpc::fragment
