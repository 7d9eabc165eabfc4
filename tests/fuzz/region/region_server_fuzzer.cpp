// A hostile server against its client, over any gate. It returns anything at any time, rewrites words, images, tails
// and hints before and after, punches holes, hangs up. The input is the client's calls and the server's script. With
// gate none the server's part runs inside the caller's thread, so a finding can be repeated; otherwise a thread runs it
// again and again beside the calls. What must hold: every call ends, with an error or with conforming results. The
// client's binding to another server works correctly all the time. Nothing of the binding is kept after its end.
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "conformance_service.h"
#include "honest_calls.h"
#include "lrpc/detail/shim/call/gates.h"
#include "raw_binding.h"
#include "region_writes.h"

namespace lrpc::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 15s;
constexpr auto kCallTimeout = 2ms;
constexpr std::size_t kMostCalls = 10;
constexpr int kMostWrites = 12;  ///< Per call.

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

/// Another, honest server, and this client's binding to it.
class Honest {
 public:
  Honest() {
    auto ends = shim::make_socket_pair();
    require(bool(ends), "there are sockets");
    require(bool(Conformance::serve_over(server_, std::move(ends->first), service_)), "an honest server serves");
    auto client = Conformance::Client::import_over(std::move(ends->second), {.call_timeout = kPatience});
    require(bool(client), "the client is bound to it");
    client_ = std::make_unique<Conformance::Client>(*std::move(client));
    for (int i = 0; i < 5; ++i) check();
  }
  void check() {
    const auto sum = client_->Add(++calls_, 3);
    require(sum && *sum == calls_ + 3, "the other server's results are its own");
  }

 private:
  Server server_;
  testing_lrpc::ConformanceService service_;
  std::unique_ptr<Conformance::Client> client_;
  std::int32_t calls_ = 0;
};

Honest& honest() {
  static Honest* const one = new Honest;  // never destroyed: the fuzzer ends by _exit()
  return *one;
}

/// The server's half of a binding, without the library.
class HostileServer {
 public:
  /// accept() answers the import that comes through `socket`.
  explicit HostileServer(UniqueFd socket) : socket_(std::move(socket)) {}
  void accept() {
    auto received = shim::receive_message(socket_.get(), std::chrono::milliseconds(kPatience));
    require(received && received->has_value(), "the client asks");
    auto fd = shim::create_region(testing_lrpc::conformance_layout());
    auto bells = shim::make_socket_pair();
    require(fd && bells, "there are a region and a bell");
    shim::BinderMessage answer = testing_lrpc::conformance_answer((*received)->request);
    answer.fds.push_back(testing_lrpc::duplicate(fd->get()));
    answer.fds.push_back(std::move(bells->second));
    auto region = shim::Region::map(*std::move(fd), testing_lrpc::conformance_layout());
    require(bool(region), "the region can be mapped");
    region_ = *std::move(region);
    bell_ = std::move(bells->first);
    require(bool(shim::send_message(socket_.get(), answer)), "the client hears");
  }
  [[nodiscard]] const shim::Region& region() const noexcept { return region_; }

  /// Misbehaves during one call, and returns it or not.
  void misbehave(Input& input, const shim::AStack& astack) {
    for (int i = 0; i < kMostWrites && input.more(); ++i) {
      switch (const std::uint8_t action = input.byte(); action % 12) {
        case 0:
        case 1: write_image(input, region_, astack); break;
        case 2: write_tail(input, region_, astack); break;
        case 3: write_hints(input, astack); break;
        case 4: punch_hole(input, region_); break;
        case 5:
          astack.head->word.store(call_word(input, astack.head->word.load() >> shim::CallWord::kGenerationShift));
          return;
        case 6: shim::revoke_word(*astack.head, shim::Sleeper::caller); return;
        case 7:
          if (action > 0xd0) (void)shutdown(bell_.get(), SHUT_RDWR);
          break;
        case 8: {
          const auto word = static_cast<std::uint64_t>(input.byte());
          (void)send(bell_.get(), &word, word % 9, MSG_DONTWAIT | MSG_NOSIGNAL);
          break;
        }
        default: return give_back(input, astack);
      }
    }
    give_back(input, astack);
  }
  /// Returns the call as the protocol demands, with a status that may not exist.
  void give_back(Input& input, const shim::AStack& astack) const {
    const std::uint8_t how = input.byte();
    const std::uint16_t status = how < 0xa0   ? std::uint16_t{0}
                                 : how < 0xd0 ? std::uint16_t{how} % 4
                                              : static_cast<std::uint16_t>(0x8000U | input.byte());
    const std::uint64_t word = astack.head->word.load();
    shim::return_to_caller(*astack.head, shim::CallWord::returned(word >> shim::CallWord::kGenerationShift, status));
  }

