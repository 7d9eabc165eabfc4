#include "resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "lrpc/detail/shim/system/lack.h"

namespace lrpc::netpath {
namespace {

/// Why getaddrinfo(3) has failed with `err`, and errno with it.
Error not_found(const std::string& host, int err) {
  const int error = err == EAI_SYSTEM ? errno : 0;
  if (err == EAI_MEMORY || shim::is_lack(error))
    return {Errc::limit_reached, "host '" + host + "' cannot be looked up, for this machine's network domain is at a " +
                                     "limit of its own: " + std::strerror(error != 0 ? error : ENOMEM)};
  return {Errc::remote_unavailable, "no IPv4 address is known for host '" + host +
                                        "': " + (err == EAI_SYSTEM ? std::strerror(error) : gai_strerror(err))};
}

Result<HostAddress> looked_up(const std::string& host) {
  in_addr dotted{};
  if (inet_pton(AF_INET, host.c_str(), &dotted) == 1) return HostAddress{ntohl(dotted.s_addr)};
  if (host.find(':') != std::string::npos)
    return Error{Errc::invalid_argument, "host '" + host + "' looks like an IPv6 address, and there is IPv4 only"};
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int err = getaddrinfo(host.c_str(), nullptr, &hints, &found); err != 0) return not_found(host, err);
  sockaddr_in address{};
  std::memcpy(&address, found->ai_addr, sizeof address);
  freeaddrinfo(found);
  return HostAddress{ntohl(address.sin_addr.s_addr)};
}

}  // namespace

Result<HostAddress> resolve(const std::string& host) {
  auto address = looked_up(host);
  if (address && *address >> 28 == 0xe)
    return Error{Errc::invalid_argument, "host '" + host + "' is a multicast address, and no host"};
  return address;
}

}  // namespace lrpc::netpath
