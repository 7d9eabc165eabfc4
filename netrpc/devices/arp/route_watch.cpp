#include "netrpc/devices/arp/route_watch.h"

#include "netrpc/devices/arp/rtnetlink_requests.h"
#include "netrpc/src/attempt.h"

namespace lrpc::netrpc {

Result<std::unique_ptr<RouteWatch>> RouteWatch::make(Host& host, UringEngine& engine) {
  std::unique_ptr<RouteWatch> made(new RouteWatch(host, engine));
  auto news = rtnetlink::open_news(RTMGRP_IPV4_ROUTE | RTMGRP_LINK | RTMGRP_IPV4_IFADDR);
  if (!news) return news.error();
  made->news_ = engine.add(host, news.value(), *made);
  return made;
}

/// The kernel removes the routes through a link that goes down, and those from an address that is taken away, without
/// news of these routes (netdevice and inetaddr notifiers, net/ipv4/fib_frontend.c). So news of links and addresses
/// counts as a change of any route.
void RouteWatch::arrived(Message message, std::span<const std::byte> from) noexcept {
  if (!rtnetlink::from_kernel(from) || !message.flatten()) return;
  rtnetlink::messages(message.bytes(), [this](const nlmsghdr& header, std::span<const std::byte> payload) {
    if (const auto route = rtnetlink::decode_route(header.nlmsg_type, payload)) return tell(*route);
    any_changed();
  });
}

void RouteWatch::any_changed() noexcept {
  tell({});
  attempt([&] { host_.events().schedule(again_, kRemoval); });  // without memory, the next news reports it
}

}  // namespace lrpc::netrpc
