// A call at the server: what arrives, begin, execute, reply.
#include "netrpc/protocols/mrpc/server.h"

#include <algorithm>
#include <bit>

#include "lrpc/detail/shim/most_of_one.h"
#include "netrpc/protocols/mrpc/protocol.h"
#include "netrpc/src/attempt.h"
#include "netrpc/src/dropped.h"

namespace lrpc::netrpc::mrpc {

namespace {
/// The least that a saved reply counts for, in bytes.
constexpr std::size_t kLeastCost = BufferPool::kSizes[0];
}  // namespace

/// A record outlives all packets of its last call: the client may hear of the server's last packet for a packet life,
/// continues for give_up, and its own last packet may be under way for another packet life.
Server::Server(Monolithic& mrpc)
    : mrpc_(mrpc),
      record_life_(
          8 + static_cast<std::uint32_t>((4 * mrpc.settings().give_up + mrpc.settings().packet_life - Duration(1)) /
                                         mrpc.settings().packet_life)) {}

Server::~Server() {
  clients_.for_each([this](const HostKey&, std::unique_ptr<Client>& client) {
    for (const auto& channel : client->channels)
      if (channel != nullptr) forget(*channel);
  });
}

void Server::on_request(Session& lower, const Header& header, Message&& message) noexcept {
  const bool probe = header.mask == 0 && header.size == 0 && header.fragments <= kMaxFragments && header.fragments != 0;
  if ((!probe && !well_formed(header)) || header.channel >= kMaxChannels) [[unlikely]]
    return dropped(mrpc_.counters().malformed);
  Client* const client = client_of(lower, header);
  if (client == nullptr) return;
  auto& slot = client->channels[header.channel];
  if (slot == nullptr) [[unlikely]] {
    if (mrpc_.host().short_of_memory()) return dropped(mrpc_.counters().refused);
    if (!attempt([&] { slot = std::make_unique<ServerChannel>(*client, header.channel); }))
      return dropped(mrpc_.counters().refused);
  }
  ServerChannel& channel = *slot;
  if (channel.state != ServerChannel::State::unused && ahead(header.sequence, channel.sequence) <= 0) [[unlikely]] {
    if (header.sequence != channel.sequence) return dropped(mrpc_.counters().duplicates);
    channel.last_active = client->last_active = sweeps_;
    return on_known(channel, header, std::move(message));
  }
  if (probe) [[unlikely]] {  // for a request of which nothing has arrived, or nothing is kept
    Header ack = this->header(channel, Type::request_ack);
    ack.sequence = header.sequence;
    ack.fragments = header.fragments;
    ack.mask = 0;
    return mrpc_.send(*client->lower, ack);
  }
  if (!begin(channel, header)) return;
  channel.last_active = client->last_active = sweeps_;
  if (header.fragments == 1) [[likely]]
    return execute(channel, std::move(message));
  on_fragment(channel, header, std::move(message));
}

/// The record of the host and life that sent `header`; made, if there is room for it. Null: dropped, and counted.
Client* Server::client_of(Session& lower, const Header& header) noexcept {
  const HostKey key{mrpc_.host().hash_seed(), header.client};
  auto* slot = clients_.resolve(key);
  if (slot == nullptr) [[unlikely]] {
    if (clients_.size() >= mrpc_.settings().clients || mrpc_.host().short_of_memory())
      return dropped(mrpc_.counters().refused, nullptr);
    const bool made_one = attempt([&] {
      mrpc_.start_sweeping();
      slot = &clients_.bind(key, std::make_unique<Client>());
    });
    if (!made_one) return dropped(mrpc_.counters().refused, nullptr);
    (*slot)->host = header.client;
    (*slot)->boot_id = header.boot_id;
    (*slot)->last_active = sweeps_;
    Client* const made = slot->get();
    mrpc_.host().peers().heard(header.client, header.boot_id);
    slot = clients_.resolve(key);
    if (slot == nullptr || slot->get() != made) return nullptr;
  }
  Client& client = **slot;
  if (client.boot_id != header.boot_id && !begin_life(client, header.boot_id)) [[unlikely]]
    return nullptr;
  if (client.lower.get() != &lower) [[unlikely]] {
    client.lower = SessionRef(&lower);
    client.single = mrpc_.single(lower);
  }
  return &client;
}

/// The client host has rebooted: its channels begin anew. False: the packet is of an ended life, or too many lives have
/// ended. Boot identifiers are random, so the ended ones are remembered for as long as their packets can be under way.
bool Server::begin_life(Client& client, BootId boot_id) noexcept {
  Client::DeadLife* free = nullptr;
  for (Client::DeadLife& life : client.dead) {
    if (life.boot_id != 0 && outlived(life.died)) life = {};
    if (life.boot_id == boot_id) return dropped(mrpc_.counters().duplicates, false);
    if (life.boot_id == 0) free = &life;
  }
  if (free == nullptr) return dropped(mrpc_.counters().refused, false);
  *free = {client.boot_id, sweeps_};
  for (const auto& channel : client.channels)
    if (channel != nullptr) forget(*channel);
  client.boot_id = boot_id;
  client.last_active = sweeps_;
  mrpc_.host().peers().heard(client.host, boot_id);
  return client.boot_id == boot_id;
}

Header Server::header(const ServerChannel& channel, Type type) const noexcept {
  return {.type = type,
          .client = channel.client.host,
          .server = mrpc_.host().address(),
          .channel = channel.number,
          .sequence = channel.sequence,
          .command = channel.command,
          .boot_id = mrpc_.host().boot_id(),
          .peer_boot_id = channel.client.boot_id};
}

/// A packet of the channel's present request.
void Server::on_known(ServerChannel& channel, const Header& header, Message&& message) noexcept {
  const bool please_ack = (header.bits & kPleaseAck) != 0;
  if (header.fragments != channel.fragments) return dropped(mrpc_.counters().malformed);
  if (channel.state == ServerChannel::State::receiving) {
    if (header.mask == 0) return acknowledge_request(channel, channel.request.mask());
    return on_fragment(channel, header, std::move(message));
  }
  ++mrpc_.counters().duplicates;
  if (!please_ack) return;  // the network's duplicate, not the client's
  if (channel.state == ServerChannel::State::executing) {
    if (channel.session->references() > 1) return acknowledge_request(channel, all_of(channel.fragments));
    channel.error = Errc::call_failed;  // the server protocol dropped it: there will be no answer
    channel.state = ServerChannel::State::replied;
  }
  if (channel.acknowledged) return;
  ++mrpc_.counters().retransmissions;
  // Of a large reply the last fragment is enough: the client tells which of the others it lacks.
  send_reply(channel, std::bit_floor(all_of(channel.reply.fragments)), channel.reply.fragments > 1);
}

/// A newer request acknowledges the last reply, and gives up what is still being executed. False: refused, because
/// the server still works on too many requests that the client has given up, in this life or in others.
bool Server::begin(ServerChannel& channel, const Header& header) noexcept {
  if (*channel.client.abandoned >= kMaxChannels) [[unlikely]]
    return dropped(mrpc_.counters().refused, false);
  if (channel.state == ServerChannel::State::executing) [[unlikely]]
    abandon(channel);
  let_go(channel);
  channel.state = ServerChannel::State::receiving;
  channel.sequence = header.sequence;
  channel.fragments = header.fragments;
  channel.command = header.command;
  channel.error = Errc::ok;
  channel.acknowledged = false;
  return true;
}

void Server::on_fragment(ServerChannel& channel, const Header& header, Message&& message) noexcept {
  message.fit();
  const std::size_t cost = message.footprint();
  if (!has_room(channel.client, cost)) return dropped(mrpc_.counters().refused);
  switch (channel.request.add(header, std::move(message))) {
    case Incoming::Added::contradiction: ++mrpc_.counters().malformed; return;
    case Incoming::Added::duplicate:
      ++mrpc_.counters().duplicates;
      if ((header.bits & kPleaseAck) != 0) acknowledge_request(channel, channel.request.mask());
      return;
    case Incoming::Added::part:
      hold(channel, cost);
      // The ones before it should be here.
      if (header.mask == 1U << (header.fragments - 1) || (header.bits & kPleaseAck) != 0)
        acknowledge_request(channel, channel.request.mask());
      return;
    case Incoming::Added::complete: break;
  }
  Message request = channel.request.join();
  let_go(channel);
  if (request.allocated()) execute(channel, std::move(request));  // else no slices left: the client will send it again
}

void Server::execute(ServerChannel& channel, Message&& request) noexcept {
  channel.state = ServerChannel::State::executing;
  Protocol* const high = mrpc_.server_of(channel.command);
  if (high == nullptr) [[unlikely]] {
    ++mrpc_.counters().no_session;
    return refuse(channel, Errc::bad_procedure);
  }
  Session* session = channel.session.get();
  if (session == nullptr || &session->high() != high || session->references() > 1) [[unlikely]] {
    if (session != nullptr) static_cast<ServerSession*>(session)->detach(false);
    const ParticipantSet participants{protocol_numbers::kMonolithic,
                                      {.host = mrpc_.host().address(), .ethernet = {}},
                                      {.host = channel.client.host, .ethernet = {}, .channel = channel.number}};
    channel.session = {};
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): attempt() handles it
    attempt([&] { channel.session = SessionRef(new ServerSession(mrpc_, *this, *high, participants, channel)); });
    session = channel.session.get();
    if (session == nullptr) return refuse(channel, Errc::limit_reached);
  }
  static_cast<ServerSession*>(session)->set_command(channel.command);
  ++mrpc_.counters().received;
  const SessionRef keep(session);  // whatever happens to the channel meanwhile
  high->call_demux(*session, std::move(request));
}

