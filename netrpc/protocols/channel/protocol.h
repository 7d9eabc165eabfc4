// CHANNEL's own objects. Private to this folder.
#pragma once

#include <vector>

#include "lrpc/netrpc/host.h"
#include "netrpc/protocols/channel/channel.h"
#include "netrpc/protocols/channel/header.h"
#include "netrpc/protocols/channel/round_trip.h"
#include "netrpc/src/lazy_event.h"
#include "netrpc/src/silence.h"

namespace lrpc::netrpc::channel {

class ChannelProtocol;
class ClientChannel;
class ServerChannel;

/// What is known about the host at the other end of one lower session. Owned by the protocol; goes when no channel, of
/// either direction, and no memory of ended lives needs it.
struct ChannelPeer {
  ChannelPeer(SessionRef session, const ChannelOptions& options);

  SessionRef lower;
  /// Another session to this host, by which a request of this life has come. It may carry what `lower` does not, if
  /// `lower` was made when the layer below did not know the host. None while there are no server's channels.
  SessionRef other_way;
  HostAddress host;                ///< Zero where the layer below knows a device address only, as yet.
  BootId boot_id = 0;              ///< The life it is in; zero: not asked yet.
  std::size_t maximum = 0;         ///< Bytes of a CHANNEL message with its header.
  std::size_t optimum = 0;         ///< The same, in one packet.
  PathChanges path_changes;        ///< Since the two were asked for.
  bool answers_questions = false;  ///< In this life: it has.
  RoundTripTimer round_trip;
  std::vector<ClientChannel*> clients;
  std::vector<ServerChannel*> servers;
  /// Requests of lives that are over on which somebody still works: their channels share this count. The peer stays
  /// until there are none.
  std::shared_ptr<std::size_t> abandoned = std::make_shared<std::size_t>(0);
  std::size_t kept = 0;                     ///< Bytes of replies that are kept for it.
  std::vector<std::uint16_t> free_numbers;  ///< Most recently used last: the server remembers few channels.
  std::uint16_t next_number = 1;
  bool unused_before = false;  ///< At the last sweep already.
  /// The sweep in which the last channel to it was closed; 0: none ever was. The server remembers for as long by which
  /// way this host has called (recorded_elsewhere()).
  std::uint64_t called = 0;
  std::vector<HostAddress> called_as{};  ///< The hosts under which it has been called: a machine may have several.
  /// The peer has been asked whether it is in another life, with this number. Zero: it has not.
  std::uint32_t question = 0;

  /// Lives that are over. What comes from one of them has been under way for long and may have been executed already:
  /// it is dropped, for as long as a packet can live.
  struct EndedLife {
    BootId boot_id = 0;
    Time until{};
  };
  static constexpr std::size_t kMostEnded = 128;
  std::vector<EndedLife> ended;

  /// A layer below that did not know the host is asked again, and so are the sizes once it does.
  void meet(const ChannelOptions& options) noexcept;
  /// Whether both are known to be the same host.
  [[nodiscard]] bool same_host(ChannelPeer& other, const ChannelOptions& options) noexcept;
  void ask_sizes(const ChannelOptions& options) noexcept;
  /// Asks again where a peer has said what it receives.
  void look_at_sizes(const ChannelOptions& options) noexcept {
    if (path_changes.noticed(lower->protocol().host().peers(), host)) [[unlikely]]
      ask_sizes(options);
  }
  /// Through which session a reply of so many bytes, with its header, goes. Null: it is too long.
  [[nodiscard]] Session* way_of_reply(std::size_t size, const ChannelOptions& options) noexcept {
    look_at_sizes(options);
    if (size <= maximum) [[likely]]
      return lower.get();
    const std::size_t longest = longest_reply(options);
    return size <= maximum ? lower.get() : size <= longest ? other_way.get() : nullptr;
  }
  /// With its header.
  [[nodiscard]] std::size_t longest_reply(const ChannelOptions& options) noexcept;
  /// Of a message on `channel` to this peer. False: there is no memory.
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
  std::uint64_t seed = 0;  ///< The host's: the peer chooses the rest.
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
  /// Something has arrived from the server for this channel; its data is cut to its length.
  void pop(const ChannelHeader& header, Message&& message) noexcept;

