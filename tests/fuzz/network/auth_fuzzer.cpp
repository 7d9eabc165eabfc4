// Attacks AUTH on the wire between two hosts that share a key. The attacker controls every packet: delivers, drops,
// delays, changes, cuts and repeats packets, and makes some up. Some have a valid MAC, as if the attacker knew the key
// that signs handshakes. What must not happen: a message is delivered that the other host has not sent, or is delivered
// twice; state or buffers exceed their bounds; a host cannot be reached any more after the attacker has gone.
#include <sodium.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuzz_device.h"
#include "input.h"
#include "netrpc/protocols/auth/header.h"
#include "netrpc/protocols/auth/keys.h"
#include "netrpc/protocols/auth/protocol.h"
#include "steps.h"

namespace lrpc::netrpc::fuzz {
namespace {

using lrpc::fuzz::Input;
using lrpc::fuzz::require;
using namespace std::chrono_literals;

constexpr std::string_view kKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
constexpr ProtocolNumber kNumber = protocol_numbers::kFirstOfTests;
constexpr std::size_t kPeers = 3;
constexpr std::size_t kSessions = 3;
constexpr std::size_t kPending = 4;
constexpr auto kChacha = static_cast<auth::Ciphers>(auth::Cipher::chacha20_poly1305);

/// The same input must do the same. So libsodium's random numbers come from a generator that is seeded anew in each
/// run.
struct Random {
  static inline std::uint64_t state = 1;
  static std::uint32_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<std::uint32_t>(state >> 16);
  }
  static void fill(void* const to, const std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) static_cast<unsigned char*>(to)[i] = static_cast<unsigned char>(next());
  }
  static const char* name() { return "repeatable"; }
  static bool install() {
    static randombytes_implementation implementation{name, next, nullptr, nullptr, fill, nullptr};
    return randombytes_set_implementation(&implementation) == 0 && sodium_init() >= 0;
  }
};

struct Packet {
  std::size_t from;
  std::vector<std::byte> bytes;
};

/// The user of AUTH on a host: checks what is delivered.
class User final : public Protocol {
 public:
  User(Host& host, std::map<std::uint32_t, std::size_t>& sent, std::size_t self, HostAddress other)
      : Protocol(host, "user"), sent_(sent), self_(self), other_(other) {}
  Errc open_done(Session& /*lower*/, const ParticipantSet& /*participants*/) noexcept override { return Errc::ok; }
  void demux(Session& lower, Message message) noexcept override {
    std::vector<std::byte> bytes(message.size());
    message.copy_to(bytes);
    require(lower.peer() == other_ && bytes.size() >= 4, "what is delivered comes from the host that has sent it");
    const std::uint32_t number = WireReader(bytes.data()).get<std::uint32_t>();
    const auto found = sent_.find(number);
    require(found != sent_.end() && found->second != self_, "what is delivered has been sent, and once only");
    require(std::ranges::all_of(std::span(bytes).subspan(4), [](std::byte b) { return b == std::byte{0x5a}; }),
            "what is delivered is as it was sent");
    sent_.erase(found);
    ++delivered;
  }
  std::size_t delivered = 0;

 private:
  std::map<std::uint32_t, std::size_t>& sent_;  ///< Messages under way, with their senders.
  const std::size_t self_;
  const HostAddress other_;
};

HostAddress address_of(std::size_t side) { return {side == 0 ? 0x0a000002U : 0x0a000003U}; }
/// The number that FuzzDevice gives the peer.
std::uint8_t peer_of(std::size_t side) { return static_cast<std::uint8_t>(side); }
constexpr std::uint8_t kAttacker = 2;

Result<auth::KeyRing> keys_for(const std::string& who) {
  return auth::KeyRing::parse(who + " " + std::string(kKey) + "\n", "keys");
}

struct Side {
  /// `ciphers`: which of the machine's ciphers it may use. `limited`: its keys have low limits of blocks and forgeries.
  /// `anywhere`: the other host may be behind an address translation.
  Side(std::size_t self, auth::Ciphers ciphers, bool limited, bool anywhere, StepClock& clock, Engine& engine,
       std::map<std::uint32_t, std::size_t>& sent, std::vector<Packet>& wire)
      : host(host_options(address_of(self)), clock, engine) {
    const Shepherd inside(host.monitor());
    device = std::make_unique<FuzzDevice>(host, "wire");
    device->on_push = [&wire, self](const ParticipantSet& to, std::span<const std::byte> bytes) {
      // Packets to other hosts are lost.
      if (to.remote.host == address_of(1 - self)) wire.push_back({self, {bytes.begin(), bytes.end()}});
    };
    auth::AuthOptions options;
    options.keys = "/nonexistent";
    options.peers = kPeers;
    options.sessions = kSessions;
    options.settings.pending = kPending;
    options.settings.rekey_messages = 6;
    options.settings.ciphers &= ciphers;
    if (limited) options.settings.limits = {.blocks = 64, .forgeries = 3};
    options.settings.anywhere = anywhere;
    auto keys = keys_for(anywhere ? to_string(address_of(1 - self)) : "10.0.0.0/8");
    require(bool(keys), "the keys can be read");
    auto made = std::make_unique<auth::AuthProtocol>(host, "auth", *device, options, std::move(*keys));
    require(bool(made->enable_below()), "AUTH can be enabled");
    protocol = std::move(made);
    user = std::make_unique<User>(host, sent, self, address_of(1 - self));
    ParticipantSet anyone{.protocol = kNumber, .local = {}, .remote = {}};
    require(bool(protocol->open_enable(*user, anyone)), "the user can be enabled");
  }
  Host host;
  std::unique_ptr<FuzzDevice> device;
  std::unique_ptr<User> user;
  std::unique_ptr<Protocol> protocol;
};

