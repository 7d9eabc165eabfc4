// CHANNEL's own objects. Private to this folder.
#pragma once

#include <vector>

#include "lrpc/netrpc/host.h"
#include "netrpc/protocols/channel/channel.h"
#include "netrpc/protocols/channel/header.h"
#include "netrpc/protocols/channel/round_trip.h"
#include "netrpc/src/lazy_event.h"
#include "netrpc/src/queue.h"
#include "netrpc/src/silence.h"

namespace lrpc::netrpc::channel {

class ChannelProtocol;
class ClientChannel;
class ServerChannel;

/// What is known about the host at the other end of one lower session. Owned by the protocol, which drops it when no
/// channel of either direction and no memory of ended lives needs it.
struct ChannelPeer {
  ChannelPeer(SessionRef session, const ChannelOptions& options);

  SessionRef lower;
  /// Another session to this host, through which a request of its present life came. It may carry longer messages than
  /// `lower`, if `lower` was made before the layer below knew the host. Null while there are no server channels.
  SessionRef other_way;
  HostAddress host;                ///< Zero while the layer below knows only a device address.
  BootId boot_id = 0;              ///< The host's present life; zero: not known yet.
  std::size_t maximum = 0;         ///< Of the longest CHANNEL message: bytes, header included.
  std::size_t optimum = 0;         ///< The same, for a message in one packet.
  PathChanges path_changes;        ///< Since `maximum` and `optimum` were asked for.
  bool answers_questions = false;  ///< It has answered a question (kDoYouHave) in this life.
  RoundTripTimer round_trip;
  std::vector<ClientChannel*> clients;
  std::vector<ServerChannel*> servers;
  /// How many requests of ended lives are still being executed. Their channels share this count. The peer stays until
  /// it is zero.
  std::shared_ptr<std::size_t> abandoned = std::make_shared<std::size_t>(0);
  std::size_t kept = 0;                     ///< Bytes of buffers of the kept replies to it.
  std::vector<std::uint16_t> free_numbers;  ///< Taken from the end (last used), so that servers remember few channels.
  std::uint16_t next_number = 1;
  bool unused_before = false;  ///< It was unused at the last sweep, too.
  /// The epoch in which the last client channel to it was closed; 0: none ever was. The peer is kept for packet_epochs_
  /// after that, because for so long its server remembers through which lower session this host has called
  /// (recorded_elsewhere()).
  std::uint64_t called = 0;
  std::vector<HostAddress> called_as{};  ///< The addresses by which it was called: a machine may have several.
  /// The random number of the question whether the peer is in another life. Zero: not asked.
  std::uint32_t question = 0;

  /// Lives of the host that have ended. A packet from one of them has been under way for long and may have been
  /// executed already. So it is dropped, for as long as a packet can live.
  struct EndedLife {
    BootId boot_id = 0;
    Time until{};
  };
  static constexpr std::size_t kMostEnded = 128;
  std::vector<EndedLife> ended;