void Server::refuse(ServerChannel& channel, Errc reason) noexcept {
  channel.error = reason;
  channel.state = ServerChannel::State::replied;
  send_reply(channel, 1, false);
}

void Server::reply(ServerChannel& channel, Message&& message) noexcept {
  channel.state = ServerChannel::State::replied;
  if (message.pool() == nullptr) message = Message(mrpc_.host().pool());
  Client& client = channel.client;
  if (client.path_changes.noticed(mrpc_.host().peers(), client.host)) [[unlikely]]
    client.single = mrpc_.single(*client.lower);
  if (message.size() > longest(client.single)) return lose_reply(channel);
  const std::size_t cost = std::max(message.footprint(), kLeastCost);
  channel.reply.set(std::move(message), client.single);
  if (has_room(client, cost)) [[likely]] {
    hold(channel, cost);
    return send_reply(channel, all_of(channel.reply.fragments), false);
  }
  // There is no room to keep it. A client that asks again is told that the call failed, since it must not be executed
  // again.
  ++mrpc_.counters().refused;
  const std::uint32_t sequence = channel.sequence;
  send_reply(channel, all_of(channel.reply.fragments), false);
  if (channel.sequence != sequence || channel.state != ServerChannel::State::replied) return;
  channel.reply.whole.clear();
  if (channel.error == Errc::ok) channel.error = Errc::call_failed;
}

