// The client's half: a fixed number of channels to each peer, each with at most one call under way.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/protocol.h"
#include "netrpc/protocols/mrpc/fragments.h"
#include "netrpc/src/lazy_event.h"
#include "netrpc/src/round_trip.h"
#include "netrpc/src/silence.h"
#include "netrpc/src/waiting_calls.h"

namespace lrpc::netrpc::mrpc {

class Monolithic;
class ClientPeer;

/// What a client opens: a command of a host. Lives as long as somebody refers to it; calls under way outlive it.
class ClientSession final : public Session {
 public:
  ClientSession(Monolithic& mrpc, Protocol& high, const ParticipantSet& participants, ClientPeer& peer) noexcept;
  void call(Message request, Transaction& transaction, Duration timeout) noexcept override;
  void cancel(Transaction& transaction) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  void unreferenced() noexcept override;
  Monolithic& mrpc_;
  const Ref<ClientPeer> peer_;
};

/// One channel. Idle, or with one call between its request and its reply.
struct ClientChannel {
  ClientChannel(ClientPeer& owner, std::uint16_t its_number);

  ClientPeer& peer;
  const std::uint16_t number;
  Transaction* transaction = nullptr;  ///< Of the call under way; null: idle.
  std::uint32_t sequence = 0;          ///< Of the call, or of the last one.
  std::uint16_t command = 0;
  std::uint16_t acknowledged = 0;     ///< Fragments of the request that the server says it has.
  std::uint16_t reply_fragments = 0;  ///< While idle: of the last reply; if more than one, it is not acknowledged yet.
  std::uint8_t tries = 0;             ///< Timeouts in a row, as the back-off counts them.
  bool sampled = true;                ///< The round trip of this call must not be measured any more.
  bool lacked = false;                ///< The server has said that it has only a part of the request.
  Outgoing request;
  Incoming reply;
  Time started{};
  Silence silence;  ///< Of the server, about this call.
  Repeated repeated;
  Time due{};  ///< When on_timer() has to act next.
  LazyEvent timer;
};

/// Another host as a server: its life, its channels, and the calls that wait for one.
class ClientPeer {
 public:
  ClientPeer(Monolithic& mrpc, HostAddress host, SessionRef lower);

  void call(std::uint16_t command, Message request, Transaction& transaction, Duration timeout) noexcept;
  void cancel(Transaction& transaction) noexcept;

  // What arrives. The header's addresses have been checked: from this peer, for this host.
  void on_reply(const Header& header, Message&& message) noexcept;
  void on_ack(const Header& header) noexcept;
  void on_life(const Header& header) noexcept;
  void on_rebooted(const Header& header) noexcept;
  /// The peer has begun the life `now`: outstanding calls fail.
  void rebooted(BootId now) noexcept;

  [[nodiscard]] std::size_t max_message() const noexcept { return longest(single_); }
  [[nodiscard]] std::size_t single() const noexcept { return single_; }
  /// Asks again how much one packet carries, if a path to the host has changed.
  void look_at_path() noexcept;
  [[nodiscard]] const RetryTimer& round_trip() const noexcept { return round_trips_[0]; }
  [[nodiscard]] bool idle() const noexcept { return references_ == 0 && free_ == all_free_ && waiting_.empty(); }

  bool used = true;  ///< It was used since the last sweep.

 private:
  friend struct ClientChannel;
  friend class Ref<ClientPeer>;
  /// Keeps the peer during a loop over calls: completed() may release the last session and then ask for DropIdle.
  using Keep = Ref<ClientPeer>;

