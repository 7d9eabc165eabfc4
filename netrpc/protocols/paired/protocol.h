// PAIRED's own objects: both ends of a channel, and the protocol. Private to this folder.
#pragma once

#include <memory>
#include <vector>

#include "lrpc/netrpc/host.h"
#include "netrpc/protocols/paired/paired.h"
#include "netrpc/protocols/paired/transfer.h"
#include "netrpc/src/lazy_event.h"
#include "netrpc/src/round_trip.h"
#include "netrpc/src/silence.h"

namespace lrpc::netrpc::paired {

class PairedProtocol;

/// Names a channel, for which the paper has a pair of sockets (§4.1). `lower` names the peer: the layer below has one
/// session for each.
struct ChannelKey {
  std::uint64_t seed = 0;  ///< This host's hash seed: peers choose the other fields.
  const Session* lower = nullptr;
  ProtocolNumber protocol = 0;
  std::uint16_t channel = 0;
  [[nodiscard]] std::uint64_t hash() const noexcept {
    return mix(seed ^ reinterpret_cast<std::uintptr_t>(lower), std::uint64_t{channel} << 32 | protocol);
  }
  friend bool operator==(const ChannelKey&, const ChannelKey&) = default;
};

/// What all channels of one host share.
struct OfHost {
  std::size_t sessions = 0;           ///< Of this host at this server.
  std::size_t received = 0;           ///< Bytes of buffers of incoming messages.
  const class End* beyond = nullptr;  ///< The end that may exceed the host's share of `memory`.
  bool waiting = false;               ///< An end of this host has a full receive buffer for want of that share.
  std::size_t kept = 0;               ///< Bytes of buffers of replies, and of those reserved for future ones.
  std::size_t likely = 0;             ///< The likely cost of a reply: rises at once, falls slowly (replied()).

  void replied(std::size_t bytes) noexcept {
    likely = std::max(bytes, likely - (likely - std::min(likely, bytes)) / 8);
  }
};

/// One end of a channel: the message that it sends, the message that it receives, and the timer of both (end.cpp). The
/// ends differ in which one begins, and in when they probe (client.cpp, server.cpp).
class End : public Session {
 public:
  [[nodiscard]] ChannelKey key() const noexcept {
    return {protocol().host().hash_seed(), lower_.get(), participants().protocol, participants().remote.channel};
  }
  [[nodiscard]] Errc control(control::Request& request) noexcept override;
  /// There may be memory now for the segment in the receive buffer. False: the message has ended (received or lost).
  bool deliver() noexcept;

  bool used = true;  ///< Since the last sweep.

 protected:
  friend class PairedProtocol;
  End(PairedProtocol& protocol, Protocol& high, const ParticipantSet& participants, SessionRef lower,
      std::shared_ptr<OfHost> of_host, std::uint16_t from);
  ~End() override;

  /// Whether a whole message may be received now. If not, its last segment stays in the receive buffer until deliver().
  [[nodiscard]] virtual bool may_receive() noexcept { return true; }
  /// A whole message has been received.
  virtual void received(Message&& message) noexcept = 0;
  /// The peer has acknowledged the whole message.
  virtual void sent() noexcept {}
  /// The peer does not answer any more.
  virtual void broken() noexcept = 0;
  /// A message of this call cannot be carried: it is too long for a limit or a link, or there is no memory for it.
  virtual void lost() noexcept = 0;

  [[nodiscard]] PairedProtocol& paired() const noexcept;
  /// A segment of the present call and conversation has arrived. It has data only if the message in the other direction
  /// has been acknowledged.
  void arrived(const Header& header, Message&& message) noexcept;
  /// Begins to send. False: there is no memory for it.
  [[nodiscard]] bool begin(Message&& message) noexcept;
  /// Sends the present segment. Errors: those of the layer below.
  Errc transmit() noexcept;
  void send(std::uint16_t control, std::uint16_t segment = 0) noexcept { (void)push_segment({}, control, segment); }
  /// `message`: the data, to be consumed.
  Errc push_segment(Message message, std::uint16_t control, std::uint16_t segment) noexcept;
  void measure() noexcept;
  void let_go_of_sent() noexcept {
    present_.clear();
    rest_.clear();
  }
  void let_go_of_received() noexcept;
  /// Sets the timer for what is due next, counted from now.
  void wait() noexcept;
  void arm(Time now) noexcept { timer_.run_by(protocol().host().events(), now, std::min(due_, deadline_)); }
  virtual void expired() noexcept;

