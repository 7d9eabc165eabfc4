// Attacks the decoder of ARP packets. Encoding an accepted packet again gives the same bytes.
#include <algorithm>
#include <array>

#include "input.h"
#include "netrpc/devices/arp/arp_packet.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lrpc::netrpc;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto packet = arp::decode(bytes);
  if (!packet) return 0;
  std::array<std::byte, arp::kPacket> again{};
  arp::encode(*packet, again.data());
  lrpc::fuzz::require(std::ranges::equal(again, bytes.first(arp::kPacket)),
                      "decoding and encoding give the same bytes");
  return 0;
}
