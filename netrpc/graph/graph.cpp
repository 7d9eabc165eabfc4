#include "lrpc/netrpc/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lrpc/netrpc/host.h"

namespace lrpc::netrpc {

namespace {
/// Enters the monitor, unless the caller is inside already.
Shepherd enter(Host& host) { return host.monitor().held() ? Shepherd() : Shepherd(host.monitor()); }
}  // namespace

ProtocolKinds& ProtocolKinds::add(ProtocolKind kind) {
  const auto same = std::ranges::find(kinds_, kind.name, &ProtocolKind::name);
  if (same != kinds_.end())
    *same = std::move(kind);
  else
    kinds_.push_back(std::move(kind));
  return *this;
}

const ProtocolKind* ProtocolKinds::find(std::string_view name) const noexcept {
  for (const ProtocolKind& kind : kinds_)
    if (kind.name == name) return &kind;
  return nullptr;
}

Result<Graph> Graph::compose(Host& host, const GraphDescription& description, const ProtocolKinds& kinds) {
  Graph graph;
  const Shepherd inside = enter(host);
  std::map<std::string_view, Protocol*> made;
  for (const InstanceDescription& instance : description.instances()) {
    const auto failed = [&](const Error& error) {
      return Error{error.code, fmt::format("{}: {}: {}", instance.line, instance.name, error.message())};
    };
    const ProtocolKind* const kind = kinds.find(instance.kind);
    if (kind == nullptr || !kind->make)
      return failed({Errc::invalid_argument, "there is no kind of protocol " + instance.kind + " to compose with"});
    InstanceParts parts{host, instance.name, {}, instance.options, instance.inside, instance.many_ports_below};
    for (const std::string& lower : instance.below) parts.below.push_back(made.at(lower));
    Result<std::unique_ptr<Protocol>> protocol = kind->make(parts);
    if (!protocol) return failed(protocol.error());
    if (protocol.value() == nullptr) return failed({Errc::invalid_argument, instance.kind + " has made nothing"});
    made.emplace(instance.name, protocol.value().get());
    graph.protocols_.push_back(std::move(protocol).value());
  }
  return graph;
}

Graph& Graph::operator=(Graph&& other) noexcept {
  if (this != &other) {
    destroy();
    protocols_ = std::move(other.protocols_);
  }
  return *this;
}

Graph::~Graph() { destroy(); }

void Graph::destroy() noexcept {
  if (protocols_.empty()) return;
  const Shepherd inside = enter(protocols_.front()->host());
  // Higher ones first: they drop their sessions while the protocols of these still exist.
  while (!protocols_.empty()) protocols_.pop_back();
}

Protocol* Graph::find(std::string_view name) const noexcept {
  for (const std::unique_ptr<Protocol>& protocol : protocols_)
    if (protocol->name() == name) return protocol.get();
  return nullptr;
}

}  // namespace lrpc::netrpc
