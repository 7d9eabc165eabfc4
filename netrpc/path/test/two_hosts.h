// Two hosts in one process, each with a nameserver, a broker and servers, and a network between them that tests can
// break.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lrpc/nameserver.h"
#include "lrpc/netrpc/path/broker.h"

namespace testing_netpath {

using lrpc::Errc;
using lrpc::netpath::BrokerOptions;
using lrpc::netpath::Gone;
using lrpc::netpath::HostAddress;
using lrpc::netpath::RemoteBroker;
using lrpc::netpath::RemoteService;
using lrpc::netpath::Transport;
using std::chrono::milliseconds;

/// Delivers each command in the caller's thread. Thread-safe.
class Network {
 public:
  void attach(HostAddress host, RemoteService* service) {
    std::lock_guard lock(mutex_);
    services_[host] = service;
  }
  /// Detaches the host's service. Returns when the commands that it is serving have ended.
  void cut(HostAddress host) {
    std::unique_lock lock(mutex_);
    services_[host] = nullptr;
    delivered_.wait(lock, [&] { return delivering_[host] == 0; });
  }

  using Tamper = std::function<void(std::uint16_t command, std::vector<std::byte>& request)>;
  /// `tamper` may change or delay each request on its way.
  void tamper(Tamper tamper) {
    std::lock_guard lock(mutex_);
    tamper_ = std::move(tamper);
  }

  /// Called when a host has served a command, before its reply arrives.
  void when_served(std::function<void(std::uint16_t command)> served) {
    std::lock_guard lock(mutex_);
    served_ = std::move(served);
  }

  Errc deliver(HostAddress from, HostAddress to, std::uint16_t command, std::span<const std::byte> request,
               std::span<std::byte> reply, std::size_t& size, const Gone& gone) {
    RemoteService* service = nullptr;
    Tamper tamper;
    std::function<void(std::uint16_t)> served;
    {
      std::lock_guard lock(mutex_);
      served = served_;
      if (const auto found = services_.find(to); found != services_.end()) service = found->second;
      tamper = tamper_;
      ++delivering_[to];
    }
    /// Ends this delivery at the end of the scope.
    struct Delivered {
      Network& network;
      const HostAddress to;
      ~Delivered() {
        std::lock_guard lock(network.mutex_);
        --network.delivering_[to];
        network.delivered_.notify_all();
      }
    } const delivered{*this, to};
    if (service == nullptr) return Errc::peer_gone;
    std::vector<std::byte> copy(request.begin(), request.end());
    if (tamper) tamper(command, copy);
    if (const Errc lost = wait_for_joining(command, gone); lost != Errc::ok) return lost;
    if (command == kPing) ++pings;
    const std::uint16_t refused =
        service->serve({from, lrpc::shim::HostAuthentication::key, "lab"}, ++arrivals, command, copy, reply, size);
    if (served) served(command);
    if (refused != 0) return static_cast<Errc>(refused);
    if (lose_replies_to_calls && command == kCall) return Errc::peer_gone;
    if (lose_replies_to_binds && command == kBind) return Errc::timed_out;
    if (replies_too_long || replies_too_long_of == to) return Errc::call_lost;
    return Errc::ok;
  }

  /// From now on nothing arrives: calls wait for join() or give_up(), and the brokers' own commands time out.
  void part() { set(State::parted); }
  void join() { set(State::joined); }
  /// Waiting calls end as a transport ends a call to a host that has been silent for too long.
  void give_up() { set(State::given_up); }
  /// No host can be reached, until join().
  void block() { set(State::blocked); }
  /// Nothing can be sent, because the sender lacks some resource.
  void choke() { set(State::choked); }
  std::atomic<int> missed_pings{0};
  std::atomic<int> unsent_pings{0};
  std::atomic<int> waiting{0};  ///< Calls that have waited, or have found no host to reach.

  static constexpr std::uint16_t kBind = 1;  ///< The commands, as in messages.h.
  static constexpr std::uint16_t kCall = 2;
  static constexpr std::uint16_t kUnbind = 3;
  static constexpr std::uint16_t kPing = 4;
  static constexpr std::uint16_t kGroupCall = 5;
  std::atomic<std::uint64_t> pings{0};  ///< That reached a host.
  std::atomic<lrpc::netpath::Arrival> arrivals{0};
  /// Replies to keepalives still arrive: losing them would end the binding before the call that is to notice the loss.
  std::atomic<bool> lose_replies_to_calls{false};
  std::atomic<bool> lose_replies_to_binds{false};
  std::atomic<bool> replies_too_long{false};        ///< Replies to all commands: the callers get call_lost.
  std::atomic<HostAddress> replies_too_long_of{0};  ///< The same for the replies of one host.

 private:
  enum class State { joined, parted, given_up, blocked, choked };
  void set(State state) {
    std::lock_guard lock(mutex_);
    state_ = state;
    joined_.notify_all();
  }
  Errc wait_for_joining(std::uint16_t command, const Gone& gone) {
    std::unique_lock lock(mutex_);
    if (state_ == State::joined) return Errc::ok;
    if (state_ == State::choked) {
      if (command == kPing) ++unsent_pings;
      return Errc::system_error;
    }
    if (command == kPing) ++missed_pings;
    if (state_ == State::blocked && command == kBind) return Errc::host_unreachable;
    if (command != kCall) return Errc::timed_out;
    ++waiting;
    if (state_ == State::blocked) return Errc::host_unreachable;
    while (!joined_.wait_for(lock, milliseconds(5), [&] { return state_ != State::parted; }))
      if (gone && gone()) return Errc::peer_gone;
    return state_ == State::given_up ? Errc::peer_gone : Errc::ok;
  }

