#include "netrpc/arp/neighbours.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>

#include "netrpc/arp/rtnetlink.h"

namespace lrpc::netrpc {

namespace {

/// One request with a 32-bit address as its attribute.
template <class Body>
struct Request {
  nlmsghdr header{};
  Body body{};
  rtattr attribute{};
  std::uint32_t address = 0;
};
struct DumpRequest {
  nlmsghdr header{};
  ndmsg body{};
};

template <class Body>
Request<Body> request_for(std::uint16_t type, std::uint16_t attribute, HostAddress host) noexcept {
  static_assert(sizeof(Request<Body>) == NLMSG_ALIGN(sizeof(Body)) + sizeof(nlmsghdr) + sizeof(rtattr) + 4);
  Request<Body> request;
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = type;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.attribute = {static_cast<unsigned short>(RTA_LENGTH(4)), attribute};
  request.address = htonl(host.value);
  return request;
}

}  // namespace

Result<std::unique_ptr<Neighbours>> Neighbours::make(Host& host, UringEngine& engine, int interface) {
  std::unique_ptr<Neighbours> made(new Neighbours(host, engine, interface));
  if (auto opened = made->requests_.open(); !opened) return opened.error();
  auto news = rtnetlink::open_news(1U << (RTNLGRP_NEIGH - 1));
  if (!news) return news.error();
  made->news_ = engine.add(host, news.value(), *made);
  made->watching_ = true;
  return made;
}

Neighbours::~Neighbours() {
  if (watching_) engine_.remove(news_);
}

void Neighbours::use_interface(int index) noexcept {
  interface_ = index;
  hosts_.clear();
  ethernets_.clear();
  silent_.clear();
  ++changes_;
}

bool Neighbours::on_link(HostAddress host) noexcept {
  auto wanted = request_for<rtmsg>(RTM_GETROUTE, RTA_DST, host);
  wanted.body.rtm_family = AF_INET;
  wanted.body.rtm_dst_len = 32;
  bool direct = false;
  return requests_.ask(wanted,
                       [&](std::uint16_t type, std::span<const std::byte> payload) {
                         direct = rtnetlink::direct_route(type, payload, interface_);
                       }) == 0 &&
         direct;
}

Neighbours::Known Neighbours::ask(HostAddress host, EthernetAddress& ethernet) noexcept {
  auto wanted = request_for<ndmsg>(RTM_GETNEIGH, NDA_DST, host);
  wanted.body.ndm_family = AF_INET;
  wanted.body.ndm_ifindex = interface_;
  Known known = Known::no;
  if (requests_.ask(wanted, [&](std::uint16_t type, std::span<const std::byte> payload) {
        const auto neighbour = rtnetlink::decode_neighbour(type, payload);
        if (!neighbour || neighbour->removed) return;
        if ((neighbour->state & NUD_FAILED) != 0) known = Known::failed;
        if (!neighbour->usable()) return;
        ethernet = neighbour->ethernet;
        known = Known::yes;
      }) != 0)
    return Known::no;
  return known;
}

void Neighbours::nudge(HostAddress host) noexcept {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return;
  sockaddr_in discard{};
  discard.sin_family = AF_INET;
  discard.sin_port = htons(9);
  discard.sin_addr.s_addr = htonl(host.value);
  (void)::sendto(socket, nullptr, 0, 0, reinterpret_cast<const sockaddr*>(&discard), sizeof discard);
  ::close(socket);
}

Errc Neighbours::resolve(HostAddress host, EthernetAddress& ethernet) noexcept {
  return resolve(host, ethernet, Patience::none);
}

Errc Neighbours::resolve_waiting(HostAddress host, EthernetAddress& ethernet) noexcept {
  return resolve(host, ethernet, Patience::some);
}

Errc Neighbours::resolve(HostAddress host, EthernetAddress& ethernet, Patience patience) noexcept {
  if (!host.known()) return Errc::host_unreachable;
  const HostKey key{host.value};
  if (const EthernetAddress* const known = hosts_.resolve(key); known != nullptr) {
    ethernet = *known;
    return Errc::ok;
  }
  const Time now = host_.now();
  if (const Time* const until = silent_.resolve(key); until != nullptr && now < *until) return Errc::host_unreachable;
  if (!on_link(host)) return Errc::host_unreachable;
  EthernetAddress found;
  Known known = ask(host, found);
  if (known != Known::yes && patience == Patience::none) {
    nudge(host);
  } else if (known != Known::yes && now >= may_wait_) {
    may_wait_ = now + kPause;
    nudge(host);
    known = wait_for(host, found, now);
  }
  if (known != Known::yes) {
    remember_silent(host, now + kRetry);
    return Errc::host_unreachable;
  }
  remember(host, found);
  ethernet = found;
  return Errc::ok;
}

/// A neighbour that is there answers within a fraction of a millisecond.
Neighbours::Known Neighbours::wait_for(HostAddress host, EthernetAddress& ethernet, Time since) noexcept {
  Known known = Known::no;
  Duration nap = std::chrono::microseconds(50);
  do {
    std::this_thread::sleep_for(nap);
    nap = std::min<Duration>(nap * 2, std::chrono::milliseconds(2));
    known = ask(host, ethernet);
  } while (known != Known::yes && host_.now() - since < kPatience);
  return known;
}

Errc Neighbours::resolve_reverse(EthernetAddress ethernet, HostAddress& host) noexcept {
  const HostKey key{ethernet.number()};
  const HostAddress* known = ethernets_.resolve(key);
  if (known == nullptr && host_.now() >= may_dump_) {
    may_dump_ = host_.now() + kPause / 10;
    dump();
    known = ethernets_.resolve(key);
  }
  if (known == nullptr) return Errc::host_unreachable;
  host = *known;
  return Errc::ok;
}

void Neighbours::dump() noexcept {
  DumpRequest wanted;
  wanted.header.nlmsg_len = sizeof wanted;
  wanted.header.nlmsg_type = RTM_GETNEIGH;
  wanted.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  wanted.body.ndm_family = AF_INET;
  (void)requests_.ask(wanted,
                      [this](std::uint16_t type, std::span<const std::byte> payload) { learn(type, payload, true); });
}

void Neighbours::learn(std::uint16_t type, std::span<const std::byte> payload, bool believed) noexcept {
  const auto neighbour = rtnetlink::decode_neighbour(type, payload);
  if (!neighbour || neighbour->interface != interface_ || !neighbour->host.known()) return;
  if (believed && neighbour->usable()) {
    remember(neighbour->host, neighbour->ethernet);
  } else if (!believed || neighbour->removed || (neighbour->state & NUD_FAILED) != 0) {
    forget(neighbour->host);
  }
}

void Neighbours::remember(HostAddress host, const EthernetAddress& ethernet) noexcept {
  if (hosts_.size() >= kRemembered || ethernets_.size() >= kRemembered) {
    hosts_.clear();
    ethernets_.clear();
    ++changes_;
  }
  if (const EthernetAddress* const before = hosts_.resolve({host.value}); before != nullptr && *before != ethernet)
    forget(host);
  try {
    hosts_.bind({host.value}, ethernet);
    ethernets_.bind({ethernet.number()}, host);
  } catch (const std::bad_alloc&) {
  }
  if (silent_.unbind({host.value})) host_.peers().path_changed();
}

void Neighbours::remember_silent(HostAddress host, Time until) noexcept {
  if (silent_.size() >= kRemembered) silent_.clear();
  try {
    silent_.bind({host.value}, until);
  } catch (const std::bad_alloc&) {
  }
}

void Neighbours::forget(HostAddress host) noexcept {
  const EthernetAddress* const known = hosts_.resolve({host.value});
  if (known == nullptr) return;
  const HostKey key{known->number()};
  if (const HostAddress* const same = ethernets_.resolve(key); same != nullptr && *same == host) ethernets_.unbind(key);
  hosts_.unbind({host.value});
  ++changes_;
}

void Neighbours::arrived(Message message, std::span<const std::byte> from) noexcept {
  if (!rtnetlink::from_kernel(from) || !message.flatten()) return;
  const bool believed = host_.now() >= believes_from_;
  rtnetlink::messages(message.bytes(), [this, believed](const nlmsghdr& header, std::span<const std::byte> payload) {
    learn(header.nlmsg_type, payload, believed);
  });
}

/// The news of an address that has changed may be among what was lost: the kernel is asked again for every host.
void Neighbours::receive_failed(int /*error*/) noexcept {
  hosts_.clear();
  ethernets_.clear();
  ++changes_;
  believes_from_ = host_.now() + kOldNews;
}

}  // namespace lrpc::netrpc
