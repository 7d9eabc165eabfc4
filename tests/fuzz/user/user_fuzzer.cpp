// Attacks the boundary between a graph and a user process that is one of its protocols (USER), from both sides.
// Processes call with any session numbers, handles and messages, close and die; peers send. What must hold: messages
// that a process gets have arrived for it, in that order and whole. A pushed message goes unchanged to the host of its
// session. One process at a time is the protocol, and it inherits nothing of an earlier one. Sessions, messages and
// bytes stay within the limits of the graph's line, whatever the process leaves unread.
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "caller.h"
#include "input.h"
#include "lrpc/netrpc/all_kinds.h"
#include "network/fuzz_device.h"
#include "network/steps.h"
#include "user_service.h"

namespace lrpc::netuser {
namespace {

using fuzz::Caller;
using fuzz::Input;
using fuzz::require;
using netrpc::Shepherd;
namespace control = netrpc::control;

constexpr std::size_t kLargest = 100;
constexpr std::size_t kSessions = 2;
constexpr std::size_t kQueue = 4;
constexpr std::size_t kProcesses = 2;
constexpr const char* kGraph =
    "wire = FUZZ; user = USER(name = user, number = 245, largest = 100, sessions = 2, queue = 4, queue_bytes = 20000)"
    " over wire;";

struct Process {
  std::unique_ptr<Caller> caller;
  std::vector<UserCalls::Protocol> handles;  ///< All that it was ever granted.
};

struct Arrived {
  netrpc::HostAddress host;
  std::vector<std::byte> bytes;
};

std::vector<std::byte> owned(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

/// The code of a refusal; ok: it was not refused.
template <class Outcome>
Errc refusal(const Outcome& outcome) {
  const auto* const refused = outcome.template raised<UserCalls::Refused>();
  require(outcome || refused != nullptr, "a refusal says why");
  if (refused == nullptr) return Errc::ok;
  require(refused->code != 0 && describe(static_cast<Errc>(refused->code)) != "unknown error", "in a known word");
  return static_cast<Errc>(refused->code);
}

class Attack {
 public:
  Attack() : host_(netrpc::fuzz::host_options({0x0a00'0001}), clock_, engine_) {
    static std::vector<netrpc::fuzz::FuzzDevice*> made;
    static const netrpc::ProtocolKinds kinds = [] {
      netrpc::ProtocolKinds all = netrpc::layer_kinds();
      all.add(netrpc::fuzz::fuzz_device_kind(made));
      all.add(user_kind());
      return all;
    }();
    static const auto description = netrpc::GraphDescription::parse(kGraph, kinds);
    require(bool(description), "the graph can be described");
    made.clear();
    const Shepherd inside(host_.monitor());
    auto graph = netrpc::Graph::compose(host_, *description, kinds);
    require(bool(graph), "the graph can be composed");
    graph_.emplace(std::move(*graph));
    wire_ = made.front();
    wire_->on_push = [this](const netrpc::ParticipantSet& to, std::span<const std::byte> bytes) {
      pushed_.emplace(Arrived{to.remote.host, owned(bytes)});
    };
    user_ = dynamic_cast<UserObject*>(graph_->find("user"));
    service_.emplace(*user_);
    for (Process& one : processes_) come(one);
  }
  ~Attack() {
    service_->stop();
    for (Process& one : processes_) one.caller.reset();
    const Shepherd inside(host_.monitor());
    check_nothing_left();
    service_.reset();
    graph_.reset();
    require(host_.pool().in_use() == 0, "all buffers have been given back");
  }
  Attack(const Attack&) = delete;
  Attack& operator=(const Attack&) = delete;

  void step(Input& input) {
    Process& process = processes_[input.byte() % kProcesses];
    switch (input.byte() % 12) {
      case 0: create(process); break;
      case 1: come(process); break;
      case 2:
      case 3:
      case 4: arrive(input); break;
      default:
        if (const auto attached = protocol(process, input)) call(process, attached, input);
    }
    check_bounds();
  }

 private:
  /// A process dies, and a new one is started.
  void come(Process& process) {
    const std::uint64_t before = process.caller ? process.caller->id() : 0;
    const bool was_it = before != 0 && before == owner_;
    process.caller.reset();
    if (before != 0) service_->unbound(before);
    if (was_it) ended();
    process = {std::make_unique<Caller>(UserCalls::kPdl, ++last_binding_, 1000), {}};
  }
  void ended() {
    const Shepherd inside(host_.monitor());
    owner_ = 0;
    check_nothing_left();
  }
  void check_nothing_left() {
    control::Statistics counted;
    require(control::ask(*user_, counted) == Errc::ok, "the protocol counts");
    require(counted.sessions == 0 && counted.state == 0, "nothing is left of a process that has gone");
  }

  void create(Process& process) {
    const bool taken = owner_ != 0;
    const auto created = service_->CreateProtocol(process.caller->context());
    const Errc refused = refusal(created);
    require(taken ? refused == Errc::name_taken : refused == Errc::ok, "one process at a time is the protocol");
    if (taken) return;
    require(created->largest == kLargest, "it may push as much as the graph says");
    owner_ = process.caller->id();
    arrived_.clear();  // earlier messages are not for this process
    process.handles.push_back(created->protocol);
    current_ = process.caller->object<UserService::Attached>(created->protocol).get();
  }

  /// The object behind a handle that the process was granted, perhaps long ago.
  static std::shared_ptr<UserService::Attached> protocol(const Process& process, Input& input) {
    if (process.handles.empty()) return nullptr;
    const std::size_t which =
        input.byte() % 4 == 0 ? input.byte() % process.handles.size() : process.handles.size() - 1;
    return process.caller->object<UserService::Attached>(process.handles[which]);
  }

  void arrive(Input& input) {
    const std::uint8_t peer = input.byte();
    const auto bytes = input.bytes(input.byte());
    std::vector<std::byte> message = owned(bytes);
    if (input.byte() % 8 == 0) message.resize(message.size() * 6);
    const Shepherd inside(host_.monitor());
    arrived_.push_back({netrpc::fuzz::FuzzDevice::peer_host(peer), message});
    wire_->arrive(peer, 0, message);
  }

  /// A session number: one that was opened, one close to it, or any number.
  std::uint64_t session(Input& input) {
    const std::uint8_t how = input.byte();
    if (how % 4 != 0 && !sessions_.empty())
      return std::next(sessions_.begin(), static_cast<std::ptrdiff_t>(how % sessions_.size()))->first;
    return how % 8 == 0 ? input.four() * 0x1'0000'0001ULL : last_session_ - how / 8 + 4;
  }

  void call(Process& process, const std::shared_ptr<UserService::Attached>& attached, Input& input) {
    const bool lives = owner_ == process.caller->id() && attached.get() == current_;
    switch (input.byte() % 8) {
      case 0:
        (void)check_gone(lives, refusal(service_->Enable(process.caller->context(), *attached, input.byte() % 4 != 0)));
        return;
      case 1: return open(process, *attached, lives, input);
      case 2:
      case 3: return push(process, *attached, lives, input);
      case 4: {
        const std::uint64_t which = session(input);
        const auto sizes = service_->Sizes(process.caller->context(), *attached, which);
        if (!check_gone(lives, refusal(sizes))) return;
        require(bool(sizes) == open_now(which), "an open session has sizes");
        if (sizes) require(sizes->largest <= kLargest && sizes->uncut <= kLargest, "that the process may use");
        return;
      }
      case 5: {
        const std::uint64_t which = session(input);
        (void)check_gone(lives, refusal(service_->CloseSession(process.caller->context(), *attached, which)));
        if (!lives) return;
        return require(!open_now(which), "what is closed is closed");
      }
      case 6: return await(process, *attached, lives);
      default:
        if (input.byte() % 4 != 0) return;
        service_->Close(process.caller->context(), attached);
        if (lives) ended();
    }
  }

  /// False: the process is not the protocol any more, and was told so.
  static bool check_gone(bool lives, Errc refused) {
    require(lives == (refused != Errc::call_cancelled), "who is the protocol no more is told so");
    return lives;
  }
  bool open_now(std::uint64_t session) {
    const Shepherd inside(host_.monitor());
    return user_->find(session) != nullptr;
  }

  void open(Process& process, UserService::Attached& attached, bool lives, Input& input) {
    const netrpc::HostAddress to = netrpc::fuzz::FuzzDevice::peer_host(input.byte());
    const auto opened = service_->Open(process.caller->context(), attached, to.value, 0);
    const Errc refused = refusal(opened);
    if (!check_gone(lives, refused)) return;
    if (!opened) return require(refused == Errc::limit_reached, "a process has a bound on its sessions");
    note_session(*opened, to);
  }
  void note_session(std::uint64_t number, netrpc::HostAddress host) {
    const auto [known, is_new] = sessions_.emplace(number, Session{host, owner_});
    require(known->second == Session{host, owner_}, "a session's number is never used again");
    last_session_ = std::max(last_session_, number);
  }

  void push(Process& process, UserService::Attached& attached, bool lives, Input& input) {
    const std::uint64_t which = session(input);
    std::vector<std::byte> message = owned(input.bytes(input.byte() % 32));
    if (input.byte() % 8 == 0) message.resize(message.size() * 5);
    const bool is_open = open_now(which);
    pushed_.reset();
    const Errc refused = refusal(service_->Push(process.caller->context(), attached, which, message));
    if (!check_gone(lives, refused)) return require(!pushed_, "nobody else sends");
    const Errc right = message.size() > kLargest ? Errc::message_too_long
                       : !is_open                ? Errc::invalid_argument
                                                 : Errc::ok;
    require(refused == right, "a message goes through an open session, if it is not too long");
    require(bool(pushed_) == (right == Errc::ok), "what is refused is not sent");
    if (!pushed_) return;
    const auto known = sessions_.find(which);  // a peer's session may be missing: the process was not told of it yet
    require(known == sessions_.end() || known->second == Session{pushed_->host, owner_},
            "it goes to the host of its session");
    require(pushed_->bytes == message, "and is what was pushed");
  }

  void await(Process& process, UserService::Attached& attached, bool lives) {
    if (lives && waiting() == 0) return;  // nothing waits, so it would block for ever
    std::vector<std::byte> room(UserOptions::kLargest);
    Buffer message(room);
    const auto taken = service_->Await(process.caller->context(), attached, message);
    if (!check_gone(lives, refusal(taken))) return;
    require(bool(taken), "what waits is given");
    const std::vector<std::byte> bytes = owned(message.contents());
    // Messages in between were not for the process, or exceeded the queue.
    while (!arrived_.empty() && !(arrived_.front().host.value == taken->host && arrived_.front().bytes == bytes))
      arrived_.pop_front();
    require(!arrived_.empty(), "what a process is given has arrived, in that order");
    arrived_.pop_front();
    note_session(taken->session, {taken->host});
  }
  std::size_t waiting() {
    const Shepherd inside(host_.monitor());
    control::Statistics counted;
    require(control::ask(*user_, counted) == Errc::ok, "the protocol counts");
    return counted.state;
  }

  void check_bounds() {
    const Shepherd inside(host_.monitor());
    control::Statistics counted;
    require(control::ask(*user_, counted) == Errc::ok, "the protocol counts");
    require(counted.sessions <= 2 * kSessions && counted.state <= kQueue, "a process keeps no more than it may");
    if (owner_ == 0) check_nothing_left();
  }

  netrpc::fuzz::StepClock clock_;
  netrpc::fuzz::NoEngine engine_;
  netrpc::Host host_;
  std::optional<netrpc::Graph> graph_;
  netrpc::fuzz::FuzzDevice* wire_ = nullptr;
  UserObject* user_ = nullptr;
  std::optional<UserService> service_;
  std::array<Process, kProcesses> processes_;
  std::uint64_t last_binding_ = 0;
  std::uint64_t owner_ = 0;  ///< The binding of the process that is the protocol; 0: there is none.
  const UserService::Attached* current_ = nullptr;  ///< Of that process.
  std::deque<Arrived> arrived_;                     ///< Messages that the process may still get, and others.
  std::optional<Arrived> pushed_;
  struct Session {
    netrpc::HostAddress host;
    std::uint64_t owner = 0;
    friend bool operator==(const Session&, const Session&) = default;
  };
  std::map<std::uint64_t, Session> sessions_;  ///< Of all processes; only those that they were told of.
  std::uint64_t last_session_ = 0;
};

}  // namespace
}  // namespace lrpc::netuser

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::fuzz::Input input(data, size);
  lrpc::netuser::Attack attack;
  for (int i = 0; i < 200 && input.more(); ++i) attack.step(input);
  return 0;
}