 private:
  UniqueFd socket_;
  UniqueFd bell_;
  shim::Region region_;
};

/// Runs the script inside the caller's thread.
struct Inline {
  HostileServer& server;
  Input& input;
  static void serve(void* self, std::uint32_t astack) {
    auto& [server, input] = *static_cast<Inline*>(self);
    server.misbehave(input, server.region().astack(astack));
  }
};

/// Runs the script again and again beside the calls.
void serve_beside(HostileServer& server, std::span<const std::byte> script, const std::atomic<bool>& stop) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(script.data());
  Input input(bytes, script.size());
  while (!stop) {
    if (!input.more()) input = Input(bytes, script.size());
    bool served = false;
    for (std::uint32_t i = 0; i < server.region().layout().astack_count(); ++i) {
      const shim::AStack astack = server.region().astack(i);
      if ((astack.head->word.load() & shim::CallWord::kTurnMask) != 1) continue;
      server.misbehave(input, astack);
      const std::uint64_t said = astack.head->word.load();
      if (input.byte() >= 0x80)  // while the caller copies its results
        flicker(input, astack, [&] { return stop || astack.head->word.load(std::memory_order_relaxed) != said; });
      served = true;
    }
    if (!served) std::this_thread::yield();
  }
}

void run(Input input) {
  constexpr shim::Gate kGates[] = {shim::Gate::none,     shim::Gate::none,     shim::Gate::none,    shim::Gate::none,
                                   shim::Gate::adaptive, shim::Gate::exchange, shim::Gate::handoff, shim::Gate::sleep};
  const shim::Gate gate = kGates[input.byte() % std::size(kGates)];
  const bool watcher = input.byte() % 4 == 0;
  const std::size_t count = 1 + input.byte() % kMostCalls;
  const auto calls = input.bytes(count);
  honest().check();
  const std::size_t before = open_descriptors();
  {
    auto ends = shim::make_socket_pair();
    require(bool(ends), "there are sockets");
    HostileServer server(std::move(ends->first));
    std::thread clerk([&] { server.accept(); });
    auto client = Conformance::Client::import_over(
        std::move(ends->second),
        {.timeout = kPatience,
         .gate = gate,
         .call_timeout = gate == shim::Gate::none ? std::chrono::milliseconds(lrpc::kNoLimit) : kCallTimeout,
         .watcher = watcher && gate != shim::Gate::none});
    clerk.join();
    require(bool(client), "the client is bound");
    Inline inlined{server, input};
    std::atomic<bool> stop{false};
    std::thread beside;
    if (gate == shim::Gate::none) {
      lrpc::detail::StubAccess::object(client->binding()).set_inline_server({&Inline::serve, &inlined});
    } else {
      beside = std::thread([&, script = input.rest()] { serve_beside(server, script, stop); });
    }
    for (const std::byte which : calls) call_honestly(*client, std::to_integer<std::uint8_t>(which));
    honest().check();
    stop = true;
    if (beside.joinable()) beside.join();
  }
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (open_descriptors() > before) {
    require(std::chrono::steady_clock::now() < until, "no descriptor is left of the binding");
    std::this_thread::sleep_for(50us);
  }
}

}  // namespace
}  // namespace lrpc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::fuzz::run({data, size});
  return 0;
}
