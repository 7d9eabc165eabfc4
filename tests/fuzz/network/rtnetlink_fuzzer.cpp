// Attacks the decoder of the kernel's answers and news about neighbours, routes, links and addresses.
#include <string>

#include "input.h"
#include "netrpc/devices/arp/rtnetlink.h"
#include "netrpc/devices/link/link_state.h"

namespace lrpc::netrpc {
namespace {

using lrpc::fuzz::require;

bool inside(std::span<const std::byte> part, std::span<const std::byte> whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void attack(std::uint16_t type, std::span<const std::byte> payload) {
  rtnetlink::attributes(payload, [&](std::uint16_t, std::span<const std::byte> value) {
    require(inside(value, payload), "an attribute lies in its message");
  });
  (void)rtnetlink::direct_route(type, payload, 3);
  if (const auto route = rtnetlink::decode_route(type, payload)) {
    require(payload.size() >= sizeof(rtmsg) && route->length <= 32, "a route has a header and a length");
    (void)route->leads_to({0x0a000001});
  }
  if (const auto link = rtnetlink::decode_link(type, payload)) {
    require(payload.size() >= sizeof(ifinfomsg) && link->index > 0, "a link has a header and an index");
    require(link->name.back() == '\0', "a link's name ends");
    LinkState state({.name = "eth0", .index = 3, .ethernet = {}, .host = {}, .mtu = 1500}, {});
    (void)describe(state.heard(*link), "eth0", state);
    (void)describe(state.heard(*link), state.link().name, state);
    require(!state.heard(*link).any() || state.link().index == 0, "news that is heard again changes nothing");
  }
  if (rtnetlink::decode_address(type, payload)) require(payload.size() >= sizeof(ifaddrmsg), "an address has a header");
  const auto neighbour = rtnetlink::decode_neighbour(type, payload);
  if (!neighbour) return;
  require(payload.size() >= sizeof(ndmsg), "a neighbour has a header");
  require(!neighbour->usable() || (!neighbour->removed && neighbour->ethernet.known()),
          "what can be sent to has an address");
}

}  // namespace
}  // namespace lrpc::netrpc

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lrpc::netrpc;
  const auto bytes = std::as_bytes(std::span(data, size));
  std::size_t seen = 0;
  rtnetlink::messages(bytes, [&](const nlmsghdr& header, std::span<const std::byte> payload) {
    require(inside(payload, bytes) && payload.size() == header.nlmsg_len - sizeof header, "a message has its length");
    seen += header.nlmsg_len;
    require(seen <= bytes.size(), "messages do not overlap");
    attack(header.nlmsg_type, payload);
  });
  // The input as one payload, without message headers.
  lrpc::fuzz::Input input(data, size);
  constexpr std::uint16_t kTypes[] = {RTM_NEWNEIGH, RTM_DELNEIGH, RTM_NEWROUTE, RTM_NEWLINK,
                                      RTM_DELLINK,  RTM_NEWADDR,  RTM_DELADDR};
  const std::uint16_t type = kTypes[input.byte() % std::size(kTypes)];
  attack(type, input.rest());
  return 0;
}
