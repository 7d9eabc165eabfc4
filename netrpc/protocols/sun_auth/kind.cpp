#include <unistd.h>

#include <charconv>

#include "netrpc/protocols/sun_auth/sun_auth.h"

namespace lrpc::netrpc {

namespace {

/// "4,27"
Result<std::vector<std::uint32_t>> parse_gids(std::string_view text) {
  std::vector<std::uint32_t> gids;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view one = text.substr(0, end);
    std::uint32_t gid = 0;
    const auto [rest, error] = std::from_chars(one.data(), one.data() + one.size(), gid);
    if (error != std::errc() || rest != one.data() + one.size())
      return Error{Errc::invalid_argument, "gids: '" + std::string(one) + "' is no group, write them as in 4,27"};
    gids.push_back(gid);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return gids;
}

ProtocolKind auth_kind_called(std::string name, std::string summary) {
  ProtocolKind kind;
  kind.name = std::move(name);
  kind.summary = std::move(summary);
  kind.gives = Service::transaction;
  kind.tells_ports_apart = true;
  kind.below = {{"the SUN_CALL to whose calls it adds the credential", Service::transaction}};
  return kind;
}

}  // namespace

ProtocolKind auth_none_kind() {
  ProtocolKind kind = auth_kind_called("AUTH_NONE", "Sun RPC without credentials");
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    return make_auth_none(parts.host, parts.name, *parts.below.front());
  };
  return kind;
}

ProtocolKind auth_sys_kind() {
  ProtocolKind kind = auth_kind_called("AUTH_SYS", "Sun RPC with the names of machine and user, which nothing proves");
  kind.options = {
      {"machine", OptionType::text, "the name to send, at most 64 bytes; default: the host's"},
      {"uid", OptionType::number, "the user to send; default: this process's"},
      {"gid", OptionType::number, "the group to send; default: this process's"},
      {"gids", OptionType::text, "further groups, at most 16: \"4,27\"; default: none"},
  };
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    AuthSysOptions options;
    const Options& given = parts.options;
    options.machine = given.text("machine");
    const std::uint64_t uid = given.number("uid", ::geteuid());
    const std::uint64_t gid = given.number("gid", ::getegid());
    if (uid > UINT32_MAX || gid > UINT32_MAX) return Error{Errc::invalid_argument, "uid and gid have 32 bits"};
    options.uid = static_cast<std::uint32_t>(uid);
    options.gid = static_cast<std::uint32_t>(gid);
    Result<std::vector<std::uint32_t>> gids = parse_gids(given.text("gids"));
    if (!gids) return gids.error();
    options.gids = std::move(*gids);
    return make_auth_sys(parts.host, parts.name, *parts.below.front(), options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
