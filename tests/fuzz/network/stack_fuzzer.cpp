// Attacks a composed stack of protocols from below. The input is a small program: each step lets a frame arrive, lets
// time pass, changes the MTU of a peer's link, or makes the local user call, send, open or cancel. What must not
// happen: a crash, a sanitizer's report, a leaked buffer, state beyond the bounds.
//
// Each stack has its own program, whose source names the stack. The instance `top` is used. If several stacks have that
// name, the input's first byte chooses one.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuzz_device.h"
#include "input.h"
#include "lrpc/netrpc/all_kinds.h"
#include "netrpc/protocols/psync/header.h"
#include "steps.h"

extern const char* const fuzzed_stack;  ///< The stack's name, one of kStacks.

namespace lrpc::netrpc::fuzz {
namespace {

using lrpc::fuzz::Input;
using lrpc::fuzz::require;

struct FuzzedStack {
  std::string_view name;
  std::string_view graph;
  bool transactions;
};
constexpr FuzzedStack kStacks[] = {
    {"fragment", "wire = FUZZ; top = FRAGMENT over wire;", false},
    {"vip", "eth = FUZZ; ip = FUZZ; top = VIP over eth, ip;", false},
    {"hosts", "eth = FUZZ; ip = FUZZ; hosts = VIPHOSTS(hosts = 8) over eth; top = VIP over eth, ip, hosts;", false},
    {"vipsize", "wire = FUZZ; fragment = FRAGMENT over wire; top = VIPSIZE over wire, fragment;", false},
    {"datagram", "wire = FUZZ; channel = CHANNEL over wire; top = RELIABLE_DATAGRAM over channel;", false},
    {"channel", "wire = FUZZ; channel = CHANNEL over wire; top = SELECT over channel;", true},
    {"forwarding",
     "wire = FUZZ; channel = CHANNEL over wire; top = FORWARDING_SELECT(routes = \"8=10.0.0.4\") over channel;", true},
    {"mrpc", "wire = FUZZ; top = M_RPC over wire;", true},
    {"paired", "wire = FUZZ; paired = PAIRED over wire; top = SELECT over paired;", true},
    {"sun",
     "wire = FUZZ; pairs = REQUEST_REPLY over wire; call = SUN_CALL over pairs; auth = AUTH_SYS(machine = x) over call;"
     "top = SUN_SELECT(program = 9) over auth;",
     true},
    {"sun",
     "wire = FUZZ; pairs = REQUEST_REPLY over wire; call = SUN_CALL over pairs; auth = AUTH_NONE over call;"
     "top = SUN_SELECT(program = 9) over auth;",
     true},
    {"composite",
     "wire = FUZZ; top = COMPOSITE { NUMBER(peers = 3); UNIQUE(peers = 3); FIFO(hold = 4); ACK(most = 4); MEMBERSHIP; }"
     " over wire;",
     false},
    {"group",
     "wire = FUZZ; top = COMPOSITE { GRPC; SYNC; MAJORITY; BOUNDED(limit = 1s); STILL_WORKING; REPLY_ORDER; MEMBERSHIP;"
     " TERMINATE_ORPHANS(peers = 3, hold = 3); ATOMIC(hold = 4); NUMBER(peers = 3); UNIQUE(peers = 3); FIFO(hold = 4);"
     " ACK(most = 4); } over wire;",
     true},
    {"group",
     "wire = FUZZ; top = COMPOSITE { GRPC; SYNC; ONE_ACCEPT; UNBOUNDED; STILL_WORKING; AVOID_INTERFERENCE(peers = 3,"
     " hold = 3); NUMBER(peers = 3); FIFO(hold = 4); ACK(most = 4); } over wire;",
     true},
    {"group",
     "wire = FUZZ; top = COMPOSITE { GRPC; ASYNC; ALL_ACCEPT; BOUNDED(limit = 1s); MEMBERSHIP;"
     " AVOID_INTERFERENCE(peers = 3, hold = 3); ATOMIC(hold = 4); NUMBER(peers = 3); UNIQUE(peers = 3); ACK(most = 4); "
     "}"
     " over wire;",
     false},
    {"psync", "wire = FUZZ; top = PSYNC(window = 4) over wire;", false},
    {"layers",
     "wire = FUZZ; fragment = FRAGMENT over wire; channel = CHANNEL over fragment; top = SELECT over channel;", true},
};
constexpr HostAddress kGroup{0xef000001U};

struct Composed {
  FuzzedStack stack;
  GraphDescription graph;
};
/// The stacks with the program's name.
std::vector<Composed> stacks_of_program(const ProtocolKinds& kinds) {
  std::vector<Composed> all;
  for (const FuzzedStack& stack : kStacks) {
    if (stack.name != fuzzed_stack) continue;
    auto graph = GraphDescription::parse(stack.graph, kinds);
    require(bool(graph), "the stack can be described");
    all.push_back({stack, std::move(*graph)});
  }
  return all;
}

/// The user of the stack: answers requests at once or later, refuses them, or drops them.
class User final : public Protocol {
 public:
  using Protocol::Protocol;

