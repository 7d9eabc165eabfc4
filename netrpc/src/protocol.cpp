#include "lrpc/netrpc/protocol.h"

#include "lrpc/netrpc/host.h"

namespace lrpc::netrpc {

void Transaction::collated(HostAddress /*member*/, Errc /*outcome*/, Message /*reply*/) noexcept {}
bool Transaction::counts(const Message& /*reply*/) noexcept { return true; }

Errc Session::push(Message /*message*/) noexcept { return Errc::not_supported; }

void Session::call(Message /*request*/, Transaction& transaction, Duration /*timeout*/) noexcept {
  transaction.completed(Errc::not_supported, {});
}

void Session::cancel(Transaction& /*transaction*/) noexcept {}

void Session::reply(Message /*message*/) noexcept {}

Errc Session::control(control::Request& request) noexcept {
  if (control::answered(request, control::PeerHost{participants_.remote.host})) return Errc::ok;
  return protocol_.control(request);
}

namespace {
Error lacks(const Protocol& protocol, std::string_view what) {
  return {Errc::not_supported, protocol.name() + " cannot " + std::string(what)};
}
}  // namespace

Status refuse_port(const Protocol& protocol, const ParticipantSet& participants) {
  if (participants.remote.port == 0) return {};
  return Error{Errc::invalid_argument, protocol.name() + " does not tell two ports of one host apart: name none"};
}

Error no_room(const Protocol& protocol, std::string_view what) {
  if (protocol.host().short_of_memory())
    return {Errc::limit_reached, protocol.name() + ": this host is short of memory"};
  return {Errc::limit_reached, protocol.name() + " has as many " + std::string(what) + " as it may have"};
}

Result<SessionRef> Protocol::open(Protocol& /*high*/, const ParticipantSet& /*participants*/) {
  return lacks(*this, "be opened");
}

Status Protocol::open_enable(Protocol& /*high*/, const ParticipantSet& /*participants*/) {
  return lacks(*this, "be enabled");
}

void Protocol::open_disable(Protocol& /*high*/, const ParticipantSet& /*participants*/) noexcept {}

Errc Protocol::open_done(Session& /*lower*/, const ParticipantSet& /*participants*/) noexcept { return Errc::ok; }

void Protocol::demux(Session& /*lower*/, Message /*message*/) noexcept { ++counted.no_session; }

void Protocol::call_demux(Session& lower, Message request) noexcept {
  ++counted.no_session;
  request.clear();
  lower.reply(Message(host_.pool()));
}

Errc Protocol::control(control::Request& request) noexcept {
  return control::answered(request, counted) ? Errc::ok : Errc::not_supported;
}

}  // namespace lrpc::netrpc
