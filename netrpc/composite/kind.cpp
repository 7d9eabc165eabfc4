#include "netrpc/composite/kind.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "netrpc/composite/composite.h"

namespace lrpc::netrpc::composite {

namespace {

using SharedKinds = std::shared_ptr<const std::vector<MicroKind>>;

const MicroKind& kind_named(const SharedKinds& kinds, std::string_view name) {
  return *std::ranges::find_if(*kinds, [&](const MicroKind& one) { return one.name == name; });
}

std::vector<const MicroKind*> kinds_named(const SharedKinds& kinds, const std::vector<std::string>& names) {
  std::vector<const MicroKind*> named;
  for (const std::string& name : names) named.push_back(&kind_named(kinds, name));
  return named;
}

}  // namespace

ProtocolKind composite_kind(std::string name, std::vector<MicroKind> all) {
  const auto kinds = std::make_shared<const std::vector<MicroKind>>(std::move(all));
  ProtocolKind kind;
  kind.name = std::move(name);
  kind.summary = "micro-protocols, between braces";
  kind.gives = Service::datagram;
  kind.tells_ports_apart = true;
  kind.below = {{"the protocol for its messages", Service::datagram}};
  kind.options = {
      {"threads", OptionType::number, "to run handlers in; 0: in the thread that brings a message", false, "0", "64"}};
  for (const MicroKind& micro : *kinds) kind.inside.push_back({micro.name, micro.options});
  kind.check_inside = [kinds](const std::vector<std::string>& names) {
    return check_composition(kinds_named(kinds, names));
  };
  kind.draw_inside = [kinds](const std::vector<std::string>& names) {
    return describe_composition(kinds_named(kinds, names));
  };
  kind.inside_gives = [kinds](const std::vector<std::string>& names) {
    ProtocolKind::Given given{Service::datagram, true};
    for (const MicroKind* const one : kinds_named(kinds, names)) {
      if (one->style == CallStyle::call) given.gives = Service::transaction;
      if (one->at_most_once) given.repeats = false;
    }
    if (given.gives == Service::datagram) given.repeats = false;
    return given;
  };
  kind.make = [kinds](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    std::vector<Part> inside;
    for (const MicroDescription& micro : parts.inside) {
      if (std::ranges::find(*kinds, micro.kind, &MicroKind::name) == kinds->end())
        return Error{Errc::invalid_argument, "there is no micro-protocol " + micro.kind + " to compose with"};
      inside.push_back({kind_named(kinds, micro.kind), micro.options});
    }
    auto made = Framework::make(parts.host, parts.name, *parts.below.front(), std::move(inside),
                                parts.options.number("threads", 0));
    if (!made) return made.error();
    return std::unique_ptr<Protocol>(std::move(made).value());
  };
  return kind;
}

}  // namespace lrpc::netrpc::composite