  SessionRef lower_;
  const std::shared_ptr<OfHost> of_host_;
  const std::uint16_t from_;  ///< bits::kFromServer, or 0.
  std::uint32_t call_ = 0;
  std::uint64_t conversation_ = 0;
  Sending sending_;
  Receiving receiving_;
  Probing probing_;
  bool expecting_ = false;  ///< A message, or more of it, is expected: the peer is probed if nothing is being sent.
  Message present_;         ///< The segment that is not acknowledged, without its header.
  Message rest_;            ///< The segments after present_.
  Message buffer_;          ///< The receive buffer: one segment, if full_.
  bool full_ = false;
  End* fuller_ = nullptr;  ///< In the list of ends with a full buffer: the one whose buffer was filled before,
  End* later_ = nullptr;   ///< and the one whose buffer was filled after.
  Message gathered_;       ///< The segments before buffer_: in the paper, the user takes them out.
  std::size_t cost_ = 0;   ///< Bytes for gathered_ in the protocol's received_bytes_.
  Duration patience_{};    ///< The least time to wait for the acknowledgement of the present segment.
  Time sent_at_{};         ///< When the present segment was sent first.
  Silence silence_;        ///< For how long the peer has not said that it lacks the present segment.
  Time due_ = Time::max();
  Time deadline_ = Time::max();

 private:
  void data(const Header& header, Message&& message) noexcept;
  [[nodiscard]] bool next_segment() noexcept;
  void ask_size() noexcept;

  PathChanges path_changes_;
  std::size_t segment_ = kSegment;
  RetryTimer round_trip_;
  LazyEvent timer_;
};

/// The client's end. The protocol keeps it for the no-activity time after its user has released it: it acknowledges the
/// last reply if the server sends that again (Figure 4), and it may be opened again.
class ClientEnd final : public End {
 public:
  ClientEnd(PairedProtocol& protocol, Protocol& high, const ParticipantSet& participants, SessionRef lower,
            std::shared_ptr<OfHost> of_host)
      : End(protocol, high, participants, std::move(lower), std::move(of_host), 0) {}
  void call(Message request, Transaction& transaction, Duration timeout) noexcept override;
  void cancel(Transaction& transaction) noexcept override;
  void pop(const Header& header, Message&& message) noexcept;
  [[nodiscard]] bool idle() const noexcept { return state_ == State::idle; }

 private:
  enum class State : std::uint8_t {
    idle,
    meeting,  ///< Asks the server for a conversation. Nothing has been sent that it could execute.
    calling,
  };
  void unreferenced() noexcept override {  // the sweep drops it
    if (transaction_ != nullptr) cancel(*transaction_);
  }
  void received(Message&& message) noexcept override { finish(Errc::ok, std::move(message)); }
  void broken() noexcept override {
    conversation_ = 0;  // the server may be in another life by the next call
    finish(state_ == State::meeting ? unheard_ : Errc::call_failed, {});
  }
  void lost() noexcept override { finish(Errc::call_lost, {}); }
  void expired() noexcept override;
  void ask_for_conversation() noexcept {
    if (push_segment({}, bits::kProbe, 0) != Errc::limit_reached) unheard_ = Errc::host_unreachable;
  }
  void start() noexcept;
  void finish(Errc outcome, Message&& reply) noexcept;

