// Attacks what a remote broker serves to other hosts, with commands of several hosts in any order. There is no
// nameserver, so no binding is made. Everything else that a host can have occurs: boot ids, refused binds, pings,
// sweeps, forgetting.
#include <algorithm>
#include <array>
#include <string>

#include "input.h"
#include "served_hosts.h"

namespace lrpc::netpath {
namespace {

using fuzz::Input;
using fuzz::require;

Principal principal(std::uint8_t which) {
  Principal who{.host = 0x0a000002U + (which & 3U)};
  if ((which & 4U) != 0) {
    who.authentication = shim::HostAuthentication::key;
    who.key = (which & 8U) != 0 ? "*" : "10.0.0.0/24";
  }
  return who;
}

void check_answer(std::uint16_t command, std::span<const std::byte> request, std::span<const std::byte> reply,
                  std::uint64_t boot) {
  switch (static_cast<Command>(command)) {
    case Command::bind: {
      const auto answer = decode_bind_answer(reply);
      require(answer && answer->code != Errc::ok, "a BIND is answered, and nothing can be bound to here");
      return;
    }
    case Command::call:
    case Command::group_call: {
      const auto answer = decode_call_answer(reply);
      require(answer && answer->ended && answer->image.empty() && (answer->status & 0x8000U) != 0,
              "a CALL without a binding fails");
      return;
    }
    case Command::unbind: require(reply.empty(), "an UNBIND has an empty answer"); return;
    case Command::ping: {
      const auto asked = decode_ping(request);
      const auto answer = decode_ping_answer(reply);
      require(asked && answer && answer->server_boot == boot && answer->alive.size() == asked->bindings.size(),
              "a PING is answered for each binding");
      require(std::ranges::none_of(answer->alive, [](bool alive) { return alive; }), "no binding lives");
    }
  }
}

void run(Input input) {
  constexpr std::uint64_t kBoot = 0x1122'3344'5566'7788;
  BrokerOptions options;
  options.nameserver = "/nonexistent/lrpcd.sock";
  options.exported = [](std::string_view name) { return name.starts_with('e'); };
  options.max_waiting_binds = 2;
  ServedHosts hosts(options, kBoot);
  auto now = ServedHosts::Clock::now();
  Arrival last = 0;
  std::array<std::byte, kMaxCallMessage> reply;
  while (input.more()) {
    const std::uint8_t step = input.byte();
    const Principal from = principal(input.byte());
    switch (step % 4) {
      case 0: {
        now += std::chrono::seconds(input.byte());
        hosts.sweep(now);
        break;
      }
      case 1: hosts.forget(from.host, last - std::min<Arrival>(last, input.byte())); break;
      default: {
        const std::uint16_t command = input.byte() % 7;
        const auto request = input.bytes(input.two() % 2048);
        // A copy of exactly the message's size, so that a sanitizer sees every access outside of it.
        const std::string copy(reinterpret_cast<const char*>(request.data()), request.size());
        std::size_t size = reply.size() + 1;
        const Arrival arrived = ++last - std::min<Arrival>(last, step / 4);  // some are served late
        const std::uint16_t code = hosts.serve(from, arrived, command, bytes_of(copy), reply, size);
        require(size <= reply.size(), "a reply has room");
        if (code != 0) {
          require(size == 0, "what is refused has no reply");
        } else {
          check_answer(command, bytes_of(copy), std::span(reply).first(size), kBoot);
        }
      }
    }
    BrokerStatistics statistics;
    hosts.count(statistics);
    require(statistics.bindings == 0 && statistics.hosts == 0, "no binding comes about");
  }
}

}  // namespace
}  // namespace lrpc::netpath

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::netpath::run({data, size});
  return 0;
}