  void demux(Session& lower, Message message) noexcept override {
    touch(message);
    if (replies) (void)lower.push(std::move(message));
  }
  void call_demux(Session& lower, Message request) noexcept override {
    touch(request);
    if (answer_later_) {
      waiting_ = SessionRef(&lower);
      waiting_message_ = std::move(request);
      return;
    }
    control::Request user = control::ClaimedUser{};
    (void)lower.control(user);
    if (request.size() % 7 == 1) return;  // no answer
    control::Request refuse = control::Refuse{request.size() % 2 == 0 ? Errc::bad_procedure : Errc::call_failed};
    if (request.size() % 5 == 1 && lower.control(refuse) == Errc::ok) return;
    lower.reply(std::move(request));
  }
  bool replies = false;  ///< Answers messages by messages, as ASYNC's server does.
  void answer_later(bool later) noexcept { answer_later_ = later; }
  void answer() noexcept {
    if (!waiting_) return;
    const SessionRef session = std::exchange(waiting_, {});
    session->reply(std::move(waiting_message_));
  }
  void forget() noexcept {
    answer_later_ = false;  // dropping a request may bring the next one
    waiting_ = {};
    waiting_message_.clear();
  }
  [[nodiscard]] Errc control(control::Request& request) noexcept override {
    if (control::answered(request, control::AdvertisedMaximum{16384})) return Errc::ok;
    if (std::holds_alternative<control::Commit>(request)) return answer_later_ ? Errc::system_error : Errc::ok;
    return Protocol::control(request);
  }

 private:
  void touch(const Message& message) noexcept {
    std::byte bytes[64];
    const std::size_t size = message.copy_to(bytes);
    for (std::size_t i = 0; i < size; ++i) sum_ = sum_ + std::to_integer<unsigned>(bytes[i]);
  }
  bool answer_later_ = false;
  SessionRef waiting_;
  Message waiting_message_;
  volatile unsigned sum_ = 0;
};

class Asked final : public Transaction {
 public:
  void completed(Errc /*outcome*/, Message /*reply*/) noexcept override { outstanding = false; }
  bool outstanding = false;
};

/// Members of a PSYNC conversation. PSYNC believes a member only in the life in which it has answered PSYNC's question,
/// which contains a number that no input can guess. So these members answer the question, with the life of the packet
/// that came last.
class Members {
 public:
  explicit Members(FuzzDevice& device) : device_(device) {
    device_.on_push = [this](const ParticipantSet& to, std::span<const std::byte> bytes) {
      const auto header = psync::Header::decode(bytes);
      if (header && header->is_question()) asked_ = {*header, to.remote.host};
    };
  }
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;
  ~Members() { device_.on_push = nullptr; }

  /// Call it after `packet` has arrived.
  void answer_to(std::span<const std::byte> packet) {
    const auto asked = std::exchange(asked_, std::nullopt);
    const auto header = psync::Header::decode(packet);
    if (!asked || !header) return;
    psync::Header answer = asked->header;
    answer.ask = false;
    answer.id = {asked->member, header->id.life, asked->header.id.sequence};
    answer.count = 0;
    std::array<std::byte, psync::Header::kMost> bytes;
    answer.encode(bytes.data());
    device_.arrive(static_cast<std::uint8_t>(asked->member.value - FuzzDevice::peer_host(0).value), 0,
                   std::span(bytes).first(answer.size()));
  }

