// Attacks the table of VIP hosts: advertisements of any content, from a few hosts that lie about themselves and each
// other. What must not happen: a known host is moved or removed against ARP's answer; the table's two directions
// disagree; the table exceeds its bound; this host believes an advertisement about itself; it sends more than it was
// asked for.
#include <algorithm>
#include <array>
#include <optional>

#include "fuzz_device.h"
#include "input.h"
#include "lrpc/netrpc/session_cache.h"
#include "netrpc/protocols/viphosts/header.h"
#include "netrpc/protocols/viphosts/viphosts.h"
#include "steps.h"

namespace lrpc::netrpc::fuzz {
namespace {

using lrpc::fuzz::Input;
using lrpc::fuzz::require;
using viphosts::Advertisement;

constexpr HostAddress kOwn{0x0a000001U};
constexpr std::size_t kHosts = 3;
/// One of these is this host itself.
HostAddress advertised_host(std::uint8_t which) { return {kOwn.value + (which & 7U)}; }

void check_codec(std::span<const std::byte> bytes) {
  if (bytes.size() < Advertisement::kSize) return;
  Advertisement said = Advertisement::decode(bytes.data());
  std::array<std::byte, Advertisement::kSize> again{};
  said.encode(again.data());
  require(std::ranges::equal(again, bytes.first(Advertisement::kSize)), "decoding and encoding give the same bytes");
  const std::uint32_t number = said.flags;
  const bool before = said.speaks(number);
  said.set(number, !before);
  require(said.speaks(number) == !before && !said.speaks(number + 256), "a bit stands for one protocol number");
}

std::optional<EthernetAddress> known(Protocol& table, HostAddress host) {
  control::Resolve resolve{host, {}};
  if (control::ask(table, resolve) != Errc::ok) return std::nullopt;
  return resolve.ethernet;
}

void check_table(Protocol& table) {
  control::Statistics counted;
  require(control::ask(table, counted) == Errc::ok && counted.state <= kHosts, "the table keeps to its bound");
  require(!known(table, kOwn), "nobody is believed about this host");
  for (std::uint8_t peer = 0; peer < 4; ++peer) {
    control::ResolveReverse reverse{FuzzDevice::ethernet_of(FuzzDevice::peer_host(peer)), {}};
    if (control::ask(table, reverse) != Errc::ok) continue;
    require(known(table, reverse.host) == reverse.ethernet, "both directions of the table say the same");
  }
}

/// Lets `bytes` arrive, and checks that the entry of the host they may be about changes only as allowed.
void arrive(FuzzDevice& device, Protocol& table, std::uint8_t peer, std::span<const std::byte> bytes) {
  const HostAddress about =
      bytes.size() < Advertisement::kSize ? HostAddress{} : Advertisement::decode(bytes.data()).host;
  const EthernetAddress from = FuzzDevice::ethernet_of(FuzzDevice::peer_host(peer));
  const auto before = known(table, about);
  device.arrive(peer, 0, bytes);
  const auto after = known(table, about);
  if (!before || before == from || from == FuzzDevice::ethernet_of(about)) return;
  require(after == before, "who is known moves or goes only where ARP says so");
}

void run(Input input) {
  StepClock clock;
  NoEngine engine;
  Host host(host_options(kOwn), clock, engine);
  {
    const Shepherd inside(host.monitor());
    FuzzDevice device(host, "wire");
    std::size_t said = 0;
    device.on_push = [&](const ParticipantSet&, std::span<const std::byte> bytes) {
      ++said;
      require(bytes.size() == Advertisement::kSize && Advertisement::decode(bytes.data()).host == kOwn,
              "this host speaks of itself");
    };
    auto made = make_viphosts(host, "hosts", device, {.hosts = kHosts});
    require(bool(made), "the table can be made");
    Protocol& table = **made;
    while (input.more()) {
      const std::uint8_t step = input.byte();
      const std::size_t before = said;
      switch (step % 6) {
        case 0: {
          const std::uint8_t peer = input.byte();
          const auto bytes = input.bytes(input.byte());
          check_codec(bytes);
          arrive(device, table, peer, bytes);
          require(said <= before + 1, "an advertisement is answered once at most");
          break;
        }
        case 1:
        case 2: {
          const std::uint8_t peer = input.byte();
          Advertisement lie;
          lie.host = advertised_host(input.byte());
          lie.flags = input.byte();
          lie.boot_id = input.byte();
          lie.lifetime_ms = input.byte() * 101U;
          lie.set(input.byte(), true);
          std::array<std::byte, Advertisement::kSize> bytes{};
          lie.encode(bytes.data());
          arrive(device, table, peer, bytes);
          require(said <= before + 1, "an advertisement is answered once at most");
          break;
        }
        case 3:
          clock.pass(std::chrono::microseconds(1ULL << (input.byte() % 28)));
          host.events().run_due();
          break;
        case 4: {
          control::AdvertiseVip told{input.two(), (step & 8) != 0};
          require((control::ask(table, told) == Errc::ok) == (told.protocol < 256), "256 numbers can be advertised");
          break;
        }
        default: {
          control::DropIdle drop;
          require(control::ask(table, drop) == Errc::ok, "the table can be swept");
          control::SpeaksVip asked{advertised_host(input.byte()), input.two(), false};
          require(control::ask(table, asked) == Errc::ok, "the table can be asked");
          require(!asked.speaks || (known(table, asked.host) && asked.protocol < 256), "only who is known speaks VIP");
        }
      }
      check_table(table);
    }
  }
  require(host.pool().in_use() == 0, "all buffers have been given back");
}

}  // namespace
}  // namespace lrpc::netrpc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::netrpc::fuzz::run({data, size});
  return 0;
}
