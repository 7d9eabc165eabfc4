#include "netrpc/protocols/user/user.h"

#include <algorithm>
#include <utility>

namespace lrpc::netrpc {

UserProtocol::UserProtocol(Host& host, std::string name, std::vector<Protocol*> below, UserOperations operations)
    : Protocol(host, std::move(name)),
      below_(std::move(below)),
      operations_(std::make_shared<const UserOperations>(std::move(operations))) {}

Result<SessionRef> UserProtocol::open_below(const ParticipantSet& participants, std::size_t index) {
  return below(index).open(*this, participants);
}

Status UserProtocol::enable_below(const ParticipantSet& participants, std::size_t index) {
  return below(index).open_enable(*this, participants);
}

void UserProtocol::disable_below(const ParticipantSet& participants, std::size_t index) noexcept {
  if (index < below_.size()) below_[index]->open_disable(*this, participants);
}

Errc UserProtocol::open_done(Session& lower, const ParticipantSet& participants) noexcept {
  const auto operations = operations_;
  return operations->opened ? operations->opened(lower, participants) : Protocol::open_done(lower, participants);
}

void UserProtocol::demux(Session& lower, Message message) noexcept {
  const auto operations = operations_;
  if (!operations->receive) return Protocol::demux(lower, std::move(message));
  ++counted.received;
  operations->receive(lower, std::move(message));
}

void UserProtocol::call_demux(Session& lower, Message request) noexcept {
  const auto operations = operations_;
  if (!operations->serve) return Protocol::call_demux(lower, std::move(request));
  ++counted.received;
  operations->serve(lower, std::move(request));
}

Errc UserProtocol::control(control::Request& request) noexcept {
  const auto operations = operations_;
  if (operations->control)
    if (const Errc answer = operations->control(request); answer != Errc::not_supported) return answer;
  if (control::answered(request, control::AdvertisedMaximum{operations->largest})) return Errc::ok;
  return Protocol::control(request);
}

ProtocolKind user_kind(std::string name, Service needs, UserOperations operations) {
  ProtocolKind kind;
  kind.name = std::move(name);
  kind.summary = "a program's own protocol, at the top";
  kind.gives = needs;
  kind.below = {{"the protocol that the program uses", needs}};
  kind.make = [operations = std::move(operations)](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    return std::unique_ptr<Protocol>(std::make_unique<UserProtocol>(parts.host, parts.name, parts.below, operations));
  };
  return kind;
}

}  // namespace lrpc::netrpc
