// Attacks what stands between lrpc-netd's graph and its remote broker. Other hosts agree on the length of messages,
// answer and refuse calls, alone and as members of a group, and send commands, also while a call waits. The layer below
// says anything about its messages. What must hold: agreed lengths are within this host's. A host's answer changes the
// MTU only of that host, and an invalid answer changes nothing. Each command is served as it came, and answered once.
// The broker gets known outcomes, once for each member.
#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "input.h"
#include "lrpc/netrpc/wire.h"
#include "network/steps.h"
#include "network_service.h"

namespace lrpc::netd {
namespace {

using fuzz::Input;
using fuzz::require;
using netrpc::HostAddress;
using netrpc::Message;
using netrpc::ParticipantSet;
using netrpc::Protocol;
using netrpc::Session;
using netrpc::SessionRef;
using netrpc::Shepherd;
using netrpc::Transaction;
namespace control = netrpc::control;

/// Addresses of this machine, so that the kernel answers questions about the path to them alike everywhere.
constexpr std::array<HostAddress, 3> kPeers{{{0x7f00'0002}, {0x7f00'0003}, {0x7f00'0004}}};
constexpr HostAddress kGroup{0xef00'0001};
constexpr std::uint16_t kAgree = 0x100;
constexpr std::size_t kMostNested = 8;  ///< Commands that arrive while one call waits.

std::vector<std::byte> bytes_of(const Message& message) {
  std::vector<std::byte> bytes(message.size());
  message.copy_to(bytes);
  return bytes;
}

class Attack;

/// A session of the layer below: to one host or to a group, or from one host.
class Below final : public Session {
 public:
  Below(Attack& attack, Protocol& layer, Protocol& high, const ParticipantSet& participants)
      : Session(layer, high, participants), attack_(attack) {}
  void call(Message request, Transaction& transaction, netrpc::Duration timeout) noexcept override;
  void cancel(Transaction& transaction) noexcept override;
  void reply(Message message) noexcept override;
  Errc control(control::Request& request) noexcept override;

 private:
  Attack& attack_;
};

class Layer final : public Protocol {
 public:
  Layer(Attack& attack, netrpc::Host& host, std::string name) : Protocol(host, std::move(name)), attack_(attack) {}
  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    return SessionRef(new Below(attack_, *this, high, participants));
  }
  Status open_enable(Protocol& /*high*/, const ParticipantSet& /*participants*/) override { return {}; }
  void open_disable(Protocol& /*high*/, const ParticipantSet& /*participants*/) noexcept override {}
  Errc control(control::Request& request) noexcept override;

 private:
  Attack& attack_;
};

/// Serves commands, on any thread, and checks that they have arrived.
class Served final : public netpath::RemoteService {
 public:
  using Arrived = std::tuple<HostAddress, std::uint16_t, std::vector<std::byte>>;
  void expect(Arrived command) {
    const std::lock_guard lock(mutex_);
    expected_.insert(std::move(command));
  }
  std::uint16_t serve(const Principal& from, netpath::Arrival arrived, std::uint16_t command,
                      std::span<const std::byte> request, std::span<std::byte> reply,
                      std::size_t& size) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto found = expected_.find({HostAddress{from.host}, command, {request.begin(), request.end()}});
    require(found != expected_.end(), "what is served has arrived");
    expected_.erase(found);
    require(arrivals_.insert(arrived).second, "each command has a number of its own");
    if (request.size() % 5 == 1) return static_cast<std::uint16_t>(Errc::limit_reached);
    size = std::min(reply.size(), request.size() * 3);
    std::ranges::fill(reply.first(size), std::byte{0x5a});
    return 0;
  }
  void peer_rebooted(netpath::HostAddress /*host*/, netpath::Arrival /*last*/) noexcept override {}

 private:
  std::mutex mutex_;
  std::multiset<Arrived> expected_;
  std::set<netpath::Arrival> arrivals_;
};

class Members final : public netpath::Collation {
 public:
  bool counts(std::span<const std::byte> reply) noexcept override { return reply.size() % 2 == 0; }
  void said(netpath::HostAddress member, Errc outcome, std::span<const std::byte> reply) noexcept override {
    require(std::ranges::count(kPeers, HostAddress{member}) == 1, "a member speaks");
    require(seen_.insert(member).second, "each of them once");
    require(outcome == Errc::ok || reply.empty(), "a member that has failed has no reply");
  }

 private:
  std::set<netpath::HostAddress> seen_;
};

class Attack final : public netrpc::Engine {
 public:
  explicit Attack(Input& input)
      : input_(input),
        longest_(1U << input.byte() % 18),
        host_(netrpc::fuzz::host_options({0x7f00'0001}), clock_, *this),
        layer_(*this, host_, "below"),
        group_(*this, host_, "group") {
    const Shepherd inside(host_.monitor());
    service_ = std::make_unique<NetworkService>(host_, layer_, std::vector<Protocol*>{&group_}, 3);
    require(bool(service_->enable()), "the layers below can be enabled");
  }

  void run() {
    service_->serve_with(served_);
    while (input_.more()) {
      switch (input_.byte() % 6) {
        case 0: agree(); break;
        case 1: call(); break;
        case 2: call_group(); break;
        case 3: {
          const Shepherd inside(host_.monitor());
          arrive();
          break;
        }
        case 4: {
          const Shepherd inside(host_.monitor());
          clock_.pass(std::chrono::microseconds(1ULL << (input_.byte() % 28)));
          host_.peers().heard(peer(), 1 + input_.byte() % 2U);
          host_.events().run_due();
          break;
        }
        default: {
          const HostAddress about = peer();
          const std::string why = service_->why(about.value, static_cast<Errc>(input_.byte() % 50));
          require(!why.empty() && std::ranges::all_of(why, [](char c) { return c >= ' ' && c <= '~'; }),
                  "a reason is printable");
        }
      }
    }
    service_->stop_serving();
    service_->stop_calling();
    const Shepherd inside(host_.monitor());
    require(waiting_ == nullptr, "nobody waits any more");
    service_.reset();
    require(host_.pool().in_use() == 0, "all buffers have been given back");
  }

  // ---- Engine ----
  /// While a call waits, commands arrive, until the answer comes or the input ends.
  bool wait(netrpc::Host& /*host*/, const std::function<bool()>& done, netrpc::Time /*deadline*/) override {
    for (std::size_t i = 0; i < kMostNested && !done() && waiting_ != nullptr && input_.more(); ++i) {
      if (input_.byte() % 4 == 0)
        arrive();
      else
        complete(*std::exchange(waiting_, nullptr), waits_for_group_);
    }
    return done();
  }
  void wake(netrpc::Host& /*host*/) noexcept override {}

  // ---- The layer below ----
  void called(const Session& session, Transaction& transaction) {
    const bool to_group = session.peer() == kGroup;
    if (input_.byte() % 3 != 0) return complete(transaction, to_group);
    require(waiting_ == nullptr, "one call waits at a time");
    waiting_ = &transaction;
    waits_for_group_ = to_group;
  }
  void cancelled(const Transaction& transaction) {
    if (waiting_ == &transaction) waiting_ = nullptr;
  }
  void replied(const Session& session, const Message& message) {
    const std::vector<std::byte> reply = bytes_of(message);
    const auto expected = arrived_.find(&session);
    require(expected != arrived_.end(), "a command is answered once");
    const auto [command, size] = expected->second;
    arrived_.erase(expected);
    require(reply.size() >= 2, "an answer begins with a refusal, or with none");
    const auto refused = netrpc::WireReader(reply.data()).get<std::uint16_t>();
    require(refused == 0 || reply.size() == 2, "a refusal says no more");
    if (command != kAgree) return;
    if (refused == 0) require(size == 4 && reply.size() == 10, "an agreement has two numbers");
    if (refused != 0) require(size != 4, "what is asked rightly is answered");
  }
  Errc asked(control::Request& request) {
    if (control::answered(request, control::MaximumMessage{longest_})) return Errc::ok;
    auto* const shares = std::get_if<control::SharesKey>(&request);
    if (shares == nullptr || input_.byte() % 2 == 0) return Errc::not_supported;
    shares->has_key = input_.byte() % 2 == 0;
    shares->shown = input_.byte() % 2 == 0;
    shares->no_cipher = input_.byte() % 2 == 0;
    return Errc::ok;
  }
  Errc asked_of_session(control::Request& request) {
    if (auto* const most = std::get_if<control::MaximumMessage>(&request)) {
      if (input_.byte() % 8 == 0) return Errc::not_supported;
      most->size = input_.two() * 4U;
      return Errc::ok;
    }
    if (auto* const known = std::get_if<control::Authenticated>(&request)) {
      known->authenticated = input_.byte() % 2 == 0;
      known->key_name.fill('k');
      return Errc::ok;
    }
    return Errc::not_supported;
  }

 private:
  HostAddress peer() { return kPeers[input_.byte() % kPeers.size()]; }

  using Mtus = std::array<std::size_t, kPeers.size()>;
  Mtus mtus() {
    Mtus all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = host_.peers().mtu(kPeers[i]);
    return all;
  }
  /// `about`: the host whose answer may have changed its own MTU; none: no MTU may change.
  void check_mtus(const Mtus& before, std::optional<HostAddress> about) {
    const Mtus after = mtus();
    for (std::size_t i = 0; i < after.size(); ++i) {
      require(after[i] == before[i] || (about && *about == kPeers[i]), "a host speaks of its own link");
      require(after[i] == 0 || after[i] >= netrpc::Peers::kLeastMtu, "every link carries that much");
    }
  }

  Message any_reply() {
    const std::uint8_t how = input_.byte();
    std::vector<std::byte> bytes;
    if (how % 4 != 0) {
      bytes.resize(2);  // not refused
      if (how % 4 == 1) bytes[1] = static_cast<std::byte>(input_.byte());
    }
    const auto more = input_.bytes(how % 4 == 2 ? 8 : input_.byte() % 32);
    bytes.insert(bytes.end(), more.begin(), more.end());
    if (how >= 0xf0) bytes.resize(bytes.size() + 3'000);
    // Sometimes in several buffers.
    const std::size_t cut = how % 8 < 4 ? bytes.size() : bytes.size() / 2;
    Message message = Message::copy_of(host_.pool(), std::span(bytes).first(cut));
    Message rest = Message::copy_of(host_.pool(), std::span(bytes).subspan(cut));
    if (!rest.empty()) require(message.append(std::move(rest)), "there is memory");
    return message;
  }
  void complete(Transaction& transaction, bool of_group) {
    std::optional<Message> first;
    for (std::size_t i = 0; of_group && i < kPeers.size(); ++i) {
      const std::uint8_t how = input_.byte();
      if (how % 4 == 0) continue;
      if (how % 4 == 1) {
        transaction.collated(kPeers[i], Errc::call_failed, {});
        continue;
      }
      Message reply = any_reply();
      const bool counts = transaction.counts(reply);
      if (counts && !first) first = reply.share();
      transaction.collated(kPeers[i], Errc::ok, std::move(reply));
    }
    const auto outcome = static_cast<Errc>(input_.byte() < 0xc0 ? 0 : input_.byte() % 50);
    if (outcome != Errc::ok) return transaction.completed(outcome, {});
    if (of_group && !first) return transaction.completed(Errc::call_failed, {});
    transaction.completed(Errc::ok, of_group ? *std::move(first) : any_reply());
  }

  /// Call it inside the monitor.
  void arrive() {
    ParticipantSet participants{.protocol = netrpc::protocol_numbers::kNetworkPath, .local = {}, .remote = {}};
    participants.remote.host = peer();
    const std::uint8_t how = input_.byte();
    participants.local.command = how % 4 == 0 ? kAgree : how % 8;
    const auto bytes = input_.bytes(how % 4 == 0 && how >= 0x40 ? 4 : input_.byte() % 40);
    const SessionRef session(new Below(*this, layer_, *service_, participants));
    kept_.push_back(session);
    arrived_.emplace(session.get(), std::pair(participants.local.command, bytes.size()));
    const bool agrees = participants.local.command == kAgree;
    if (!agrees) served_.expect({participants.remote.host, participants.local.command, {bytes.begin(), bytes.end()}});
    const Mtus before = mtus();
    Message request = Message::copy_of(host_.pool(), bytes.first(bytes.size() / 2));
    Message rest = Message::copy_of(host_.pool(), bytes.subspan(bytes.size() / 2));
    if (!rest.empty()) require(request.append(std::move(rest)), "there is memory");
    service_->call_demux(*session, std::move(request));
    check_mtus(before, agrees && bytes.size() == 4 ? std::optional(participants.remote.host) : std::nullopt);
    require(!agrees || !arrived_.contains(session.get()), "an agreement is answered at once");
  }

  static void check_outcome(Errc outcome) {
    constexpr Errc kKnown[] = {Errc::ok,          Errc::timed_out,     Errc::host_unreachable,
                               Errc::peer_gone,   Errc::not_permitted, Errc::limit_reached,
                               Errc::bad_message, Errc::system_error,  Errc::message_too_long,
                               Errc::call_lost};
    require(std::ranges::count(kKnown, outcome) == 1, "the broker knows how a call can end");
  }

  void agree() {
    const HostAddress to = peer();
    const Mtus before = mtus();
    netpath::MessageSizes sizes{~std::size_t{0}, ~std::size_t{0}};
    const std::size_t commands = kept_.size();
    const Errc outcome = service_->agree(to.value, sizes, std::chrono::seconds(1));
    check_outcome(outcome);
    const Shepherd inside(host_.monitor());
    if (kept_.size() == commands)  // otherwise another host may have changed its MTU meanwhile
      check_mtus(before, outcome == Errc::ok ? std::optional(to) : std::nullopt);
    if (outcome != Errc::ok) return;
    require(sizes.request <= longest_ && sizes.reply <= longest_, "messages are no longer than this host's");
  }

  std::vector<std::byte> some_request() { return std::vector<std::byte>(input_.byte() * (input_.byte() % 4U)); }
  void call() {
    std::vector<std::byte> reply(input_.byte());
    std::size_t size = reply.size() + 1;
    const HostAddress to = peer();
    const Errc outcome = service_->call(
        to.value, input_.byte() % 8, some_request(), reply, size,
        input_.byte() % 2 == 0 ? std::chrono::milliseconds(kNoLimit) : std::chrono::milliseconds(1'000), {});
    check_outcome(outcome);
    require(outcome != Errc::ok || size <= reply.size(), "a reply has room");
  }
  void call_group() {
    const auto group = service_->group("group");
    require(group && group->members.size() == kPeers.size(), "a group has its members");
    require(group->sizes.request <= longest_ && group->sizes.reply <= longest_, "messages have their bound");
    require(!service_->group("none"), "no other name is a group's");
    std::vector<std::byte> reply(input_.byte());
    std::size_t size = reply.size() + 1;
    Members members;
    const Errc outcome = service_->call_group(group->address, 5, some_request(), reply, size, members,
                                              std::chrono::milliseconds(1'000), {});
    check_outcome(outcome);
    require(outcome != Errc::ok || size <= reply.size(), "a reply has room");
  }

  Input& input_;
  const std::size_t longest_;
  netrpc::fuzz::StepClock clock_;
  netrpc::Host host_;
  Layer layer_;
  Layer group_;
  Served served_;
  std::unique_ptr<NetworkService> service_;
  Transaction* waiting_ = nullptr;
  bool waits_for_group_ = false;
  std::list<SessionRef> kept_;  ///< Sessions over which commands came. Kept, so that no two have the same address.
  std::map<const Session*, std::pair<std::uint16_t, std::size_t>> arrived_;  ///< Commands that are not answered yet.
};

void Below::call(Message /*request*/, Transaction& transaction, netrpc::Duration /*timeout*/) noexcept {
  attack_.called(*this, transaction);
}
void Below::cancel(Transaction& transaction) noexcept { attack_.cancelled(transaction); }
void Below::reply(Message message) noexcept { attack_.replied(*this, message); }
Errc Below::control(control::Request& request) noexcept { return attack_.asked_of_session(request); }

Errc Layer::control(control::Request& request) noexcept {
  if (name() == "group" && control::answered(request, control::Members{kGroup, kPeers})) return Errc::ok;
  return attack_.asked(request);
}

}  // namespace
}  // namespace lrpc::netd

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::fuzz::Input input(data, size);
  lrpc::netd::Attack(input).run();
  return 0;
}
