// The attackers: what they receive and send.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pretence.h"
#include "send_packet.h"
#include "world.h"

namespace lrpc::nameserver {

using fuzz::let_pass;
using namespace std::chrono_literals;

/// Receives all messages to the attacker, and records their ids.
void World::listen(Attacker& attacker) {
  for (int i = 0; i < 64 && anything_from(attacker.socket); ++i) {
    auto message = shim::receive_message(attacker.socket.get(), 0ms);
    if (!message) {
      require(message.code() != Errc::bad_message, "the nameserver says only what it may");
      attacker = {};
      return;
    }
    if (!*message) return;
    BinderMessage& said = **message;
    if (const auto* exported = std::get_if<shim::Exported>(&said.body)) attacker.exports.push_back(exported->export_id);
    if (const auto* asked = std::get_if<shim::BindRequest>(&said.body)) attacker.bindings.push_back(asked->binding_id);
    if (const auto* failed = std::get_if<shim::Failed>(&said.body)) {
      require(failed->text.size() <= shim::kMaxReasonLength && printable(failed->text),
              "a reason is short and printable");
    }
    for (UniqueFd& fd : said.fds) {
      if (attacker.received.size() < 6) attacker.received.push_back(std::move(fd));
    }
  }
}

std::string World::name(Input& input) {
  switch (const std::uint8_t chosen = input.byte(); chosen % 12) {
    case 0:
    case 1: return std::string(kHonestName);
    case 2: return std::string(shim::kNetworkName);
    case 3: return "";
    case 4: return "a@host";
    case 5: return std::string(shim::kMaxNameLength, 'n');
    default: return {'n', static_cast<char>('a' + chosen % 5)};
  }
}

/// A valid message, or an almost valid one.
shim::BinderBody World::body(Input& input, const Attacker& attacker) {
  const auto one_of = [&](const std::vector<std::uint64_t>& known) -> std::uint64_t {
    const std::uint8_t chosen = input.byte();
    // Any id; or one that another peer may have been given, which connected or exported early.
    const auto pair = [](std::uint64_t high, std::uint32_t low) { return high << 32 | low; };
    if (chosen % 8 == 0) {
      const std::uint32_t low = input.four();
      return pair(input.byte(), low);
    }
    if (chosen % 8 == 1) {
      const std::uint8_t serial = input.byte();
      return pair(serial % 8, input.byte() % 8U + 1);
    }
    if (known.empty()) return chosen / 8;
    return known[chosen % known.size()];
  };
  const auto text = [&] {
    const std::size_t size = input.two() % 2048;
    return std::string(size, static_cast<char>(input.byte()));
  };
  const auto interface = [&]() -> shim::OwnedInterfaceId {
    const std::uint8_t chosen = input.byte();
    if (chosen % 4 != 0) return honest_interface();
    return {chosen % 8 == 0 ? "" : "Other", input.byte(), input.byte(), input.byte()};
  };
  switch (input.byte() % 10) {
    case 0:
    case 1: {
      shim::ExportRequest wish;
      wish.name = name(input);
      wish.interface = interface();
      for (std::size_t count = input.byte() % 4; count > 0; --count)
        wish.classes.push_back({input.two(), input.byte() % 3 == 0 ? input.four() : 0, input.byte()});
      if (input.byte() % 2 == 0) wish.text = text();
      if (input.byte() % 4 == 0) wish.descriptors = text();
      return wish;
    }
    case 2: return shim::WithdrawRequest{one_of(attacker.exports)};
    case 3:
    case 4: {
      constexpr std::uint32_t kTimes[] = {0, 1, 50, 3000, 100'000, shim::ImportRequest::kForever};
      shim::ImportRequest wish{.name = name(input),
                               .interface = interface(),
                               .timeout_ms = kTimes[input.byte() % std::size(kTimes)],
                               .gate = static_cast<shim::Gate>(input.byte() % 6)};
      if (input.byte() % 8 == 0) wish.principal = shim::Principal{.host = input.four(), .key = "key"};
      return wish;
    }
    case 5:
    case 6: {
      constexpr Errc kAnswers[] = {
          Errc::ok,           Errc::ok,          Errc::not_permitted, Errc::name_unknown, Errc::limit_reached,
          Errc::system_error, Errc::call_failed, Errc::timed_out};
      const std::uint64_t binding = one_of(attacker.bindings);
      const Errc code = kAnswers[input.byte() % std::size(kAnswers)];
      return shim::BindReply{binding, code, input.byte() % 4 == 0 ? text() : ""};
    }
    case 7: return shim::ListRequest{input.byte() % 2 == 0 ? "" : name(input)};
    case 8: return shim::DescribeRequest{name(input)};
    default:
      switch (input.byte() % 5) {
        case 0: return shim::Bound{};
        case 1: return shim::BindRequest{};
        case 2: return shim::Failed{Errc::limit_reached, text()};
        case 3: return shim::PollerPage{};
        default: return shim::WakeAllocator{};
      }
  }
}

/// The descriptors that a peer may send.
std::vector<UniqueFd> World::descriptors(Input& input, const Attacker& attacker) {
  std::vector<UniqueFd> fds;
  for (std::size_t count = input.byte() % 8; count > 0; --count) {
    int pair[2] = {-1, -1};
    switch (input.byte() % 7) {
      case 0: fds.emplace_back(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING)); break;
      case 1:
        fds.emplace_back(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        ::fcntl(fds.back().get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
        break;
      case 2:
        if (::pipe2(pair, O_CLOEXEC) == 0) {
          fds.emplace_back(pair[0]);
          fds.emplace_back(pair[1]);
        }
        break;
      case 3:
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
          fds.emplace_back(pair[0]);
          ::close(pair[1]);
        }
        break;
      case 4: fds.emplace_back(::open("/dev/null", O_RDWR | O_CLOEXEC)); break;
      case 5: fds.emplace_back(::fcntl(attacker.socket.get(), F_DUPFD_CLOEXEC, 0)); break;  // in flight over itself
      default:
        if (!attacker.received.empty()) fds.emplace_back(::fcntl(attacker.received.back().get(), F_DUPFD_CLOEXEC, 0));
        break;
    }
  }
  return fds;
}

void World::transmit(const Attacker& attacker, std::span<const std::byte> bytes, const std::vector<UniqueFd>& fds) {
  std::vector<int> numbers;
  for (const UniqueFd& fd : fds) numbers.push_back(fd.get());
  (void)testing_lrpc::send_packet(attacker.socket.get(), bytes, numbers, MSG_DONTWAIT);
}

void World::say(Input& input, Attacker& attacker) {
  const std::uint8_t how = input.byte();
  std::vector<std::byte> bytes;
  if (how % 8 == 0) {
    const auto raw = input.bytes(input.two() % 512);
    bytes.assign(raw.begin(), raw.end());
  } else {
    auto encoded = shim::encode({input.byte(), body(input, attacker), {}, {}});
    if (!encoded) return;
    bytes = *std::move(encoded);
    if (how % 8 == 1 && !bytes.empty()) bytes[input.two() % bytes.size()] = static_cast<std::byte>(input.byte());
    if (how % 8 == 2) bytes.resize(input.two() % (bytes.size() + 8));
  }
  transmit(attacker, bytes, how >= 0xe0 ? descriptors(input, attacker) : std::vector<UniqueFd>());
}

void World::act(Input& input) {
  const std::uint8_t action = input.byte();
  Attacker& attacker = attackers_[(action >> 4) % kSlots];
  if (!attacker.socket) {
    attacker = {};
    attacker.socket = connect(kAttackers[(action >> 4) % std::size(kAttackers)]);
  }
  switch (action & 0xf) {
    case 0:
    case 1: attacker = {}; break;
    case 2: ::shutdown(attacker.socket.get(), input.byte() % 2 == 0 ? SHUT_WR : SHUT_RD); break;
    case 3: {
      if (asked_ != 0) bind_honestly();  // before time passes: its answer has a limit, too
      constexpr std::chrono::milliseconds kTimes[] = {1ms, 10ms, 60ms, 1000ms, 6000ms};
      let_pass(kTimes[input.byte() % std::size(kTimes)]);
      step();
      break;
    }
    case 4: bind_honestly(); break;
    case 5:
    case 6: listen(attacker); break;
    case 7: action < 0x80 ? void(step()) : ask_honestly(); break;
    case 8: settle(); break;
    default: say(input, attacker); break;
  }
}

}  // namespace lrpc::nameserver
