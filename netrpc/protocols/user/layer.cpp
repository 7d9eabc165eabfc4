// A program's own layer in the middle of a graph.
#include <utility>

#include "header_room.h"
#include "netrpc/protocols/user/user.h"
#include "transparent_layer.h"

namespace lrpc::netrpc {

namespace {

class UserLayer final : public TransparentProtocol {
 public:
  UserLayer(const InstanceParts& parts, UserLayerOperations operations)
      : TransparentProtocol(parts.host, parts.name, *parts.below.front()), operations_(std::move(operations)) {}

  Errc pass_push(TransparentSession& session, Message message) noexcept override {
    if (!operations_.push) return TransparentProtocol::pass_push(session, std::move(message));
    ++counted.sent;
    return operations_.push(session.lower(), std::move(message));
  }
  void pass_demux(TransparentSession& session, Message message) noexcept override {
    if (!operations_.demux) return TransparentProtocol::pass_demux(session, std::move(message));
    ++counted.received;
    operations_.demux(session, session.high(), std::move(message));
  }
  void pass_call(TransparentSession& session, Message request, Transaction& transaction,
                 Duration timeout) noexcept override {
    if (!operations_.call) return TransparentProtocol::pass_call(session, std::move(request), transaction, timeout);
    ++counted.sent;
    operations_.call(session.lower(), std::move(request), transaction, timeout);
  }
  void pass_call_demux(TransparentSession& session, Message request) noexcept override {
    if (!operations_.call_demux) return TransparentProtocol::pass_call_demux(session, std::move(request));
    ++counted.received;
    operations_.call_demux(session, session.high(), std::move(request));
  }
  void pass_reply(TransparentSession& session, Message message) noexcept override {
    if (!operations_.reply) return TransparentProtocol::pass_reply(session, std::move(message));
    operations_.reply(session.lower(), std::move(message));
  }
  Errc control(control::Request& request) noexcept override {
    return with_header(TransparentProtocol::control(request), request, operations_.header);
  }
  Errc pass_control(TransparentSession& session, control::Request& request) noexcept override {
    return with_header(TransparentProtocol::pass_control(session, request), request, operations_.header);
  }
  Errc pass_high_control(Protocol& high, control::Request& request) noexcept override {
    return with_header(TransparentProtocol::pass_high_control(high, request), request, operations_.header);
  }

 private:
  const UserLayerOperations operations_;
};

}  // namespace

ProtocolKind user_layer_kind(std::string name, UserLayerOperations operations) {
  ProtocolKind kind;
  kind.name = std::move(name);
  kind.summary = "a program's own layer";
  kind.transparent = true;
  kind.below = {{"the protocol to pass to", Service::datagram}};
  kind.make = [operations = std::move(operations)](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    return std::unique_ptr<Protocol>(std::make_unique<UserLayer>(parts, operations));
  };
  return kind;
}

}  // namespace lrpc::netrpc
