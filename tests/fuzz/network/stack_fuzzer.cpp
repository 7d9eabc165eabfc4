// Attacks a composed stack of protocols from below. The input is a little program: each step lets a frame arrive, lets time
// pass, makes the local user call, send, open or cancel. What must not happen: a crash, a report of a sanitizer, a buffer
// left over, state beyond the bounds.
//
// One program a stack, of which FUZZ_STACK is the name; the instance `top` is used.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "fuzz_device.h"
#include "lrpc/netrpc/all_kinds.h"

namespace lrpc::netrpc::fuzz {
namespace {

struct FuzzedStack {
  std::string_view name;
  std::string_view graph;
  bool transactions;
};
constexpr FuzzedStack kStacks[] = {
    {"fragment", "wire = FUZZ; top = FRAGMENT over wire;", false},
    {"vip", "eth = FUZZ; ip = FUZZ; top = VIP over eth, ip;", false},
    {"vipsize", "wire = FUZZ; fragment = FRAGMENT over wire; top = VIPSIZE over wire, fragment;", false},
    {"datagram", "wire = FUZZ; channel = CHANNEL over wire; top = RELIABLE_DATAGRAM over channel;", false},
    {"channel", "wire = FUZZ; channel = CHANNEL over wire; top = SELECT over channel;", true},
    {"mrpc", "wire = FUZZ; top = M_RPC over wire;", true},
    {"layers", "wire = FUZZ; fragment = FRAGMENT over wire; channel = CHANNEL over fragment; top = SELECT over channel;",
     true},
};
constexpr FuzzedStack kStack = *std::ranges::find(kStacks, std::string_view(FUZZ_STACK), &FuzzedStack::name);

class StepClock final : public Clock {
 public:
  [[nodiscard]] Time now() const noexcept override { return now_; }
  void pass(Duration time) noexcept { now_ += time; }

 private:
  Time now_{1'000'000'000};
};

class NoEngine final : public Engine {
 public:
  bool wait(Host& /*host*/, const std::function<bool()>& done, Time /*deadline*/) override { return done(); }
  void wake(Host& /*host*/) noexcept override {}
};

/// Who uses the stack: answers every request, some at once, some later; asks now and then.
class User final : public Protocol {
 public:
  using Protocol::Protocol;

  void demux(Session& /*lower*/, Message message) noexcept override { touch(message); }
  void call_demux(Session& lower, Message request) noexcept override {
    touch(request);
    if (answer_later_) {
      waiting_ = SessionRef(&lower);
      waiting_message_ = std::move(request);
    } else {
      lower.reply(std::move(request));
    }
  }
  void answer_later(bool later) noexcept { answer_later_ = later; }
  void answer() noexcept {
    if (!waiting_) return;
    const SessionRef session = std::exchange(waiting_, {});
    session->reply(std::move(waiting_message_));
  }
  void forget() noexcept {
    waiting_ = {};
    waiting_message_.clear();
  }
  [[nodiscard]] Errc control(control::Request& request) noexcept override {
    if (auto* const most = std::get_if<control::AdvertisedMaximum>(&request)) {
      most->size = 16384;
      return Errc::ok;
    }
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

/// The steps of the program that the input is.
class Program {
 public:
  Program(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}
  [[nodiscard]] bool more() const noexcept { return left_ > 0; }
  [[nodiscard]] std::uint8_t byte() noexcept {
    if (left_ == 0) return 0;
    --left_;
    return *at_++;
  }
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t count) noexcept {
    count = std::min(count, left_);
    const std::span<const std::byte> taken(reinterpret_cast<const std::byte*>(at_), count);
    at_ += count;
    left_ -= count;
    return taken;
  }

 private:
  const std::uint8_t* at_;
  std::size_t left_;
};

void fail(const char* what) {
  std::fprintf(stderr, "stack fuzzer: %s\n", what);
  std::abort();
}

void run(Program program) {
  StepClock clock;
  NoEngine engine;
  HostOptions options;
  options.address = {0x0a000001U};
  options.boot_id = 0x1234;
  options.seed = 1;
  options.buffer_limit = std::size_t{8} << 20;
  Host host(options, clock, engine);
  static FuzzDevice* device = nullptr;
  static const ProtocolKinds kinds = [] {
    ProtocolKinds all = layer_kinds();
    all.add(fuzz_device_kind(device));
    return all;
  }();
  static const auto description = GraphDescription::parse(kStack.graph, kinds);
  if (!description) fail(description.error().message().c_str());
  {
    const Shepherd inside(host.monitor());
    User user(host, "user");
    Asked asked;
    auto graph = Graph::compose(host, *description, kinds);
    if (!graph) fail(graph.error().message().c_str());
    Protocol& top = *graph->find("top");
    ParticipantSet local{.protocol = protocol_numbers::kFirstOfTests, .local = {}, .remote = {}};
    local.local.host = host.address();
    local.local.command = 7;
    if (!top.open_enable(user, local)) fail("the top cannot be enabled");
    SessionRef session;
    while (program.more()) {
      switch (program.byte() % 9) {
        case 0:
        case 1: {
          const std::uint8_t peer = program.byte();
          const std::uint8_t which = program.byte();
          const std::size_t size = program.byte() | (program.byte() & 7U) << 8;
          device->arrive(peer, which, program.bytes(size));
          break;
        }
        case 2: {
          const std::uint8_t peer = program.byte();
          const std::uint8_t which = program.byte();
          const std::uint8_t at = program.byte();
          device->reflect(peer, which, at, program.byte());
          break;
        }
        case 3:
          clock.pass(std::chrono::microseconds(1ULL << (program.byte() % 28)));
          host.events().run_due();
          break;
        case 4: {
          if (asked.outstanding) {  // it is the session's that it was given to
            session->cancel(asked);
            asked.outstanding = false;
          }
          ParticipantSet remote{.protocol = protocol_numbers::kFirstOfTests, .local = {}, .remote = {}};
          remote.local.host = host.address();
          remote.remote.host = {0x0a000002U + (program.byte() & 3U)};
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
          if (kStack.transactions) {
            if (asked.outstanding) break;
            asked.outstanding = true;
            session->call(std::move(message), asked, std::chrono::milliseconds(program.byte()));
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
  if (host.pool().in_use() != 0) fail("buffers are left over");
}

}  // namespace
}  // namespace lrpc::netrpc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::netrpc::fuzz::run(lrpc::netrpc::fuzz::Program(data, size));
  return 0;
}