class World {
 public:
  /// `kind`: bits that say which hosts have only ChaCha20-Poly1305, which hosts' keys are limited, and whether hosts
  /// may be anywhere.
  explicit World(unsigned kind) {
    for (std::size_t i = 0; i < 2; ++i) {
      const auto ciphers = (kind >> i & 1) != 0 ? kChacha : auth::Ciphers{0xff};
      sides_[i] =
          std::make_unique<Side>(i, ciphers, (kind >> i & 4) != 0, (kind & 16) != 0, clock_, engine_, sent_, wire_);
    }
  }
  ~World() {
    for (const auto& side : sides_) {
      {
        const Shepherd inside(side->host.monitor());
        side->protocol.reset();
        side->user.reset();
        side->device.reset();
      }
      require(side->host.pool().in_use() == 0, "all buffers have been given back");
    }
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void step(Input& input);
  void recover();

 private:
  void push(std::size_t from, std::size_t size);
  /// `from_attacker`: the source is the attacker's address.
  void deliver(std::size_t to, std::span<const std::byte> bytes, std::span<const std::size_t> pieces = {},
               bool from_attacker = false);
  void pass(Duration time);
  void check();

  StepClock clock_;
  NoEngine engine_;
  std::map<std::uint32_t, std::size_t> sent_;
  std::uint32_t numbered_ = 0;
  std::vector<Packet> wire_;
  std::unique_ptr<Side> sides_[2];
};

void World::push(std::size_t from, std::size_t size) {
  Side& side = *sides_[from];
  const Shepherd inside(side.host.monitor());
  ParticipantSet to{.protocol = kNumber, .local = {}, .remote = {}};
  to.remote.host = address_of(1 - from);
  const auto session = side.protocol->open(*side.user, to);
  if (!session) return;  // too many sessions for now
  Message message = Message::make(side.host.pool(), 4 + size);
  require(message.allocated(), "there is a buffer");
  std::ranges::fill(message.bytes(), std::byte{0x5a});
  WireWriter(message.bytes().data()).put(++numbered_);
  sent_.emplace(numbered_, from);
  if ((*session)->push(std::move(message)) != Errc::ok) sent_.erase(numbered_);
}

void World::deliver(std::size_t to, std::span<const std::byte> bytes, std::span<const std::size_t> pieces,
                    bool from_attacker) {
  Side& side = *sides_[to];
  const Shepherd inside(side.host.monitor());
  side.device->arrive(from_attacker ? kAttacker : peer_of(1 - to), 0, bytes, pieces);
}

void World::pass(Duration time) {
  clock_.pass(time);
  for (const auto& side : sides_) {
    const Shepherd inside(side->host.monitor());
    side->host.events().run_due();
  }
}

void World::check() {
  for (const auto& side : sides_) {
    const Shepherd inside(side->host.monitor());
    control::Statistics counted;
    require(control::ask(*side->protocol, counted) == Errc::ok, "AUTH counts");
    require(counted.state <= kPeers && counted.sessions <= kSessions, "AUTH's state keeps to its bounds");
    // Messages that wait for a handshake, for each peer. Nothing else keeps a buffer between two steps.
    require(side->host.pool().in_use() <= kPeers * kPending, "AUTH's messages keep to their bounds");
  }
}

/// Replaces the MAC by a valid one, if it is a handshake packet.
void sign(std::vector<std::byte>& packet) {
  static const auto keys = keys_for("*");
  if (packet.size() < auth::kPrefix) return;
  const auto prefix = auth::decode_prefix(packet.data());
  if (!prefix || prefix->type == auth::Type::data) return;
  const std::size_t size = prefix->type == auth::Type::hello       ? auth::Hello::kSize
                           : prefix->type == auth::Type::challenge ? auth::Challenge::kSize
                                                                   : auth::HelloReply::kSize;
  packet.resize(size);
  const auth::MacKey& key = keys->find(address_of(0))->mac;
  const std::size_t before = size - sizeof(auth::Mac);
  crypto_generichash(reinterpret_cast<unsigned char*>(packet.data() + before), sizeof(auth::Mac),
                     reinterpret_cast<const unsigned char*>(packet.data()), before, key.data(), key.size());
}

void World::step(Input& input) {
  if (wire_.size() > 32) wire_.erase(wire_.begin());
  const std::uint8_t what = input.byte();
  const std::size_t which = wire_.empty() ? 0 : (what >> 4) % wire_.size();
  switch (what % 10) {
    case 0:
    case 1: push(what >> 4 & 1, input.byte()); break;
    case 2:
    case 3: {  // delivers the first packet unchanged
      if (wire_.empty()) break;
      const Packet packet = wire_.front();
      wire_.erase(wire_.begin());
      deliver(1 - packet.from, packet.bytes);
      break;
    }
    case 4: {  // delivers late, early, or again; in pieces; or to its sender
      if (wire_.empty()) break;
      const Packet packet = wire_[which];
      const std::uint8_t how = input.byte();
      const std::array<std::size_t, 2> pieces{input.byte(), input.byte()};
      deliver((how & 1) != 0 ? packet.from : 1 - packet.from, packet.bytes, std::span(pieces).first((how >> 1) % 3),
              (how & 128) != 0);
      break;
    }
    case 5:
      if (!wire_.empty()) wire_.erase(wire_.begin() + static_cast<std::ptrdiff_t>(which));
      break;
    case 6:
    case 7: {  // changes a packet; signs it again, or not
      if (wire_.empty()) break;
      Packet packet = wire_[which];
      const std::uint8_t how = input.byte();
      for (std::size_t changes = how % 4; changes > 0; --changes) {
        const std::size_t at = input.byte() % packet.bytes.size();
        packet.bytes[at] ^= std::byte{input.byte()};
      }
      if ((how & 16) != 0) packet.bytes.resize(input.byte() * 2U);
      if ((how & 32) != 0)
        std::ranges::swap_ranges(std::span(packet.bytes).subspan(0, packet.bytes.size() / 2),
                                 std::span(packet.bytes).subspan(packet.bytes.size() / 2));
      if (what % 10 == 7) sign(packet.bytes);
      deliver((how & 64) != 0 ? packet.from : 1 - packet.from, packet.bytes, {}, (how & 128) != 0);
      break;
    }
    case 8: {  // makes up a packet from any sender
      const std::uint8_t how = input.byte();
      const auto bytes = input.bytes(input.byte());
      std::vector<std::byte> packet(bytes.begin(), bytes.end());
      if ((how & 8) != 0) {
        packet.resize(std::max(packet.size(), auth::kPrefix));
        WireWriter(packet.data())
            .put(static_cast<std::uint8_t>(1 + how % 4))
            .put(auth::kVersion)
            .put(FuzzDevice::peer_host(how >> 4 & 3))
            .put(address_of(how >> 6 & 1));
        if ((how & 128) != 0) sign(packet);
      }
      Side& side = *sides_[how >> 6 & 1];
      const Shepherd inside(side.host.monitor());
      side.device->arrive(how >> 4 & 3, 0, packet);
      break;
    }
    default: {
      const std::uint8_t how = input.byte();
      if (how < 224) {
        pass(std::chrono::microseconds(1ULL << (how % 27)));
      } else {
        Side& side = *sides_[how & 1];
        const Shepherd inside(side.host.monitor());
        control::DropIdle drop;
        require(control::ask(*side.protocol, drop) == Errc::ok, "AUTH can be swept");
      }
    }
  }
  check();
}

/// After the attacker has gone, each host reaches the other within a minute.
void World::recover() {
  for (std::size_t from = 0; from < 2; ++from) {
    const std::size_t before = sides_[1 - from]->user->delivered;
    for (int i = 0; i < 600 && sides_[1 - from]->user->delivered == before; ++i) {
      if (i % 10 == 0) push(from, 16);
      for (int hops = 0; hops < 64 && !wire_.empty(); ++hops) {
        const Packet packet = wire_.front();
        wire_.erase(wire_.begin());
        deliver(1 - packet.from, packet.bytes);
      }
      pass(100ms);
    }
    require(sides_[1 - from]->user->delivered != before, "when the attacker has gone, hosts reach each other");
    wire_.clear();
  }
}

}  // namespace
}  // namespace lrpc::netrpc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lrpc::netrpc::fuzz;
  static const bool repeatable = Random::install();
  lrpc::fuzz::require(repeatable, "libsodium takes a generator");
  Random::state = 0x9e37'79b9'7f4a'7c15;
  lrpc::fuzz::Input input(data, size);
  const std::uint8_t kind = input.byte();
  World world(kind >> 1);
  const bool then_recover = (kind & 1) != 0;
  while (input.more()) world.step(input);
  if (then_recover) world.recover();
  return 0;
}