/// Sends the fragments of the saved reply that are in `mask`, or the error in its place; `please_ack`: the last of them
/// asks for an answer.
void Server::send_reply(ServerChannel& channel, std::uint16_t mask, bool please_ack) noexcept {
  Header header = this->header(channel, Type::reply);
  Session& lower = *channel.client.lower;
  if (channel.error != Errc::ok) [[unlikely]] {
    header.bits = kError;
    header.command = static_cast<std::uint16_t>(channel.error);
    return mrpc_.send(lower, header);
  }
  header.fragments = channel.reply.fragments;
  if (header.fragments == 1) [[likely]] {
    header.size = static_cast<std::uint16_t>(channel.reply.whole.size());
    Message copy = channel.reply.whole.share();
    if (copy.size() == header.size && mrpc_.try_send(lower, header, std::move(copy)) == Errc::message_too_long)
      cut_anew(channel, header, !please_ack);
    return;
  }
  const SessionRef keep(&lower);
  bool too_long = false;
  channel.reply.each(header, mask, please_ack, [&](Message&& part) {
    too_long = mrpc_.try_send(lower, header, std::move(part)) == Errc::message_too_long;
    return !too_long && channel.sequence == header.sequence && channel.state == ServerChannel::State::replied;
  });
  if (too_long) cut_anew(channel, header, !please_ack && header.mask == 1);
}

