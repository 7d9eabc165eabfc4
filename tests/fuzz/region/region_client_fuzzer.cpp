// A hostile client against a server, over any gate. It rings anything, rewrites words, images, tails and hints under
// running calls, punches holes, rings the bell without end, and leaves. The input is its script. The script's second
// half runs beside the first, in a thread of its own. With gate none there is no such thread: script and calls run in
// this one, so a finding can be repeated. What must hold: the server lives on, executes no more calls than were rung,
// serves another client correctly all the time, and keeps nothing of the client that has left.
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "inline_server.h"
#include "input.h"
#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/binder/growth.h"
#include "lrpc/detail/shim/call/gates.h"
#include "raw_binding.h"
#include "region_writes.h"
#include "watchful_service.h"

namespace lrpc::fuzz {
namespace {

using namespace std::chrono_literals;
using testing_lrpc::RawBinding;

constexpr auto kPatience = 15s;
constexpr int kMostActions = 120;

/// Counts the calls executed for the hostile binding, and records whether the binding has ended.
struct Ledger {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t binding = 0;
  bool ended = false;
  std::uint64_t executed = 0;
};

Ledger& ledger() {
  static Ledger one;
  return one;
}

template <std::size_t kIndex>
std::uint16_t counted(void* impl, CallContext& context) {
  {
    std::lock_guard lock(ledger().mutex);
    if (context.binding_id() == ledger().binding) ++ledger().executed;
  }
  return Conformance::Entry_<WatchfulService>::kStubs_[kIndex](impl, context);
}
template <std::size_t... kIndexes>
constexpr auto counted_stubs(std::index_sequence<kIndexes...> /*of all*/) {
  return std::array<EntryStub, sizeof...(kIndexes)>{&counted<kIndexes>...};
}
constexpr auto kCounted = counted_stubs(
    std::make_index_sequence<std::tuple_size_v<decltype(Conformance::Entry_<WatchfulService>::kStubs_)>>());

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

template <class Condition>
bool eventually(Condition&& holds) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(20us);
  }
  return true;
}

/// The server, and its honest client.
class Honest {
 public:
  Honest() {
    auto other = shim::make_socket_pair();
    auto hostile = shim::make_socket_pair();
    require(other && hostile, "there are sockets");
    require(bool(Conformance::serve_over(server_, std::move(other->first), service_)), "the other is served");
    auto client = Conformance::Client::import_over(std::move(other->second), {.call_timeout = kPatience});
    require(bool(client), "the other is bound");
    bystander_ = std::make_unique<Conformance::Client>(*std::move(client));
    ExportOptions told;
    told.on_bound = [](std::uint64_t id, const shim::Credentials&) {
      std::lock_guard lock(ledger().mutex);
      ledger().binding = id;
      ledger().ended = false;
      ledger().executed = 0;
    };
    told.on_unbound = [](std::uint64_t id) {
      std::lock_guard lock(ledger().mutex);
      if (id == ledger().binding) ledger().ended = true;
      ledger().changed.notify_all();
    };
    require(bool(server_.serve_over(std::move(hostile->first), Conformance::kPdl, kCounted, &service_, told)),
            "the hostile one is served, too");
    door_ = std::move(hostile->second);
    for (int i = 0; i < 5; ++i) serve_bystander();
  }

  [[nodiscard]] int door() const noexcept { return door_.get(); }
  [[nodiscard]] Server& server() noexcept { return server_; }
  void serve_bystander() {
    ++calls_;
    const auto sum = bystander_->Add(calls_, 3);
    require(sum && *sum == calls_ + 3, "the other client is served right");
    if (calls_ % 4 == 0) {
      const auto greeting = bystander_->Greet("you");
      require(greeting && greeting->view() == "hello, you", "the other client's texts are its own");
    }
  }
  /// `before`: the number of descriptors that were open.
  void expect_nothing_left(std::size_t before) {
    {
      std::unique_lock lock(ledger().mutex);
      require(ledger().changed.wait_for(lock, kPatience, [] { return ledger().ended; }), "a binding ends");
    }
    serve_bystander();
    require(eventually([&] { return server_.statistics().bindings == 1; }), "the binding is gone");
    require(eventually([&] { return *bystander_->LiveObjects() == 0; }), "the binding's objects are gone");
    require(eventually([&] { return open_descriptors() <= before; }), "the binding's descriptors are gone");
  }

