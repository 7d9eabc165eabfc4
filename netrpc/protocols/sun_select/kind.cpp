#include "netrpc/protocols/sun_select/sun_select.h"

namespace lrpc::netrpc {

ProtocolKind sun_select_kind() {
  ProtocolKind kind;
  kind.name = "SUN_SELECT";
  kind.summary = "Sun RPC's selection of the server, and what became of a call";
  kind.gives = Service::transaction;
  kind.tells_ports_apart = true;
  kind.below = {{"AUTH_NONE, AUTH_SYS, or SUN_CALL alone", Service::transaction}};
  kind.options = {
      {"program", OptionType::number, "of which users' commands are procedures; default: users name a program"},
      {"version", OptionType::number, "of that program; default 1"},
  };
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    SunSelectOptions options;
    const std::uint64_t program = parts.options.number("program", options.program);
    const std::uint64_t version = parts.options.number("version", options.version);
    if (program > UINT32_MAX || version > UINT32_MAX)
      return Error{Errc::invalid_argument, "program and version have 32 bits"};
    options.program = static_cast<std::uint32_t>(program);
    options.version = static_cast<std::uint32_t>(version);
    return make_sun_select(parts.host, parts.name, *parts.below.front(), options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
