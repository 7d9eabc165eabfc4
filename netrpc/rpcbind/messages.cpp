#include "netrpc/rpcbind/messages.h"

#include <fmt/format.h>

#include <charconv>

#include "lrpc/netrpc/xdr.h"
#include "netrpc/protocols/request_reply/header.h"
#include "netrpc/protocols/sun_call/rpc_message.h"
#include "netrpc/src/record.h"

namespace lrpc::netrpc::rpcbind {

namespace {

/// The transport in versions 3 and 4; version 2 uses protocol(), an IP protocol number.
std::string_view network(SunTransport transport) { return transport == SunTransport::tcp ? "tcp" : "udp"; }
std::uint32_t protocol(SunTransport transport) { return transport == SunTransport::tcp ? 6 : 17; }

constexpr std::size_t kMostText = 256;    // of a network, an address, an owner
constexpr std::size_t kMostAddress = 64;  // more than any universal address has

}  // namespace

std::string universal_address(HostAddress host, std::uint16_t port) {
  const std::uint32_t value = host.value;
  return fmt::format("{}.{}.{}.{}.{}.{}", value >> 24, value >> 16 & 255, value >> 8 & 255, value & 255, port >> 8,
                     port & 255);
}

std::optional<std::uint16_t> port_of(std::string_view address) noexcept {
  if (address.empty()) return 0;
  unsigned numbers[6];
  const char* at = address.data();
  const char* const end = at + address.size();
  for (unsigned& number : numbers) {
    if (&number != numbers && (at == end || *at++ != '.')) return std::nullopt;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number > 255) return std::nullopt;
    at = rest;
  }
  if (at != end) return std::nullopt;
  return static_cast<std::uint16_t>(numbers[4] << 8 | numbers[5]);
}

std::vector<std::byte> lookup(std::uint32_t rpcbind_version, std::uint32_t program, std::uint32_t version,
                              SunTransport transport) {
  XdrWriter arguments;
  arguments.word(program).word(version);
  if (rpcbind_version == kPortMapper)
    arguments.word(protocol(transport)).word(0);
  else
    arguments.text(network(transport)).text("").text("");  // the transport; rpcbind ignores the address and the owner
  return arguments.bytes();
}

std::optional<std::uint16_t> found(std::uint32_t rpcbind_version, std::span<const std::byte> results) {
  XdrReader reader(results);
  if (rpcbind_version == kPortMapper) {
    const std::uint32_t port = reader.word();
    return reader.at_end() && port <= UINT16_MAX ? std::optional(static_cast<std::uint16_t>(port)) : std::nullopt;
  }
  const std::string_view address = reader.text(kMostAddress);
  return reader.at_end() ? port_of(address) : std::nullopt;
}

std::vector<std::byte> local_call(Procedure procedure, std::uint32_t xid, const SunProgram& served) {
  XdrWriter call;
  call.word(xid).word(static_cast<std::uint32_t>(request_reply::Type::call));
  call.word(sun::kRpcVersion).word(kProgram).word(kNewest).word(static_cast<std::uint32_t>(procedure));
  for (int i = 0; i < 2; ++i) call.word(static_cast<std::uint32_t>(sun::AuthFlavor::none)).opaque({});
  if (procedure != Procedure::dump) {
    call.word(served.program).word(served.version).text(network(served.transport));
    call.text(universal_address(served.host, served.port)).text("");  // rpcbind itself knows who the owner is
  }

  XdrWriter record;
  record.word(record_mark(call.bytes().size())).fixed(call.bytes());
  return record.bytes();
}

Result<std::span<const std::byte>> results_of(std::span<const std::byte> record, std::uint32_t xid) {
  const Error none{Errc::bad_message, "not an answer of rpcbind's"};
  XdrReader reader(record);
  if (reader.word() != xid || reader.word() != static_cast<std::uint32_t>(request_reply::Type::reply)) return none;
  const bool accepted = reader.word() == static_cast<std::uint32_t>(sun::ReplyStat::accepted);
  if (reader.right() && !accepted) return Error{Errc::not_permitted, "rpcbind has denied the call"};
  reader.word();  // the verifier
  reader.opaque(sun::kMostAuthBytes);
  const Errc outcome = sun::outcome_of(reader.word());
  if (!reader.right()) return none;
  if (outcome != Errc::ok) return Error{outcome, "rpcbind has not done the call"};
  return reader.rest();
}

std::optional<bool> done(std::span<const std::byte> results) noexcept {
  XdrReader reader(results);
  const std::uint32_t answer = reader.word();
  return reader.at_end() && answer <= 1 ? std::optional(answer == 1) : std::nullopt;
}

bool lists(std::span<const std::byte> results, const SunProgram& served) {
  const std::string wanted = universal_address(served.host, served.port);
  XdrReader reader(results);
  while (reader.word() == 1) {  // one more follows
    const bool program = reader.word() == served.program;
    const bool version = reader.word() == served.version;
    const bool same_network = reader.text(kMostText) == network(served.transport);
    const bool address = reader.text(kMostText) == wanted;
    reader.text(kMostText);  // the owner
    if (reader.right() && program && version && same_network && address) return true;
  }
  return false;
}

}  // namespace lrpc::netrpc::rpcbind
