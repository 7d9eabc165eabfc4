#include "netrpc/devices/arp/neighbours.h"

#include <sys/socket.h>

#include <cerrno>

#include "netrpc/devices/arp/rtnetlink.h"
#include "netrpc/devices/device/internet_address.h"
#include "netrpc/src/attempt.h"

namespace lrpc::netrpc {

namespace {

/// One request with a 32-bit address as its attribute.
template <class Body>
struct RequestOfHost : rtnetlink::Request<Body> {
  rtattr attribute{};
  std::uint32_t address = 0;
};

template <class Body>
RequestOfHost<Body> request_for(std::uint16_t type, std::uint16_t attribute, HostAddress host) noexcept {
  static_assert(sizeof(RequestOfHost<Body>) == NLMSG_ALIGN(sizeof(Body)) + sizeof(nlmsghdr) + sizeof(rtattr) + 4);
  RequestOfHost<Body> request;
  request.header.nlmsg_type = type;
  request.attribute = {static_cast<unsigned short>(RTA_LENGTH(4)), attribute};
  request.address = htonl(host.value);
  return request;
}

}  // namespace

Result<std::unique_ptr<Neighbours>> Neighbours::make(Host& host, UringEngine& engine, Asker& asker, int interface) {
  std::unique_ptr<Neighbours> made(new Neighbours(host, engine, asker, interface));
  made->discard_ = UniqueFd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made->discard_) return system_error("socket(AF_INET)", errno);
  auto news = rtnetlink::open_news(1U << (RTNLGRP_NEIGH - 1));
  if (!news) return news.error();
  made->news_ = engine.add(host, news.value(), *made);
  auto routes = RouteWatch::make(host, engine);
  if (!routes) return routes.error();
  made->routes_ = std::move(routes).value();
  made->routes_->changed = [it = made.get()](const rtnetlink::RouteNews& route) { it->route_changed(route); };
  rtnetlink::Requests kernel;
  if (auto opened = kernel.open(); !opened) return opened.error();
  made->found_all(all(kernel));
  return made;
}

void Neighbours::use_interface(int index) noexcept {
  interface_ = index;
  hosts_.clear();
  ethernets_.clear();
  silent_.clear();
  ++changes_;
}

std::optional<Neighbours::Found> Neighbours::find(rtnetlink::Requests& kernel, HostAddress host,
                                                  int interface) noexcept {
  Found found;
  auto route = request_for<rtmsg>(RTM_GETROUTE, RTA_DST, host);
  route.body.rtm_family = AF_INET;
  route.body.rtm_dst_len = 32;
  const int no_route = kernel.ask(route, [&](std::uint16_t type, std::span<const std::byte> payload) {
    found.on_link = rtnetlink::direct_route(type, payload, interface);
  });
  if (no_route != 0 && !means_no_route(no_route)) return std::nullopt;
  if (!found.on_link) return found;
  auto entry = request_for<ndmsg>(RTM_GETNEIGH, NDA_DST, host);
  entry.body.ndm_family = AF_INET;
  entry.body.ndm_ifindex = interface;
  const int no_entry = kernel.ask(entry, [&](std::uint16_t type, std::span<const std::byte> payload) {
    const auto neighbour = rtnetlink::decode_neighbour(type, payload);
    if (neighbour && neighbour->usable()) found.ethernet = neighbour->ethernet;
  });
  if (no_entry != 0) found.ethernet = {};
  return found;
}

Neighbours::Table Neighbours::all(rtnetlink::Requests& kernel) {
  rtnetlink::Request<ndmsg> wanted;
  wanted.header.nlmsg_type = RTM_GETNEIGH;
  wanted.header.nlmsg_flags = NLM_F_DUMP;
  wanted.body.ndm_family = AF_INET;
  Table table;
  table.reserve(kRemembered);  // so that nothing throws within ask()
  (void)kernel.ask(wanted, [&table](std::uint16_t type, std::span<const std::byte> payload) {
    if (const auto neighbour = rtnetlink::decode_neighbour(type, payload); neighbour && table.size() < kRemembered)
      table.push_back(*neighbour);
  });
  return table;
}