  Tamper tamper_;
  std::function<void(std::uint16_t)> served_;
  std::mutex mutex_;
  State state_ = State::joined;
  std::condition_variable joined_;
  std::condition_variable delivered_;
  std::map<HostAddress, std::size_t> delivering_;  ///< Commands that are being served.
  std::map<HostAddress, RemoteService*> services_;
};

class Wire final : public Transport {
 public:
  Wire(Network& network, HostAddress self) : network_(network), self_(self) {}
  static constexpr std::size_t kMaxMessage = 16 * 1024;
  Errc agree(HostAddress /*host*/, lrpc::netpath::MessageSizes& sizes, milliseconds /*timeout*/) noexcept override {
    if (!agrees) return Errc::peer_gone;
    sizes = {longest_request, longest_reply};
    return Errc::ok;
  }
  std::string why(HostAddress /*host*/, Errc /*outcome*/) override { return "is not there"; }
  std::atomic<bool> agrees{true};  ///< Whether hosts answer when this host agrees with them on sizes.
  /// The message sizes that the network claims to carry.
  std::atomic<std::size_t> longest_request{kMaxMessage};
  std::atomic<std::size_t> longest_reply{kMaxMessage};

  Errc call(HostAddress host, std::uint16_t command, std::span<const std::byte> request, std::span<std::byte> reply,
            std::size_t& size, milliseconds /*timeout*/, const Gone& gone) noexcept override {
    if (request.size() > kMaxMessage) return Errc::message_too_long;
    return network_.deliver(self_, host, command, request, reply, size, gone);
  }

  /// From now on these are the members of "replicas", the only group of this host.
  void set_members(std::vector<HostAddress> members) {
    std::lock_guard lock(mutex_);
    members_ = std::move(members);
  }
  [[nodiscard]] std::vector<HostAddress> members() {
    std::lock_guard lock(mutex_);
    return members_;
  }
  /// How many answers a call to the group needs.
  std::atomic<std::size_t> needed{1};
  std::optional<lrpc::netpath::Group> group(std::string_view name) override {
    if (name != "replicas" || members().empty()) return std::nullopt;
    return lrpc::netpath::Group{kGroup, members(), {longest_request, longest_reply}};
  }
  /// Calls one member after the other.
  Errc call_group(HostAddress group, std::uint16_t command, std::span<const std::byte> request,
                  std::span<std::byte> reply, std::size_t& size, lrpc::netpath::Collation& collation,
                  milliseconds /*timeout*/, const Gone& gone) noexcept override {
    if (group != kGroup) return Errc::system_error;
    if (request.size() > kMaxMessage) return Errc::message_too_long;
    std::size_t answers = 0;
    for (const HostAddress member : members()) {
      std::vector<std::byte> said(kMaxMessage);
      std::size_t length = 0;
      const Errc outcome = network_.deliver(self_, member, command, request, said, length, gone);
      said.resize(outcome == Errc::ok ? length : 0);
      collation.said(member, outcome, said);
      if (outcome != Errc::ok || !collation.counts(said)) continue;
      if (answers++ != 0) continue;
      std::ranges::copy(said, reply.begin());
      size = length;
    }
    return answers >= needed ? Errc::ok : Errc::peer_gone;
  }

 private:
  static constexpr HostAddress kGroup = 0xef000000;
  Network& network_;
  const HostAddress self_;
  std::mutex mutex_;
  std::vector<HostAddress> members_;
};

/// A machine: its nameserver, and a broker that can be restarted.
class Host {
 public:
  Host(Network& network, HostAddress address, const std::string& socket)
      : network_(network), address_(address), wire_(network, address), socket_(socket) {
    start_nameserver();
  }
  ~Host() { stop_broker(); }
  [[nodiscard]] const std::string& socket() const { return socket_; }
  void start_nameserver() {
    lrpc::nameserver::NameserverOptions options;
    options.socket_path = socket_;
    options.bind_timeout = std::chrono::minutes(4);  // so that no binding times out
    auto started = lrpc::nameserver::Nameserver::start(std::move(options));
    if (!started) throw std::runtime_error(started.error().message());
    nameserver_ = *std::move(started);
  }
  void stop_nameserver() { nameserver_.reset(); }
  void start_broker(BrokerOptions options = {}) {
    options.nameserver = socket();
    auto started = RemoteBroker::start(wire_, std::move(options));
    if (!started) throw std::runtime_error(started.error().message());
    broker_ = *std::move(started);
    network_.attach(address_, broker_.get());
  }
  void stop_broker() {
    network_.cut(address_);
    broker_.reset();
  }
  [[nodiscard]] RemoteBroker& broker() { return *broker_; }
  [[nodiscard]] Wire& wire() { return wire_; }

 private:
  Network& network_;
  const HostAddress address_;
  Wire wire_;
  const std::string socket_;
  std::unique_ptr<lrpc::nameserver::Nameserver> nameserver_;
  std::unique_ptr<RemoteBroker> broker_;
};

}  // namespace testing_netpath