/// The link does not carry the fragment in `refused` any more. `first`: no other one has been sent. Otherwise the
/// client may have fragments of the old size, which do not fit those of another.
void Server::cut_anew(ServerChannel& channel, const Header& refused, bool first) noexcept {
  if (channel.sequence != refused.sequence || channel.state != ServerChannel::State::replied) return;
  std::size_t& single = channel.client.single;
  single = mrpc_.single(*channel.client.lower);
  Outgoing& reply = channel.reply;
  if (!first || single >= reply.cut || reply.whole.size() > longest(single)) return lose_reply(channel);
  reply.set(std::move(reply.whole), single);
  send_reply(channel, all_of(reply.fragments), false);
}

void Server::acknowledge_request(const ServerChannel& channel, std::uint16_t mask) noexcept {
  Header header = this->header(channel, Type::request_ack);
  header.fragments = channel.fragments;
  header.mask = mask;
  mrpc_.send(*channel.client.lower, header);
}

void Server::on_reply_ack(const Header& header) noexcept {
  auto* const client = clients_.resolve({mrpc_.host().hash_seed(), header.client});
  ServerChannel* const channel =
      client == nullptr || header.channel >= kMaxChannels ? nullptr : (*client)->channels[header.channel].get();
  if (channel == nullptr || (*client)->boot_id != header.boot_id || channel->sequence != header.sequence ||
      channel->state != ServerChannel::State::replied || channel->acknowledged)
    return dropped(mrpc_.counters().duplicates);
  channel->last_active = (*client)->last_active = sweeps_;
  if (channel->error != Errc::ok) return send_reply(*channel, 1, false);
  if (header.fragments != channel->reply.fragments) return dropped(mrpc_.counters().malformed);
  const auto missing = static_cast<std::uint16_t>(all_of(header.fragments) & ~header.mask);
  if (missing == 0) {
    channel->acknowledged = true;
    return let_go(*channel);
  }
  mrpc_.counters().retransmissions += static_cast<unsigned>(std::popcount(missing));
  send_reply(*channel, missing, true);
}

// ---- what the server keeps of its clients, and for how long ----

void ServerSession::reply(Message message) noexcept {
  if (channel_ == nullptr || channel_->state != ServerChannel::State::executing) return;  // given up, or answered
  server_.reply(*channel_, std::move(message));
}

Errc ServerSession::control(control::Request& request) noexcept {
  const auto* const why = std::get_if<control::Refuse>(&request);
  if (why == nullptr) return Session::control(request);
  if (channel_ != nullptr && channel_->state == ServerChannel::State::executing) server_.refuse(*channel_, why->reason);
  return Errc::ok;
}

void ServerSession::detach(bool at_work) noexcept {
  if (at_work && references() > 1) {
    abandoned_ = channel_->client.abandoned;
    ++*abandoned_;
  }
  channel_ = nullptr;
}

bool Server::has_room(const Client& client, std::size_t bytes) const noexcept {
  return shim::one_may_take(bytes, client.held, held_, mrpc_.settings().memory);
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