  /// If the host is unknown, asks the layer below for it; once it is known, asks for the sizes again.
  void meet(const ChannelOptions& options) noexcept;
  /// Whether both are known to be the same host.
  [[nodiscard]] bool same_host(ChannelPeer& other, const ChannelOptions& options) noexcept;
  void ask_sizes(const ChannelOptions& options) noexcept;
  /// Asks for the sizes again if a path to the host has changed.
  void look_at_sizes(const ChannelOptions& options) noexcept {
    if (path_changes.noticed(lower->protocol().host().peers(), host)) [[unlikely]]
      ask_sizes(options);
  }
  /// The session that carries a reply of `size` bytes, header included. Null: the reply is too long for all.
  [[nodiscard]] Session* way_of_reply(std::size_t size, const ChannelOptions& options) noexcept {
    look_at_sizes(options);
    if (size <= maximum) [[likely]]
      return lower.get();
    const std::size_t longest = longest_reply(options);
    return size <= maximum ? lower.get() : size <= longest ? other_way.get() : nullptr;
  }
  /// In bytes, header included.
  [[nodiscard]] std::size_t longest_reply(const ChannelOptions& options) noexcept;
  /// Pushes the header of a message on `channel` to this peer. False: there is no memory.
  [[nodiscard]] bool push_header(const Session& channel, std::uint16_t flag, std::uint32_t sequence, Errc error,
                                 Message& message) const noexcept;
  [[nodiscard]] bool has_ended(BootId life) const noexcept;
  /// Packets beyond the first that a message of `size` bytes of data takes.
  [[nodiscard]] std::size_t more_packets(std::size_t size) const noexcept {
    const std::size_t whole = size + ChannelHeader::kSize;
    return whole <= optimum ? 0 : (whole - 1) / optimum;
  }
};

/// Which channel a packet is for. The peer is named by its lower session, of which there is one for each host.
struct ChannelKey {
  const Session* lower = nullptr;
  std::uint16_t channel = 0;
  ProtocolNumber protocol = 0;
  std::uint64_t seed = 0;  ///< This host's hash seed: the peer chooses the other fields.
  [[nodiscard]] std::uint64_t hash() const noexcept {
    return mix(seed ^ reinterpret_cast<std::uintptr_t>(lower), std::uint64_t{channel} << 32 | protocol);
  }
  friend bool operator==(const ChannelKey& a, const ChannelKey& b) noexcept {
    return a.lower == b.lower && a.channel == b.channel && a.protocol == b.protocol;
  }
};

/// The client's end of a channel. Owned by its SessionRefs.
class ClientChannel final : public Session {
 public:
  ClientChannel(ChannelProtocol& protocol, Protocol& high, const ParticipantSet& participants, ChannelPeer& peer,
                std::uint64_t sequence);
  void call(Message request, Transaction& transaction, Duration timeout) noexcept override;
  void cancel(Transaction& transaction) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;
  /// A packet for this channel has arrived from the server; `message` is its data without padding.
  void pop(const ChannelHeader& header, Message&& message) noexcept;

  /// Its call waits for the peer's life, or was sent to another life of the peer.
  [[nodiscard]] bool outdated() const noexcept {
    return state_ == State::querying || (state_ != State::idle && life_ != peer_.boot_id);
  }
  /// The peer's life has become known: a call that waits for that goes on, one sent to another life has failed.
  void follow_life() noexcept;

  std::size_t place = 0;  ///< Index in the peer's `clients`.

 private:
  enum class State : std::uint8_t {
    idle,
    querying,   ///< Asks for the peer's boot identifier. The request has not been sent.
    waiting,    ///< The request has been sent.
    executing,  ///< The server has acknowledged the request: only probes are sent.
  };
  void unreferenced() noexcept override;
  [[nodiscard]] ChannelProtocol& channels() const noexcept;
  void start(Message&& request) noexcept;
  [[nodiscard]] bool push_header(std::uint16_t flag, Message& message) const noexcept {
    return peer_.push_header(*this, flag, static_cast<std::uint32_t>(sequence_), Errc::ok, message);
  }
  Errc send(std::uint16_t flag) noexcept;
  [[nodiscard]] Errc query() noexcept;
  void send_again(Time now) noexcept;
  void send_request_again(Time now) noexcept;
  /// The server says that it lacks the request.
  void lacking(Time now) noexcept;
  void arm(Time now) noexcept;
  /// How long to wait for the answer to a question: it is one packet, or the reply.
  [[nodiscard]] Duration answered_after() const noexcept { return peer_.round_trip.until_asked(more_in_reply_); }
  void expired() noexcept;
  void measure(Time now) noexcept;
  void answered_twice() noexcept;
  void finish(Errc outcome, Message&& reply) noexcept;

