#include "stack_client.h"

#include <cstring>

namespace lrpc::bench {

using namespace netrpc;
using namespace std::chrono_literals;

void StackUser::demux(netrpc::Session& lower, Message message) noexcept {
  if (!server_) {
    ++answers_;
    host().engine().wake(host());
    return;
  }
  if (++arrived_ % answer_every_ != 0) return;
  message.truncate(answer_size_);
  (void)lower.push(std::move(message));
}

void StackUser::call_demux(netrpc::Session& lower, Message request) noexcept {
  if (answer_size_ == 0) {
    request.truncate(0);
    return lower.reply(std::move(request));
  }
  Message answer = Message::make(host().pool(), answer_size_);
  if (answer.allocated()) std::memset(answer.bytes().data(), 0xa5, answer_size_);
  lower.reply(std::move(answer));
}

Errc StackUser::control(control::Request& request) noexcept {
  // As in Sprite RPC: a layer fragments longer messages itself.
  if (control::answered(request, control::AdvertisedMaximum{1400})) return Errc::ok;
  return Protocol::control(request);
}

ParticipantSet bench_participants(HostAddress local, HostAddress peer, std::uint16_t port) {
  ParticipantSet participants{.protocol = protocol_numbers::kFirstOfTests, .local = {}, .remote = {}};
  participants.local.host = local;
  participants.local.command = 1;
  participants.remote.host = peer;
  participants.remote.port = port;
  participants.remote.command = 1;
  return participants;
}

Result<StackClient> StackClient::open(StackUser& user, Protocol& top, Service service, HostAddress peer,
                                      std::uint16_t port) {
  const Shepherd inside(user.host().monitor());
  const ParticipantSet participants = bench_participants(user.host().address(), peer, port);
  if (service == Service::datagram)  // answers may arrive through any session
    if (Status enabled = top.open_enable(user, participants); !enabled) return enabled.error();
  auto session = top.open(user, participants);
  if (!session) return session.error();
  return StackClient(user, *session, service);
}

StackClient::~StackClient() {
  if (!session_) return;
  const Shepherd inside(user_.host().monitor());
  session_ = {};
}

Errc StackClient::once(std::size_t size) {
  Host& host = user_.host();
  const Shepherd inside(host.monitor());
  for (int tries = 0; tries < 5; ++tries) {
    Message message = Message::make(host.pool(), size);
    if (!message.allocated()) return Errc::limit_reached;
    if (size > 0) std::memset(message.bytes().data(), 0x5a, size);
    if (service_ == Service::transaction) {
      Message reply;
      return call_and_wait_inside(*session_, std::move(message), reply, 5s);
    }
    const std::uint64_t before = user_.answers();
    if (const Errc pushed = session_->push(std::move(message)); pushed != Errc::ok) return pushed;
    if (host.engine().wait(
            host, [&] { return user_.answers() != before; }, host.now() + 100ms))
      return Errc::ok;
    ++lost_;
  }
  return Errc::timed_out;
}

Errc StackClient::stream(std::size_t messages, std::size_t size) {
  Host& host = user_.host();
  const Shepherd inside(host.monitor());
  const std::uint64_t before = user_.answers();
  // Waits until at most `most` of the first `sent` messages are unanswered.
  const auto wait = [&](std::uint64_t sent, std::uint64_t most) {
    const auto done = [&] { return sent - (user_.answers() - before) * kAnswered <= most; };
    return done() || host.engine().wait(host, done, host.now() + 5s);
  };
  for (std::uint64_t sent = 0; sent < messages; ++sent) {
    if (!wait(sent, kWindow - 1)) return Errc::timed_out;
    Message message = Message::make(host.pool(), size);
    if (!message.allocated()) return Errc::limit_reached;
    std::memset(message.bytes().data(), 0x5a, size);
    if (const Errc pushed = session_->push(std::move(message)); pushed != Errc::ok) return pushed;
  }
  return wait(messages, 0) ? Errc::ok : Errc::timed_out;
}

}  // namespace lrpc::bench