  /// The peer's life is known now.
  void peer_known() noexcept;
  /// The peer is in another life now than before.
  void peer_rebooted() noexcept;
  [[nodiscard]] ChannelKey key() const noexcept;

  std::size_t place = 0;  ///< In its peer's list.

 protected:
  ~ClientChannel() override;
  void unreferenced() noexcept override;

 private:
  enum class State : std::uint8_t {
    idle,
    querying,   ///< Asks for the peer's boot identifier. The request has not been sent.
    waiting,    ///< The request has been sent.
    executing,  ///< The server has said that it has it: probes only.
  };
  [[nodiscard]] ChannelProtocol& channels() const noexcept;
  void start(Message&& request) noexcept;
  [[nodiscard]] bool push_header(std::uint16_t flag, Message& message) const noexcept {
    return peer_.push_header(*this, flag, static_cast<std::uint32_t>(sequence_), Errc::ok, message);
  }
  Errc send(std::uint16_t flag) noexcept;
  void send_again(Time now) noexcept;
  void send_request_again(Time now) noexcept;
  /// The server says that it lacks the request.
  void lacking(Time now) noexcept;
  void arm(Time now) noexcept;
  /// How long the answer to a question takes: one packet, or the reply.
  [[nodiscard]] Duration answered_after() const noexcept { return peer_.round_trip.until_asked(more_in_reply_); }
  void expired() noexcept;
  void measure(Time now) noexcept;
  void answered_twice() noexcept;
  void finish(Errc outcome, Message&& reply) noexcept;

  ChannelPeer& peer_;
  State state_ = State::idle;
  std::uint8_t again_ = 0;              ///< How often the back-off counts that something was sent again.
  BootId life_ = 0;                     ///< The peer's that the request was sent to.
  std::uint64_t sequence_;              ///< Of the last request; the wire carries the low 32 bits.
  Transaction* transaction_ = nullptr;  ///< Null while busy: the call was given up, the server may still be at it.
  Message request_;                     ///< A share, with its header, to send again; without a header while querying.
  std::size_t more_in_reply_ = 0;  ///< Packets beyond the first of the last reply: what the next is expected to take.
  std::size_t more_in_request_ = 0;
  Time sent_{};      ///< The first time.
  Silence silence_;  ///< Of the server's, in this call.
  Time send_due_{};  ///< When to send again.
  Time deadline_{};
  Duration interval_{};
  // A request of several packets is not sent again before the server has said that it lacks it.
  Time requested_{};          ///< When the request was sent last.
  Duration asking_after_{};   ///< How long after that the server is asked.
  std::uint8_t asked_ = 0;    ///< Questions since the last answer to one.
  Time asked_at_{};           ///< When the last of them was sent.
  bool one_question_ = true;  ///< In this call none was sent while another had no answer: answers measure (Karn).
  bool lacking_ = false;      ///< The server lacks what was sent then, and is to be sent it again.
  bool lacked_ = false;       ///< It has said so in this call.
  std::uint8_t resent_ = 0;   ///< How often the request has been sent again.
  bool ambiguous_ = false;    ///< The reply may answer something that was sent later than the request.
  Repeated repeated_;
  LazyEvent timer_;
};

/// The server's end: also what is remembered of a channel between its requests. Kept in the protocol's map.
class ServerChannel final : public Session {
 public:
  ServerChannel(ChannelProtocol& protocol, Protocol& high, const ParticipantSet& participants, ChannelPeer& peer,
                std::uint32_t sequence) noexcept;
  void reply(Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;
  /// A request or a probe; the sender's life and the life it means have been checked.
  void pop(const ChannelHeader& header, Message&& message) noexcept;
  /// The client or what was kept for it is gone: nothing is sent any more.
  void vanish() noexcept;
  [[nodiscard]] ChannelKey key() const noexcept;

  std::size_t place = 0;  ///< In its peer's list.

 protected:
  ~ServerChannel() override;

 private:
  friend class ChannelProtocol;
  enum class State : std::uint8_t {
    fresh,      ///< No request yet.
    executing,  ///< The protocol above has one.
    answered,   ///< The reply is kept, until the next request acknowledges it.
    forgotten,  ///< Answered, but the reply is not kept any more.
    too_long,   ///< Answered, but no way carries the reply.
  };
  [[nodiscard]] ChannelProtocol& channels() const noexcept;
  void execute(std::uint32_t sequence, Message&& request) noexcept;
  [[nodiscard]] bool push_header(std::uint16_t flag, Message& message, Errc error) const noexcept {
    return peer_->push_header(*this, flag, sequence_, error, message);
  }
  void send(std::uint16_t flag, Errc error) noexcept;
  /// `way` null: there is none.
  void push_reply(Session* way, Message&& message) noexcept;
  void send_reply() noexcept;
  void keep_reply(const Message& reply) noexcept;
  void let_go_of_reply() noexcept;

  ChannelPeer* peer_;
  std::shared_ptr<std::size_t> abandoned_;  ///< Counts it once it has vanished while it was executing.
  State state_ = State::fresh;
  std::uint32_t sequence_;
  Message reply_;         ///< A share, with its header, to send again.
  std::size_t kept_ = 0;  ///< What it counts for in the protocol's kept_.
  // The list of channels that are not executing, the longest unused first.
  ServerChannel* older_ = nullptr;
  ServerChannel* newer_ = nullptr;
  bool listed_ = false;
  std::uint64_t epoch_ = 0;
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
    std::uint64_t seed = 0;  ///< The host's.
    [[nodiscard]] std::uint64_t hash() const noexcept { return mix(seed, life); }
    friend bool operator==(LifeKey a, LifeKey b) noexcept { return a.life == b.life; }
  };