void Neighbours::nudge(HostAddress host) noexcept {
  const sockaddr_in discard = socket_address(host, 9);
  (void)::sendto(discard_.get(), nullptr, 0, 0, reinterpret_cast<const sockaddr*>(&discard), sizeof discard);
}

Errc Neighbours::resolve(HostAddress host, EthernetAddress& ethernet) noexcept {
  if (!host.known()) return Errc::host_unreachable;
  if (Known* const known = hosts_.resolve(key(host)); known != nullptr) {
    if (!known->routed_here) ask_for(host, known->question);
    ethernet = known->ethernet;
    return Errc::ok;
  }
  attempt([&] {  // without memory, the next message asks
    Silent* silent = silent_.resolve(key(host));
    if (silent == nullptr && silent_.size() >= kRemembered) {
      silent_.clear();
      host_.peers().path_changed();
    }
    if (silent == nullptr) silent = &silent_.bind(key(host), {});
    ask_for(host, silent->question);
  });
  return Errc::host_unreachable;
}

bool Neighbours::may_answer(HostAddress host) noexcept {
  const Silent* const silent = silent_.resolve(key(host));
  return silent != nullptr && !silent->absent;
}

bool Neighbours::routed_away(HostAddress host) noexcept {
  const Silent* const silent = silent_.resolve(key(host));
  return silent != nullptr && silent->away;
}

bool Neighbours::routed_here(HostAddress host) noexcept {
  const Known* const known = hosts_.resolve(key(host));
  return known != nullptr && known->routed_here;
}

/// Until the answer comes, what is known about the host stays: an absent host stays absent.
void Neighbours::ask_for(HostAddress host, Question& question) noexcept {
  if (host_.now() < question.again) return;
  question = {.again = host_.now() + kRetry, .number = ++questions_};
  attempt([&] {  // without memory: as if the answer were lost
    (void)asker_.ask([this, host, number = question.number, interface = interface_](rtnetlink::Requests& kernel) {
      return [this, host, number, answer = find(kernel, host, interface)] {
        if (answer) found(host, number, *answer);
      };
    });
  });
}

void Neighbours::found(HostAddress host, std::uint64_t question, const Found& found) noexcept {
  if (Known* const known = hosts_.resolve(key(host)); known != nullptr) {
    if (known->question.number != question) return;
    known->routed_here = found.on_link;
    if (!found.on_link) leave_to_routes(host);
    return;
  }
  Silent* const silent = silent_.resolve(key(host));
  if (silent == nullptr || silent->question.number != question) return;
  silent->question.number = 0;
  silent->absent = silent->away = !found.on_link;
  if (found.ethernet.known()) return remember(host, found.ethernet);
  if (found.on_link) nudge(host);
}

void Neighbours::leave_to_routes(HostAddress host) noexcept {
  forget(host);
  const Silent away{.question = {.again = host_.now() + kRetry}, .absent = true, .away = true};
  attempt([&] { silent_.bind(key(host), away); });  // without memory, the next message asks
  host_.peers().path_changed(host);
}

void Neighbours::route_changed(const rtnetlink::RouteNews& route) noexcept {
  bool known = false;
  hosts_.for_each([&](const HostKey& host, Known& found) {
    if (!route.leads_to(host.host)) return;
    found.routed_here = false;
    found.question = {};
    known = true;
  });
  if (known) ++changes_;
  silent_.for_each([&](const HostKey& host, Silent& silent) {
    if (!route.leads_to(host.host)) return;
    silent = {};
    host_.peers().path_changed(host.host);
  });
}

Errc Neighbours::resolve_reverse(EthernetAddress ethernet, HostAddress& host) noexcept {
  const HostAddress* const known = ethernets_.resolve(key(ethernet));
  if (known == nullptr) {
    if (host_.now() >= may_ask_for_all_) ask_for_all();
    return Errc::host_unreachable;
  }
  host = *known;
  return Errc::ok;
}