 private:
  Server server_{{.max_estacks = 24, .estack_idle = 30s}};
  WatchfulService service_;
  std::unique_ptr<Conformance::Client> bystander_;
  UniqueFd door_;
  std::int32_t calls_ = 0;
};

Honest& honest() {
  // Never destroyed: a server's end waits for threads, and the fuzzer ends by _exit().
  static Honest* const one = new Honest;
  return *one;
}

class HostileClient {
 public:
  /// `here`: null except with Gate::none.
  HostileClient(shim::Gate gate, testing_lrpc::InlineServer* here, const RawBinding& binding)
      : gate_(gate), here_(here), binding_(binding) {}

  void run(Input input) {
    for (int i = 0; i < kMostActions && input.more(); ++i) act(input);
  }
  /// How many of its stores may have looked like a call to the server.
  [[nodiscard]] std::uint64_t rung() const noexcept { return rung_; }
  [[nodiscard]] const shim::Region& region() const noexcept { return binding_.region(); }

 private:
  void act(Input& input) {
    switch (const std::uint8_t action = input.byte(); action % 16) {
      case 0:
      case 1:
      case 2:
      case 3: return call(input);
      case 4: return store_word(input, any_astack(input, region()));
      case 5:
      case 6: return write_image(input, region(), any_astack(input, region()));
      case 7: return write_tail(input, region(), any_astack(input, region()));
      case 8: return write_hints(input, any_astack(input, region()));
      case 9: return punch_hole(input, region());
      case 10: return ring_bell(input);
      case 11: return wait_for(any_astack(input, region()));
      case 12: return honest_turn();
      case 13: return std::this_thread::sleep_for(std::chrono::microseconds(action));
      case 14: return serve_inline(input);
      default:
        if (action < 0x80) return offer(input);
        // With gate none, the server's half must outlive the calls.
        if (action > 0xf0 && here_ == nullptr) (void)shutdown(binding_.bell(), SHUT_RDWR);
    }
  }

  /// Rings as a correct client does, with an image of any bits.
  void call(Input& input) {
    const auto identifier = static_cast<std::uint16_t>(input.byte() % (Conformance::kPdl.procedures.size() + 1));
    std::uint32_t number = input.byte() % region().layout().astack_count();
    if (identifier < Conformance::kPdl.procedures.size() && number % 8 != 0) {  // mostly an A-stack of its class
      const auto& placed = region().layout().classes()[Conformance::kPdl.procedures[identifier].astack_class];
      number = placed.first_astack + number % placed.declared.count;
    }
    const shim::AStack astack = region().astack(number);
    const std::uint8_t before = input.byte();
    for (std::size_t writes = before % 4; writes > 0; --writes) write_image(input, region(), astack);
    const std::uint64_t seen = astack.head->word.load();
    ++rung_;
    astack.head->word.store(
        shim::CallWord::called((seen >> shim::CallWord::kGenerationShift) + 1, identifier, shim::kNoProcessor).bits());
    wake(number, astack);
    if (here_ == nullptr && before >= 0x80) {
      flicker(input, astack,
              [&] { return (astack.head->word.load(std::memory_order_relaxed) & shim::CallWord::kTurnMask) != 1; });
    }
  }

  void store_word(Input& input, const shim::AStack& astack) {
    ++rung_;
    astack.head->word.store(call_word(input, astack.head->word.load() >> shim::CallWord::kGenerationShift));
    shim::futex_wake(astack.head->word, shim::Sleeper::estack);
  }

