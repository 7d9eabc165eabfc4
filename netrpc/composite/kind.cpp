#include "netrpc/composite/kind.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "netrpc/composite/composite.h"

namespace lrpc::netrpc::composite {

ProtocolKind composite_kind(std::string name, std::vector<MicroKind> all) {
  const auto kinds = std::make_shared<const std::vector<MicroKind>>(std::move(all));
  const auto named = [kinds](const std::vector<std::string>& names) {
    std::vector<const MicroKind*> found;
    for (const std::string& one : names) found.push_back(&*std::ranges::find(*kinds, one, &MicroKind::name));
    return found;
  };
  ProtocolKind kind;
  kind.name = std::move(name);
  kind.summary = "micro-protocols, between braces";
  kind.gives = Service::datagram;
  kind.tells_ports_apart = true;
  kind.below = {{"the protocol for its messages", Service::datagram}};
  kind.options = {
      {"threads", OptionType::number, "to run handlers in; 0: in the thread that brings a message", false, "0", "64"}};
  for (const MicroKind& micro : *kinds) kind.inside.push_back({micro.name, micro.options});
  kind.check_inside = [named](const std::vector<std::string>& names) { return check_composition(named(names)); };
  kind.draw_inside = [named](const std::vector<std::string>& names) { return describe_composition(named(names)); };
  kind.inside_gives = [named](const std::vector<std::string>& names) {
    ProtocolKind::Given given{Service::datagram, true};
    for (const MicroKind* const one : named(names)) {
      if (one->style == CallStyle::call) given.gives = Service::transaction;
      if (one->at_most_once) given.repeats = false;
    }
    if (given.gives == Service::datagram) given.repeats = false;
    return given;
  };
  kind.make = [kinds](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    std::vector<Part> inside;
    for (const MicroDescription& micro : parts.inside) {
      const auto known = std::ranges::find(*kinds, micro.kind, &MicroKind::name);
      if (known == kinds->end())
        return Error{Errc::invalid_argument, "there is no micro-protocol " + micro.kind + " to compose with"};
      inside.push_back({*known, micro.options});
    }
    auto made = Framework::make(parts.host, parts.name, *parts.below.front(), std::move(inside),
                                parts.options.number("threads", 0));
    if (!made) return made.error();
    return std::move(made).value();
  };
  return kind;
}

}  // namespace lrpc::netrpc::composite
