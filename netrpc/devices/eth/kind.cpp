#include "netrpc/devices/eth/eth.h"

namespace lrpc::netrpc {

ProtocolKind eth_kind() {
  ProtocolKind kind;
  kind.name = "ETH";
  kind.summary = "messages in Ethernet frames, to hosts on the same link; needs CAP_NET_RAW";
  kind.gives = Service::datagram;
  kind.options = {
      {"interface", OptionType::text, "the network interface; default: that of the default route, or the only one"},
      {"types", OptionType::number, "the ethertype of protocol number 0; default 42752 (0xa700)", false, "0", "65535"},
      {"peers", OptionType::number, "sessions at one time; default 4096", false, "1"},
  };
  kind.make = [](const InstanceParts& parts) {
    EthOptions options;
    options.interface = parts.options.text("interface");
    options.types = static_cast<std::uint32_t>(parts.options.number("types", options.types));
    options.peers = parts.options.number("peers", options.peers);
    return make_eth(parts.host, parts.name, options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
