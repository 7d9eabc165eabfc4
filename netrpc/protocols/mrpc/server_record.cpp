// What the server keeps of its clients, and for how long.
#include "lrpc/detail/shim/most_of_one.h"
#include "netrpc/protocols/mrpc/protocol.h"
#include "netrpc/protocols/mrpc/server.h"

namespace lrpc::netrpc::mrpc {

ServerSession::ServerSession(Monolithic& mrpc, Server& server, Protocol& high, const ParticipantSet& participants,
                             ServerChannel& channel) noexcept
    : Session(mrpc, high, participants), server_(server), channel_(&channel) {}

void ServerSession::reply(Message message) noexcept {
  if (channel_ == nullptr || channel_->state != ServerChannel::State::executing) return;  // given up, or answered
  server_.reply(*channel_, std::move(message));
}

void ServerSession::detach(bool at_work) noexcept {
  if (at_work && references() > 1) {
    abandoned_ = channel_->client.abandoned;
    ++*abandoned_;
  }
  channel_ = nullptr;
}

void ServerSession::unreferenced() noexcept {
  if (abandoned_ != nullptr) --*abandoned_;
  delete this;
}

/// Gives the request up. The server protocol may still execute it, but nobody waits for the answer.
void Server::abandon(ServerChannel& channel) noexcept {
  static_cast<ServerSession&>(*channel.session).detach(true);
  channel.session = {};
}

bool Server::has_room(const Client& client, std::size_t bytes) const noexcept {
  return shim::one_may_take(bytes, client.held, held_, mrpc_.settings().memory);
}

void Server::hold(ServerChannel& channel, std::size_t bytes) noexcept {
  channel.held += bytes;
  channel.client.held += bytes;
  held_ += bytes;
}

/// Drops the partial request or the saved reply.
void Server::let_go(ServerChannel& channel) noexcept {
  channel.request.clear();
  channel.reply.whole.clear();
  channel.client.held -= channel.held;
  held_ -= std::exchange(channel.held, 0);
}

void Server::forget(ServerChannel& channel) noexcept {
  if (channel.session) {
    static_cast<ServerSession&>(*channel.session).detach(channel.state == ServerChannel::State::executing);
    channel.session = {};
  }
  let_go(channel);
  channel.state = ServerChannel::State::unused;
}

bool Server::knows(HostAddress host) noexcept { return clients_.resolve({mrpc_.host().hash_seed(), host}) != nullptr; }

void Server::sweep(bool tick) noexcept {
  if (tick) ++sweeps_;
  clients_.for_each([this](const HostKey&, std::unique_ptr<Client>& client) {
    for (const auto& channel : client->channels) {
      if (channel == nullptr) continue;
      if (over(channel->last_active)) {
        forget(*channel);
      } else if (channel->held != 0 && outlived(channel->last_active)) {
        if (channel->state == ServerChannel::State::replied) channel->error = Errc::call_failed;  // if asked again
        let_go(*channel);
      }
    }
  });
  clients_.unbind_if([this](const HostKey& key, const std::unique_ptr<Client>& client) {
    const bool goes = over(client->last_active) && *client->abandoned == 0;
    if (goes && !mrpc_.calls(key.host)) mrpc_.host().peers().forget(key.host);
    return goes;
  });
}

}  // namespace lrpc::netrpc::mrpc
