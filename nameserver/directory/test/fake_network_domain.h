// A network domain that only says what it exports, and this machine's address.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "etcd/published_name.h"
#include "network_path.server.h"

namespace lrpc::directory::test {

namespace network = netpath::NetworkPath;

/// Exports all names but "secret", at `address`.
class FakeNetworkDomain {
 public:
  struct Path {};
  Result<network::BindResults, network::Refused, network::DeclarationWanted> Bind(
      CallContext&, const String<255>&, const String<255>&, const String<255>&, std::uint16_t, std::uint16_t,
      std::uint64_t, std::uint32_t, std::uint32_t, const String<255>&, std::uint32_t, const String<255>&) {
    return Errc::not_supported;
  }
  Result<network::Path, network::Refused> BindDeclared(CallContext&, const String<255>&, const String<255>&,
                                                       std::uint32_t, std::span<const std::byte>) {
    return Errc::not_supported;
  }
  network::CallResults Call(CallContext&, Path&, std::uint16_t, std::uint32_t, std::span<const std::byte>, Buffer&) {
    return {};
  }
  network::CallAllResults CallAll(CallContext&, Path&, std::uint16_t, std::uint32_t, std::span<const std::byte>,
                                  Buffer&) {
    return {};
  }
  network::ExportsResults Exports(CallContext&, const String<255>& name) {
    const std::string text = name.str();
    return {.exported = text != "secret" && !text.starts_with(shim::kOwnPrefix), .address = address};
  }
  void Groups(CallContext&, std::uint64_t, Buffer&) {}
  void Send(CallContext&, Path&, std::uint16_t, std::span<const std::byte>) {}

  std::atomic<std::uint32_t> address = *parse_host("10.0.0.1");
};

}  // namespace lrpc::directory::test
