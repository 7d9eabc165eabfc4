#include "lrpc/netrpc/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include "lrpc/netrpc/participant_set.h"

namespace lrpc::netrpc {

std::string to_string(HostAddress host) {
  if (!host.known()) return "?";
  return fmt::format("{}.{}.{}.{}", host.value >> 24, host.value >> 16 & 0xff, host.value >> 8 & 0xff,
                     host.value & 0xff);
}

std::string to_string(const EthernetAddress& address) {
  const auto& b = address.bytes;
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", b[0], b[1], b[2], b[3], b[4], b[5]);
}

std::optional<HostAddress> parse_host(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return std::nullopt;  // would end the text for inet_pton()
  in_addr parsed{};
  if (inet_pton(AF_INET, std::string(text).c_str(), &parsed) != 1) return std::nullopt;
  return HostAddress{ntohl(parsed.s_addr)};
}

std::string why_no_host(std::string_view text) {
  if (text.find(':') != std::string_view::npos)
    return fmt::format("'{}' looks like an IPv6 address, and there is IPv4 only: give one like 10.0.0.1", text);
  return fmt::format("'{}' is not an address like 10.0.0.1", text);
}

std::string to_string(const ParticipantSet& participants) {
  std::string text = fmt::format("{} {} -> {}", participants.protocol, to_string(participants.local.host),
                                 to_string(participants.remote.host));
  if (participants.remote.port != 0) text += fmt::format(":{}", participants.remote.port);
  return text;
}

}  // namespace lrpc::netrpc