  [[nodiscard]] ChannelKey key(const Session* lower, std::uint16_t channel, ProtocolNumber protocol) const noexcept {
    return {lower, channel, protocol, hash_seed_};
  }
  [[nodiscard]] ChannelPeer* find_peer(Session& lower);
  /// Where channels to `host` go, which the layer below now reaches through `lower`.
  [[nodiscard]] ChannelPeer* peer_to_call(Session& lower, HostAddress host);
  [[nodiscard]] bool pick_number(ChannelPeer& peer, ProtocolNumber protocol, std::uint16_t& number);
  void input_request(Session& lower, const ChannelHeader& header, Message&& message) noexcept;
  void accept(Session& lower, const ChannelHeader& header, Message&& message) noexcept;
  void answer(Session& lower, const ChannelHeader& request, std::uint16_t flags, Errc error) noexcept;
  /// Something says that `peer` is in the life `boot_id`. False: that is not known to be so (any more, or yet: where
  /// another life was known the peer is asked).
  [[nodiscard]] bool heard(ChannelPeer& peer, BootId boot_id) noexcept;
  /// A boot answer for no channel: to question(), if it is one.
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
  void unlist(ServerChannel& channel) noexcept;
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
  Map<HostKey, ChannelPeer*> called_;  ///< Those that have been called, while their servers remember it.
  /// Where requests of a client's life have been executed, for as long as that is remembered.
  Map<LifeKey, ChannelPeer*> recorded_;
  /// Above every sequence number that any closed channel has used: a number that is used again goes on behind it, so
  /// that nothing has to be remembered of closed channels.
  std::uint64_t next_sequence_;
  std::size_t kept_ = 0;  ///< Bytes of replies that are kept.
  ServerChannel* oldest_ = nullptr;
  ServerChannel* newest_ = nullptr;
  // Ages are counted in sweeps, so that a request costs no look at the clock at the server.
  Duration sweep_period_;
  /// How long a channel is remembered after the last thing that happened on it. When its request has been executed, an
  /// in-progress of before may be under way for packet_life; the client then sends the request for give_up more; and
  /// the last copy may be under way for packet_life.
  std::uint64_t packet_epochs_;
  std::uint64_t reply_epochs_;
  std::uint64_t epoch_ = 1;
  Event sweep_;
  int learning_ = 0;                        ///< Peers must stay where they are.
  std::shared_ptr<ChannelProtocol*> self_;  ///< For the watcher of reboots, which outlives this.
};

}  // namespace lrpc::netrpc::channel