/// An answer for which there was no memory never comes: then asks again, kRetry later than otherwise.
void Neighbours::ask_for_all() noexcept {
  if (asking_for_all_ && host_.now() < may_ask_for_all_ + kRetry) return;
  may_ask_for_all_ = host_.now() + kDumpPause;
  told_of_.clear();
  attempt([&] {
    asking_for_all_ = asker_.ask([this](rtnetlink::Requests& kernel) {
      return [this, table = all(kernel)] {
        asking_for_all_ = false;
        found_all(table);
      };
    });
  });
}

void Neighbours::found_all(const Table& table) noexcept {
  for (const rtnetlink::Neighbour& neighbour : table)
    if (neighbour.interface == interface_ && neighbour.host.known() && neighbour.usable() &&
        told_of_.resolve(key(neighbour.host)) == nullptr)
      remember(neighbour.host, neighbour.ethernet);
  told_of_.clear();
}

void Neighbours::learn(const rtnetlink::Neighbour& neighbour, bool believed) noexcept {
  if (neighbour.interface != interface_ || !neighbour.host.known()) return;
  if (asking_for_all_ && told_of_.size() < kRemembered)
    // Without memory, ARP corrects an outdated address when the host falls silent.
    attempt([&] { told_of_.bind(key(neighbour.host), {}); });
  if (believed && neighbour.usable()) return remember(neighbour.host, neighbour.ethernet);
  const bool failed = (neighbour.state & NUD_FAILED) != 0;
  if (Silent* const silent = silent_.resolve(key(neighbour.host)); silent != nullptr) {
    if (failed) silent->absent = true;
    if (silent->question.number != 0) {
      silent->question = {};
      host_.peers().path_changed(neighbour.host);
    }
  }
  if (!believed || neighbour.removed || failed) forget(neighbour.host);
  if (!believed && neighbour.usable()) no_longer_silent(neighbour.host);
}

void Neighbours::remember(HostAddress host, const EthernetAddress& ethernet) noexcept {
  if (routed_away(host)) return;
  if (hosts_.size() >= kRemembered || ethernets_.size() >= kRemembered) {
    hosts_.clear();
    ethernets_.clear();
    ++changes_;
  }
  const Known* const before = hosts_.resolve(key(host));
  const bool fresh = before == nullptr || before->ethernet != ethernet;
  Known known = before != nullptr ? *before : Known{};
  known.ethernet = ethernet;
  if (before != nullptr && fresh) forget(host);
  attempt([&] {
    hosts_.bind(key(host), known);
    ethernets_.bind(key(ethernet), host);
  });
  no_longer_silent(host);
  if (fresh && resolved) resolved(host);
}

void Neighbours::forget(HostAddress host) noexcept {
  const Known* const known = hosts_.resolve(key(host));
  if (known == nullptr) return;
  ethernets_.unbind(key(known->ethernet), host);
  hosts_.unbind(key(host));
  ++changes_;
}

void Neighbours::arrived(Message message, std::span<const std::byte> from) noexcept {
  if (!rtnetlink::from_kernel(from) || !message.flatten()) return;
  const bool believed = host_.now() >= believes_from_;
  rtnetlink::messages(message.bytes(), [this, believed](const nlmsghdr& header, std::span<const std::byte> payload) {
    if (const auto neighbour = rtnetlink::decode_neighbour(header.nlmsg_type, payload)) learn(*neighbour, believed);
  });
}

/// The lost news may be that an address has changed, or that a host has answered: asks the kernel again for every host.
/// Hosts to which routes lead another way stay so: the news of routes has its own socket.
void Neighbours::receive_failed(int /*error*/) noexcept {
  hosts_.clear();
  ethernets_.clear();
  silent_.unbind_if([](const HostKey&, const Silent& silent) { return !silent.away; });
  host_.peers().path_changed();
  ++changes_;
  believes_from_ = host_.now() + rtnetlink::kOldNews;
  ask_for_all();
}

}  // namespace lrpc::netrpc
