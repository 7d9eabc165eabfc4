#include "netrpc/protocols/select/select.h"
#include "netrpc/protocols/select/select_protocol.h"

namespace lrpc::netrpc {

ProtocolKind select_kind() {
  ProtocolKind kind =
      channel_pool_kind("SELECT", "procedure identifiers, and a fixed number of channels to each host", make_select);
  kind.options.push_back(
      {"number", OptionType::number, "of the protocol, where several stand over one device, 240 to 252; default 203"});
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    const auto options = channel_pool_options(parts.options);
    if (!options) return options.error();
    const std::uint64_t number = parts.options.number("number", protocol_numbers::kSelect);
    constexpr ProtocolNumber kFirst = 240;  // of those that users give away, as in address.h
    constexpr ProtocolNumber kLast = 252;
    if (number != protocol_numbers::kSelect && (number < kFirst || number > kLast))
      return Error{Errc::invalid_argument, "number must be from 240 to 252"};
    return std::unique_ptr<Protocol>(std::make_unique<SelectProtocol>(parts.host, parts.name, *parts.below.front(),
                                                                      *options, static_cast<ProtocolNumber>(number)));
  };
  return kind;
}

}  // namespace lrpc::netrpc
