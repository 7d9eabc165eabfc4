#include "netrpc/devices/arp/arp_sender.h"

#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "netrpc/src/attempt.h"

namespace lrpc::netrpc {

namespace {

/// Makes the kernel deliver only packets whose sender claims `own`, so that all others on the link cost nothing here.
bool take_claims_only(int fd, HostAddress own) noexcept {
  constexpr std::uint32_t kSenderHost = 14;
  std::array<sock_filter, 4> program{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSenderHost),
                                      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, own.value, 0, 1),
                                      BPF_STMT(BPF_RET | BPF_K, 64), BPF_STMT(BPF_RET | BPF_K, 0)}};
  const sock_fprog filter{program.size(), program.data()};
  return ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0;
}

}  // namespace

Result<std::unique_ptr<ArpSender>> ArpSender::make(Host& host, UringEngine& engine, LinkWatch& watch) {
  std::unique_ptr<ArpSender> made;
  if (!host.address().known()) return made;
  // Protocol 0 first, so that nothing arrives before the filter is there.
  UniqueFd socket(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket && (errno == EPERM || errno == EACCES)) return made;
  if (!socket) return system_error("socket(AF_PACKET)", errno);
  const sockaddr_ll address = link_address(watch.link().index, ETH_P_ARP);
  if (!take_claims_only(socket.get(), host.address()) ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return system_error("bind(AF_PACKET)", errno);
  made.reset(new ArpSender(host, engine, watch));
  made->socket_ = engine.add(host, socket.release(), *made);
  made->begin();
  return made;
}

void ArpSender::link_changed(const LinkChange& change) noexcept {
  if (change.back || change.ethernet) {
    const sockaddr_ll address = link_address(watch_.link().index, ETH_P_ARP);
    (void)::bind(engine_.descriptor(socket_), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  // An announcement tells neighbours this host's new Ethernet address.
  const bool plugged_in = change.came_up && host_.now() - began_ >= arp::OwnAddress::kDefendPause;
  if (change.back || change.ethernet || change.address_back || plugged_in) begin();
  if (change.ethernet && !change.back && own_.undisputed(host_.now())) announce();
}

void ArpSender::begin() noexcept {
  began_ = host_.now();
  own_.begin();
  tick_after(Duration(0));
}

/// Without memory nothing more is sent until the next begin().
void ArpSender::tick_after(Duration pause) noexcept {
  attempt([&] { host_.events().schedule(tick_, pause); });
}

void ArpSender::tick() noexcept {
  const arp::OwnAddress::Action action = own_.tick(host_.now());
  if (action.probe && watch_.has_own_address()) ask_for(host_.address(), {}, kEthernetBroadcast);
  if (action.announce) announce();
  if (const Duration pause = own_.pause(); pause != Duration(0)) tick_after(pause);
}

void ArpSender::ask_for(HostAddress host, HostAddress sender, const EthernetAddress& to) noexcept {
  Message message(host_.pool());
  std::byte* const at = message.push(arp::kPacket);
  if (at == nullptr) return;  // as if it were lost
  arp::encode(
      {.reply = false, .sender = watch_.link().ethernet, .sender_host = sender, .target = {}, .target_host = host}, at);
  const sockaddr_ll address = link_address(watch_.link().index, ETH_P_ARP, to);
  engine_.send(socket_, std::move(message), std::as_bytes(std::span(&address, 1)));
}

void ArpSender::doubt(HostAddress neighbour, const EthernetAddress& ethernet) noexcept {
  if (!watch_.has_own_address()) return;  // the request would claim the address
  switch (confirmations_.doubted(neighbour, host_.now())) {
    case arp::Confirmations::Poll::none: return;
    case arp::Confirmations::Poll::unicast: return ask_for(neighbour, host_.address(), ethernet);
    case arp::Confirmations::Poll::broadcast: return ask_for(neighbour, host_.address(), kEthernetBroadcast);
  }
}

/// The sender may be another link of this machine: asks the kernel, at most once in kAskPause.
void ArpSender::claimed(const EthernetAddress& sender) noexcept {
  const Time now = host_.now();
  if (now < may_ask_ || (sender == ours_ && now < ours_until_)) return;
  may_ask_ = now + kAskPause;
  attempt([&] {  // without memory, the next claim asks
    watch_.ask_whether_ours(sender, [this, sender](bool ours) {
      if (!ours) return claimed_by_another(sender);
      ours_ = sender;
      ours_until_ = host_.now() + kOursFor;
    });
  });
}

void ArpSender::arrived(Message message, std::span<const std::byte> /*from*/) noexcept {
  if (!message.flatten()) return;
  const auto packet = arp::decode(message.bytes());
  if (!packet || packet->sender_host != host_.address() || packet->sender == watch_.link().ethernet) return;
  if (watch_.has_own_address()) claimed(packet->sender);
}

void ArpSender::claimed_by_another(const EthernetAddress& sender) noexcept {
  const arp::OwnAddress::Action action = own_.claimed(host_.now());
  if (action.announce) announce();
  if (action.report)
    host_.notice([&] {
      return fmt::format(
          "{} is the address of another machine, too, which has the Ethernet address {} on link {}: "
          "calls of both may fail until one of them has another address",
          to_string(host_.address()), to_string(sender), watch_.link().name);
    });
}

}  // namespace lrpc::netrpc
