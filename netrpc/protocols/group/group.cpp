#include "netrpc/protocols/group/group.h"

#include <utility>

#include "lrpc/netrpc/host.h"

namespace lrpc::netrpc {

namespace {

class GroupProtocol final : public Protocol {
 public:
  GroupProtocol(Host& host, std::string name, Protocol& below, HostAddress address)
      : Protocol(host, std::move(name)), below_(below), address_(address) {}
  ~GroupProtocol() override { (void)host().groups().set(address_, {}); }

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    ParticipantSet members = participants;
    members.remote.host = address_;
    return below_.open(high, members);
  }
  Status open_enable(Protocol& high, const ParticipantSet& participants) override {
    return below_.open_enable(high, participants);
  }
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override {
    below_.open_disable(high, participants);
  }
  [[nodiscard]] Errc control(control::Request& request) noexcept override {
    const control::Members members{address_, host().groups().members(address_)};
    return control::answered(request, members) ? Errc::ok : below_.control(request);
  }

 private:
  Protocol& below_;
  const HostAddress address_;
};

/// The first group address that is free.
HostAddress free_address(const Groups& groups) {
  HostAddress address{0xef000000};  // 239.0.0.0: of no meaning outside this host (RFC 2365)
  while (!groups.members(address).empty()) ++address.value;
  return address;
}

Result<std::unique_ptr<Protocol>> make(const InstanceParts& parts) {
  auto members = group_members(parts.options);
  if (!members) return members.error();
  const HostAddress address = free_address(parts.host.groups());
  if (Status set = parts.host.groups().set(address, *std::move(members)); !set) return set.error();
  return std::make_unique<GroupProtocol>(parts.host, parts.name, *parts.below.front(), address);
}

}  // namespace

Result<std::vector<HostAddress>> group_members(const Options& options) {
  std::vector<HostAddress> members;
  for (const std::string& text : options.list("members")) {
    const auto member = parse_host(text);
    if (!member) return Error{Errc::invalid_argument, "'" + text + "' is no IPv4 address of a member"};
    members.push_back(*member);
  }
  if (members.empty()) return Error{Errc::invalid_argument, "a group needs members, write members = [10.0.0.1, ...]"};
  if (Status sound = Groups::check(members); !sound) return sound.error();
  return members;
}

ProtocolKind group_kind() {
  return {.name = "GROUP",
          .summary = "calls to several hosts at once",
          .gives = Service::transaction,
          .below = {{"the protocol for calls to groups", Service::transaction}},
          .options = {{"members", OptionType::list, "the hosts' IPv4 addresses, at most 64", true}},
          .make = make};
}

}  // namespace lrpc::netrpc
