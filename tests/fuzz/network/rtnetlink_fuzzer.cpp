// Attacks what takes apart the kernel's answers and news about neighbours and routes.
#include <string>

#include "input.h"
#include "netrpc/arp/rtnetlink.h"

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
  // One payload, however it came.
  lrpc::fuzz::Input input(data, size);
  constexpr std::uint16_t kTypes[] = {RTM_NEWNEIGH, RTM_DELNEIGH, RTM_NEWROUTE};
  const std::uint16_t type = kTypes[input.byte() % std::size(kTypes)];
  attack(type, input.rest());
  return 0;
}