 private:
  struct Asked {
    psync::Header header;
    HostAddress member;
  };
  FuzzDevice& device_;
  std::optional<Asked> asked_;
};

void run(Input program) {
  StepClock clock;
  NoEngine engine;
  Host host(host_options({0x0a000001U}), clock, engine);
  static std::vector<FuzzDevice*> devices;
  static const ProtocolKinds kinds = [] {
    ProtocolKinds all = layer_kinds();
    all.add(fuzz_device_kind(devices));
    return all;
  }();
  devices.clear();
  static const std::vector<Composed> stacks = stacks_of_program(kinds);
  const auto& [stack, description] = stacks[stacks.size() > 1 ? program.byte() % stacks.size() : 0];
  {
    const Shepherd inside(host.monitor());
    User user(host, "user");
    Asked asked;
    auto graph = Graph::compose(host, description, kinds);
    require(bool(graph), "the stack can be composed");
    Protocol& top = *graph->find("top");
    ParticipantSet local{.protocol = protocol_numbers::kFirstOfTests, .local = {}, .remote = {}};
    local.local.host = host.address();
    local.local.command = 7;
    // PSYNC conversations cannot be enabled: whoever opens one takes part.
    require(bool(top.open_enable(user, local)) == (stack.name != "psync"), "the top can be enabled");
    user.replies = stack.name == "group";
    const bool is_group = stack.name == "group" || stack.name == "psync";
    std::vector<HostAddress> members{{0x0a000002U}, {0x0a000003U}, {0x0a000004U}};
    if (stack.name == "psync") members.push_back(host.address());
    require(bool(host.groups().set(kGroup, members)), "the group can be set");
    std::optional<Members> conversing;
    if (stack.name == "psync") conversing.emplace(*devices.front());
    const auto device = [](std::uint8_t peer) { return devices[(peer >> 2) % devices.size()]; };
    SessionRef session;
    while (program.more()) {
      switch (program.byte() % 9) {
        case 0:
        case 1: {
          const std::uint8_t peer = program.byte();
          const std::uint8_t which = program.byte();
          const std::size_t size = program.byte() | (program.byte() & 7U) << 8;
          const std::span<const std::byte> bytes = program.bytes(size);
          device(peer)->arrive(peer, which, bytes);
          if (conversing && which < 0x80) conversing->answer_to(bytes);
          break;
        }
        case 2: {
          const std::uint8_t peer = program.byte();
          const std::uint8_t which = program.byte();
          const std::uint8_t at = program.byte();
          device(peer)->reflect(peer, which, at, program.byte());
          break;
        }
        case 3: {
          const std::uint8_t time = program.byte();
          if (time >= 0xe0) {  // a host reports its link's MTU, as two hosts that have agreed on one (lrpc-netd)
            host.peers().set_mtu(FuzzDevice::peer_host(time), program.two());
            break;
          }
          clock.pass(std::chrono::microseconds(1ULL << (time % 28)));
          host.events().run_due();
          break;
        }
        case 4: {
          if (asked.outstanding) {  // only the session that was called can cancel the call
            session->cancel(asked);
            asked.outstanding = false;
          }
          ParticipantSet remote{.protocol = protocol_numbers::kFirstOfTests, .local = {}, .remote = {}};
          remote.local.host = host.address();
          const std::uint8_t peer = program.byte();
          remote.remote.host = {0x0a000002U + (peer & 3U)};
          if (is_group && (peer & 4U) != 0) remote.remote.host = kGroup;
          remote.remote.command = 7;
          if (auto opened = top.open(user, remote)) session = *opened;
          break;
        }
        case 5: {
          if (!session) break;
          const std::size_t size = program.byte() * 67U;
          Message message = Message::make(host.pool(), size);
          if (!message.allocated()) break;
          for (std::byte& b : message.bytes()) b = std::byte{0x5a};
          if (stack.transactions) {
            if (asked.outstanding) break;
            asked.outstanding = true;
            const unsigned ms = program.byte();
            session->call(std::move(message), asked, ms == 0 ? Duration(kNoLimit) : std::chrono::milliseconds(ms));
          } else {
            (void)session->push(std::move(message));
          }
          break;
        }
        case 6:
          if (session && asked.outstanding) {
            session->cancel(asked);
            asked.outstanding = false;
          }
          break;
        case 7: user.answer_later((program.byte() & 1) != 0); break;
        default: user.answer(); break;
      }
    }
    if (session && asked.outstanding) session->cancel(asked);
    session = {};
    user.forget();
  }
  require(host.pool().in_use() == 0, "all buffers have been given back");
}

}  // namespace
}  // namespace lrpc::netrpc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::netrpc::fuzz::run({data, size});
  return 0;
}