  void wake(std::uint32_t number, const shim::AStack& astack) {
    if (here_ != nullptr) return here_->serve(number);
    shim::futex_wake(astack.head->word, shim::Sleeper::estack);
    if (gate_ != shim::Gate::exchange) (void)send(binding_.bell(), "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  void serve_inline(Input& input) {
    if (here_ != nullptr) here_->serve(input.byte() % region().layout().astack_count());
  }

  void ring_bell(Input& input) {
    if (here_ != nullptr) return;
    std::array<char, 64> rings{};
    rings[0] = static_cast<char>(input.byte());
    (void)send(binding_.bell(), rings.data(), input.byte() % rings.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  /// Offers a descriptor of the right or a wrong kind, with or without the request that belongs to it.
  void offer(Input& input) {
    const std::uint8_t what = input.byte();
    if (what % 4 == 0) {
      auto line = shim::ask_for_growth(binding_.bell(), {.astack_class = static_cast<std::uint16_t>(input.byte() % 8),
                                                         .place = static_cast<std::uint16_t>(input.byte() % 20),
                                                         .count = input.byte()});
      const std::lock_guard lock(lines_mutex_);
      if (line && what < 0xc0 && lines_.size() < 8) lines_.push_back(*std::move(line));
      return;
    }
    auto ends = shim::make_socket_pair();
    if (!ends) return;
    const auto request = input.bytes(what % 16);
    if (!request.empty()) (void)send(ends->first.get(), request.data(), request.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (what >= 0xc0) ends->second.reset(memfd_create("fuzz", MFD_CLOEXEC));
    (void)shim::offer_on_bell(binding_.bell(), static_cast<shim::BellMessage>(input.byte() % 7), ends->second.get(),
                              0ms);
  }

  static void wait_for(const shim::AStack& astack) {
    for (int i = 0; i < 20; ++i) {
      if ((astack.head->word.load() & shim::CallWord::kTurnMask) == 0) return;
      std::this_thread::sleep_for(5us);
    }
  }

  /// Only one thread at a time uses the honest client.
  static void honest_turn() {
    static std::mutex turn;
    if (const std::unique_lock lock(turn, std::try_to_lock); lock) honest().serve_bystander();
  }

  const shim::Gate gate_;
  testing_lrpc::InlineServer* const here_;
  const RawBinding& binding_;
  std::atomic<std::uint64_t> rung_{0};
  std::mutex lines_mutex_;
  std::vector<UniqueFd> lines_;  ///< Lines of secondary regions.
};

void run(Input input) {
  constexpr shim::Gate kGates[] = {shim::Gate::none,     shim::Gate::none,     shim::Gate::none,    shim::Gate::none,
                                   shim::Gate::adaptive, shim::Gate::exchange, shim::Gate::handoff, shim::Gate::sleep};
  Honest& world = honest();
  const shim::Gate gate = kGates[input.byte() % std::size(kGates)];
  const std::size_t before = open_descriptors();  // counted each time, since the fuzzing engine opens some of its own
  std::uint64_t rung = 0;
  {
    const RawBinding binding(world.door(), gate);
    std::uint64_t id = 0;
    {
      std::lock_guard lock(ledger().mutex);
      id = ledger().binding;
    }
    std::optional<testing_lrpc::InlineServer> here;
    if (gate == shim::Gate::none) here.emplace(world.server(), id);
    HostileClient hostile(gate, here ? &*here : nullptr, binding);
    if (gate == shim::Gate::none) {
      hostile.run(input);
    } else {
      const auto all = input.rest();
      const auto* front = reinterpret_cast<const std::uint8_t*>(all.data());
      const std::size_t half = all.size() / 2;
      std::thread beside([&] { hostile.run({front + half, all.size() - half}); });
      hostile.run({front, half});
      beside.join();
    }
    rung = hostile.rung();
  }
  world.expect_nothing_left(before);
  std::lock_guard lock(ledger().mutex);
  require(ledger().executed <= rung, "no more is executed than was rung");
}

}  // namespace
}  // namespace lrpc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::fuzz::run({data, size});
  return 0;
}