  State state_ = State::idle;
  Transaction* transaction_ = nullptr;  ///< Null while busy: the call goes on without its caller.
  Message request_;                     ///< Only while meeting.
  /// While meeting: the outcome if nobody answers. limit_reached: this host could send no probe.
  Errc unheard_ = Errc::host_unreachable;
};

/// The server's end. It also remembers the channel between calls.
class ServerEnd final : public End {
 public:
  ServerEnd(PairedProtocol& protocol, Protocol& high, const ParticipantSet& participants, SessionRef lower,
            std::shared_ptr<OfHost> of_host, std::uint64_t conversation)
      : End(protocol, high, participants, std::move(lower), std::move(of_host), bits::kFromServer) {
    conversation_ = conversation;
    ++of_host_->sessions;
  }
  ~ServerEnd() override { --of_host_->sessions; }
  void reply(Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;
  void pop(const Header& header, Message&& message) noexcept;
  [[nodiscard]] std::uint64_t conversation() const noexcept { return conversation_; }
  /// The protocol drops this end: it sends nothing any more, and nothing arrives for it.
  void vanish() noexcept {
    broken();  // sends nothing
    executing_ = false;
    lower_ = {};
  }
  /// Nothing is in progress that must be remembered.
  [[nodiscard]] bool idle() const noexcept { return !executing_ && !expecting_ && !full_ && !sending_.active(); }
  /// The no-activity timer. It ends a request that does not grow though its client answers probes, and a reply that its
  /// client does not take though it acknowledges.
  void swept() noexcept {
    if ((expecting_ || full_ || sending_.active()) && !std::exchange(moved_, false)) broken();
  }

 private:
  [[nodiscard]] bool may_receive() noexcept override;
  void received(Message&& message) noexcept override;
  void sent() noexcept override { let_go_of_reply(); }
  void broken() noexcept override;
  void lost() noexcept override {
    broken();
    send(bits::kLost);
  }
  void let_go_of_reply() noexcept {
    hold(0);
    let_go_of_sent();
  }
  void hold(std::size_t bytes) noexcept;

  bool fresh_ = true;  ///< No request yet.
  bool executing_ = false;
  bool lost_ = false;  ///< There will be no reply to the present call: its client is told so when it asks.
  bool moved_ = true;  ///< Since the last sweep the request has grown, or the reply has been begun.
  /// Bytes for the reply in the protocol's kept_bytes_; before there is a reply, those that it is likely to take.
  std::size_t kept_ = 0;
};

class PairedProtocol final : public Protocol {
 public:
  PairedProtocol(Host& host, std::string name, Protocol& below, const PairedOptions& options);
  ~PairedProtocol() override;

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  void demux(Session& lower, Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  friend class End;
  friend class ClientEnd;
  friend class ServerEnd;
  /// The least that a reply is assumed to take of the buffer pool, in bytes.
  static constexpr std::size_t kCost = BufferPool::kSizes[1];

  /// The longest time for which a request is sent again: its server remembers it for longer.
  [[nodiscard]] Duration repeats() const noexcept {
    return std::max<Duration>(options_.no_activity / 2, options_.longest_timeout * (options_.max_retry + 1));
  }
  void input_request(Session& lower, const Header& header, Message&& message) noexcept;
  [[nodiscard]] ServerEnd* accept(Session& lower, const Header& header) noexcept;
  void meet(Session& lower, const Header& header) noexcept;
  void drop(const ChannelKey& key, ServerEnd& end) noexcept {
    end.vanish();
    servers_.unbind(key);
  }
  [[nodiscard]] std::shared_ptr<OfHost> of(HostAddress peer) {
    const HostKey key{host().hash_seed(), peer};
    auto* const known = of_hosts_.resolve(key);
    return known != nullptr ? *known : of_hosts_.bind(key, std::make_shared<OfHost>());
  }
  [[nodiscard]] bool take_room(End& end) noexcept;
  void give_room(End& end) noexcept;
  [[nodiscard]] bool has_room_for_reply(OfHost& of_host) noexcept;
  /// Whether an end may be waiting for room: in this host's share, or in all of `memory`.
  [[nodiscard]] bool some_wait(const OfHost& of_host) const noexcept { return waiting_for_room_ || of_host.waiting; }
  /// The receive buffer of `end` has become full, or empty.
  void filled(End& end) noexcept {
    end.fuller_ = last_full_;
    end.later_ = nullptr;
    (last_full_ == nullptr ? first_full_ : last_full_->later_) = &end;
    last_full_ = &end;
  }
  void emptied(End& end) noexcept {
    if (!std::exchange(end.full_, false)) return;
    (end.fuller_ == nullptr ? first_full_ : end.fuller_->later_) = end.later_;
    (end.later_ == nullptr ? last_full_ : end.later_->fuller_) = end.fuller_;
  }
  /// Room that counted for this host has been given back, or another end waits for its turn.
  void deliver_soon(const OfHost& of_host) noexcept {
    if (some_wait(of_host) && !room_.waiting()) host().events().schedule(room_, Duration(0));
  }
  void deliver_waiting() noexcept;
  void keep_sweeping() {
    if (!sweep_.waiting()) host().events().schedule(sweep_, options_.no_activity);
  }
  void sweep(bool at_once) noexcept;

  const PairedOptions options_;
  Protocol& below_;
  // The ends whose receive buffer is full (most only for a moment): the one that has been full for longest comes first.
  End* first_full_ = nullptr;
  End* last_full_ = nullptr;
  Map<ChannelKey, std::unique_ptr<ClientEnd>> clients_;
  Map<ChannelKey, SessionRef> servers_;
  Map<ProtocolNumber, Protocol*> enabled_;
  Map<HostKey, std::shared_ptr<OfHost>> of_hosts_;
  std::uint32_t call_number_;   ///< The last call number of all channels: shared, so that no channel's numbers go back.
  std::uint32_t meetings_ = 0;  ///< Conversations begun in this life.
  std::size_t received_bytes_ = 0;  ///< Bytes of buffers of incoming messages.
  const End* beyond_ = nullptr;     ///< The end that may exceed `memory`, so that at least one message is finished.
  bool waiting_for_room_ = false;   ///< A receive buffer is full for want of room.
  std::size_t kept_bytes_ = 0;      ///< As OfHost::kept.
  Event room_;
  Event sweep_;
};

inline PairedProtocol& End::paired() const noexcept { return static_cast<PairedProtocol&>(protocol()); }

}  // namespace lrpc::netrpc::paired