  static void unreferenced() noexcept {}  // the sweep drops it
  void start(std::uint16_t command, Message&& request, Transaction& transaction, Time now) noexcept;
  /// Queues the call. If Settings::queue calls wait already, it is completed with limit_reached.
  void wait(std::uint16_t command, Message&& request, Transaction& transaction, Time now) noexcept;
  /// Starts waiting calls as long as channels are free; queries the peer's life if they wait for that.
  void start_waiting() noexcept;
  void release(ClientChannel& channel) noexcept {
    channel.transaction = nullptr;
    channel.request.whole.clear();
    channel.reply.clear();
    free_ |= std::uint64_t{1} << channel.number;
  }
  void finish(ClientChannel& channel, Errc outcome, Message&& reply) noexcept;
  void on_fragment(ClientChannel& channel, const Header& header, Message&& message, Time now) noexcept;
  void measure(ClientChannel& channel, Time now) noexcept;
  /// The server has said that it has all of the request.
  [[nodiscard]] static bool at_work(const ClientChannel& channel) noexcept {
    return channel.acknowledged == all_of(channel.request.fragments);
  }
  void on_timer(ClientChannel& channel) noexcept;
  void arm(ClientChannel& channel, Time now, Time due) noexcept;
  /// Sends the whole request for the first time. Errors: those of send_fragments().
  [[nodiscard]] Errc send_request(ClientChannel& channel) noexcept;
  /// Errors: those with which the layer below has refused the first fragment; nothing was sent then.
  [[nodiscard]] Errc send_fragments(ClientChannel& channel, std::uint16_t mask, bool please_ack) noexcept;
  void send_again(ClientChannel& channel, bool only_ask) noexcept;
  /// Sends the fragments in `mask` of the request. If the link does not carry them any more, the call is lost.
  void send_fragments_again(ClientChannel& channel, std::uint16_t mask) noexcept;
  void acknowledge_reply(const ClientChannel& channel, std::uint16_t fragments, std::uint16_t mask) noexcept;
  [[nodiscard]] Header header(const ClientChannel& channel, Type type) const noexcept;
  /// The channel whose outstanding call `header` is about; null: none.
  [[nodiscard]] ClientChannel* outstanding(const Header& header) noexcept {
    if (header.channel >= kMaxChannels || channels_[header.channel] == nullptr) return nullptr;
    ClientChannel& channel = *channels_[header.channel];
    return channel.transaction != nullptr && channel.sequence == header.sequence ? &channel : nullptr;
  }
  /// `more`: fragments of the request beyond the first.
  [[nodiscard]] RetryTimer& round_trip(std::size_t more) noexcept { return round_trips_[more != 0 ? 1 : 0]; }
  [[nodiscard]] RetryTimer& round_trip(const ClientChannel& channel) noexcept {
    return round_trip(channel.request.fragments - std::size_t{1});
  }

  void begin_query(Time now) noexcept;
  void query(Time now) noexcept;
  void on_waiting_timer() noexcept;
  void fail_waiting(Errc outcome) noexcept;

  std::size_t references_ = 0;  ///< Of its sessions, and Keep's.
  Monolithic& mrpc_;
  const HostAddress host_;
  SessionRef lower_;
  std::size_t single_;
  PathChanges path_changes_;
  BootId boot_id_;
  bool ready_;  ///< The peer's life is known. Otherwise a query is under way while calls wait.
  std::uint64_t free_ = 0;
  std::uint64_t all_free_;
  std::array<RetryTimer, 2> round_trips_;  ///< Of calls of one packet, and of larger ones: the step function.
  std::array<std::unique_ptr<ClientChannel>, kMaxChannels> channels_;
  WaitingCalls waiting_;   ///< Each request has its command in front.
  bool serving_ = false;   ///< start_waiting() is running.
  bool querying_ = false;  ///< A query is under way. Its timer is waiting_timer_.
  std::uint32_t query_number_ = 0;
  std::uint8_t query_tries_ = 0;
  /// The outcome if nobody answers. limit_reached: this host could send no query, for lack of memory or because its
  /// queue to the peer (TCP has one) was full.
  Errc unheard_ = Errc::host_unreachable;
  Time query_began_{};
  Silence query_silence_;
  Time query_due_{};
  LazyEvent waiting_timer_;
};

}  // namespace lrpc::netrpc::mrpc