  ChannelPeer& peer_;
  State state_ = State::idle;
  std::uint8_t again_ = 0;              ///< Retransmissions, as the back-off counts them.
  BootId life_ = 0;                     ///< The life of the peer to which the request was sent.
  std::uint64_t sequence_;              ///< Of the last request; the wire carries the low 32 bits.
  Transaction* transaction_ = nullptr;  ///< Null while busy: the call was given up, the server may still execute it.
  Message request_;                     ///< A share, with its header, to send again; without a header while querying.
  std::size_t more_in_reply_ = 0;  ///< Packets beyond the first of the last reply: what the next is expected to take.
  std::size_t more_in_request_ = 0;
  Time sent_{};      ///< When the request was sent first.
  Silence silence_;  ///< Of the server, in this call.
  Time send_due_{};  ///< When to send again.
  Time deadline_{};
  Duration interval_{};
  /// While querying: the outcome if nobody answers. limit_reached: this host could send no query, for lack of memory or
  /// because its queue to the peer (TCP has one) was full.
  Errc unheard_ = Errc::host_unreachable;
  // For a request of several packets. It is sent again only if the server lacks it, or answers no questions.
  Time requested_{};          ///< When the request was sent last.
  Duration asking_after_{};   ///< How long after requested_ the server is asked.
  std::uint8_t asked_ = 0;    ///< Questions since the last one was answered.
  Time asked_at_{};           ///< When the last question was sent.
  bool one_question_ = true;  ///< No question or copy was sent while a question was open: answers can be timed (Karn).
  bool lacking_ = false;      ///< The server lacks what was sent at requested_: send the request again.
  bool lacked_ = false;       ///< The server has said in this call that it lacks the request.
  std::uint8_t resent_ = 0;   ///< How often the request has been sent again.
  bool ambiguous_ = false;    ///< The reply may answer something that was sent after the request.
  Repeated repeated_;
  LazyEvent timer_;
};

/// The server's end of a channel. It also remembers the channel between requests. Kept in the protocol's map.
class ServerChannel final : public Session {
 public:
  ServerChannel(ChannelProtocol& protocol, Protocol& high, const ParticipantSet& participants, ChannelPeer& peer,
                std::uint32_t sequence) noexcept;
  void reply(Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;
  /// A request, a probe or a question. Both lives in its header have been checked.
  void pop(const ChannelHeader& header, Message&& message) noexcept;
  /// The protocol drops this channel, for example because the client's life has ended: nothing is sent any more.
  void vanish() noexcept;

  std::size_t place = 0;  ///< Index in the peer's `servers`.
  Link<ServerChannel> link;

 protected:
  ~ServerChannel() override;

 private:
  friend class ChannelProtocol;
  enum class State : std::uint8_t {
    fresh,      ///< No request yet.
    executing,  ///< The protocol above executes a request.
    answered,   ///< The reply is kept, until the next request acknowledges it.
    forgotten,  ///< Answered, but the reply is not kept any more.
    too_long,   ///< Answered, but no session carries a reply so long.
  };
  [[nodiscard]] ChannelProtocol& channels() const noexcept;
  void execute(std::uint32_t sequence, Message&& request) noexcept;
  [[nodiscard]] bool push_header(std::uint16_t flag, Message& message, Errc error) const noexcept {
    return peer_->push_header(*this, flag, sequence_, error, message);
  }
  void send(std::uint16_t flag, Errc error) noexcept;
  /// `way` null: no session carries the reply.
  void push_reply(Session* way, Message&& message) noexcept;
  void send_reply() noexcept;
  void keep_reply(const Message& reply) noexcept;
  void let_go_of_reply() noexcept;
  void refuse(Errc reason) noexcept;

  ChannelPeer* peer_;
  std::shared_ptr<std::size_t> abandoned_;  ///< Set when it vanishes while executing: counts such channels.
  State state_ = State::fresh;
  std::uint32_t sequence_;
  Message reply_;            ///< A share, with its header, to send again.
  std::size_t kept_ = 0;     ///< The bytes for it in the protocol's kept_.
  std::uint64_t epoch_ = 0;  ///< When it was put into the protocol's unused_.
};

class ChannelProtocol final : public Protocol {
 public:
  ChannelProtocol(Host& host, std::string name, Protocol& below, const ChannelOptions& options);
  ~ChannelProtocol() override;

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  void demux(Session& lower, Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  friend class ClientChannel;
  friend class ServerChannel;

  struct LifeKey {
    BootId life = 0;
    std::uint64_t seed = 0;  ///< This host's hash seed.
    [[nodiscard]] std::uint64_t hash() const noexcept { return mix(seed, life); }
    friend bool operator==(LifeKey a, LifeKey b) noexcept { return a.life == b.life; }
  };

  [[nodiscard]] ChannelKey key(const Session* lower, std::uint16_t channel, ProtocolNumber protocol) const noexcept {
    return {lower, channel, protocol, hash_seed_};
  }
  [[nodiscard]] ChannelKey key_of(const Session& channel, const ChannelPeer& peer) const noexcept {
    return key(peer.lower.get(), channel.participants().remote.channel, channel.participants().protocol);
  }
  [[nodiscard]] ChannelPeer* find_peer(Session& lower);
  /// The peer through which channels to `host` go. The layer below now reaches `host` through `lower`.
  [[nodiscard]] ChannelPeer* peer_to_call(Session& lower, HostAddress host);
  [[nodiscard]] bool pick_number(ChannelPeer& peer, ProtocolNumber protocol, std::uint16_t& number);
  void input_request(Session& lower, const ChannelHeader& header, Message&& message) noexcept;
  void accept(Session& lower, const ChannelHeader& header, Message&& message) noexcept;
  [[nodiscard]] SessionRef make_server(Protocol& high, const ParticipantSet& participants, ChannelPeer& peer,
                                       std::uint32_t sequence) noexcept;
  void answer(Session& lower, const ChannelHeader& request, std::uint16_t flags, Errc error) noexcept;
  /// A packet says that `peer` is in the life `boot_id`. False: this is not believed. Either that life has ended, or
  /// too many lives have, or another life is known, and the peer is asked first.
  [[nodiscard]] bool heard(ChannelPeer& peer, BootId boot_id) noexcept;
  /// A boot answer for channel 0. It is dropped unless it answers question().
  void answered(Session& lower, const ChannelHeader& header) noexcept;
  void question(ChannelPeer& peer) noexcept;
  [[nodiscard]] bool may_begin(const ChannelPeer& peer, BootId boot_id) noexcept;
  void believe(ChannelPeer& peer, BootId boot_id) noexcept;
  void learn(ChannelPeer& peer, BootId boot_id) noexcept;
  void host_rebooted(HostAddress host, BootId now) noexcept;
  void closed(ClientChannel& channel, ChannelPeer& peer, std::uint64_t sequence) noexcept;
  [[nodiscard]] ChannelPeer* recorded_elsewhere(const ChannelPeer& peer, BootId life) noexcept;
  void forget_life(const ChannelPeer& peer, BootId life) noexcept;
  void list(ServerChannel& channel) noexcept;
  void drop(ServerChannel& channel) noexcept;
  void sweep() noexcept;
  void drop_unused_peers(bool at_once) noexcept;
  void forget_calls_to(const ChannelPeer& peer) noexcept;

  const ChannelOptions options_;
  Protocol& below_;
  const std::uint64_t hash_seed_;
  Map<ChannelKey, ClientChannel*> clients_;
  Map<ChannelKey, SessionRef> servers_;
  Map<ProtocolNumber, Protocol*> enabled_;
  Map<const Session*, std::unique_ptr<ChannelPeer>> peers_;
  Map<HostKey, ChannelPeer*> called_;  ///< The peers that this host has called, as long as they remember that.
  /// The peer through which requests of a client's life were executed, as long as that is remembered.
  Map<LifeKey, ChannelPeer*> recorded_;
  /// Above every sequence number that a closed channel has used. A channel number that is opened again continues here,
  /// so that nothing has to be remembered of closed channels.
  std::uint64_t next_sequence_;
  std::size_t kept_ = 0;                               ///< Bytes of buffers of kept replies.
  Queue<ServerChannel, &ServerChannel::link> unused_;  ///< Those not executing, the longest unused first.
  // Ages are counted in sweeps, so that the server need not read the clock for each request.
  Duration sweep_period_;
  /// For how many sweeps a channel is remembered after its last event. An in-progress that was sent before the
  /// execution may be under way for packet_life; the client then repeats the request for give_up; and its last copy may
  /// be under way for packet_life.
  std::uint64_t packet_epochs_;
  std::uint64_t reply_epochs_;
  std::uint64_t epoch_ = 1;
  Event sweep_;
  int learning_ = 0;                        ///< While not zero, no peer is dropped.
  std::shared_ptr<ChannelProtocol*> self_;  ///< For the watcher of reboots, which outlives this.
};

}  // namespace lrpc::netrpc::channel
