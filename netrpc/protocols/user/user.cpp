#include "netrpc/protocols/user/user.h"

#include "header_room.h"
#include "transparent_layer.h"

namespace lrpc::netrpc {

namespace {

/// A program's own layer in the middle of a graph.
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

ProtocolKind user_kind(std::string name, Service needs, UserOperations operations) {
  return {.name = std::move(name),
          .summary = "a program's own protocol, at the top",
          .gives = needs,
          .below = {{"the protocol that the program uses", needs}},
          .make = [operations = std::move(operations)](const InstanceParts& parts) {
            return std::make_unique<UserProtocol>(parts.host, parts.name, parts.below, operations);
          }};
}

ProtocolKind user_layer_kind(std::string name, UserLayerOperations operations) {
  return {.name = std::move(name),
          .summary = "a program's own layer",
          .transparent = true,
          .below = {{"the protocol to pass to", Service::datagram}},
          .make = [operations = std::move(operations)](const InstanceParts& parts) {
            return std::make_unique<UserLayer>(parts, operations);
          }};
}

}  // namespace lrpc::netrpc
