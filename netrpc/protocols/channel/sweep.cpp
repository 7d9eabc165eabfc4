// How long a host remembers its clients' channels, the replies to them, and its peers.
#include <algorithm>
#include <utility>
#include <vector>

#include "netrpc/protocols/channel/protocol.h"
#include "netrpc/src/attempt.h"

namespace lrpc::netrpc::channel {

void ChannelProtocol::forget_life(const ChannelPeer& peer, BootId life) noexcept {
  recorded_.unbind({life, hash_seed_}, &peer);
}

void ChannelProtocol::list(ServerChannel& channel) noexcept {
  channel.epoch_ = epoch_;
  unused_.push_back(channel);
}

void ChannelProtocol::drop(ServerChannel& channel) noexcept {
  ChannelPeer& peer = *channel.peer_;
  const ChannelKey gone = key_of(channel, peer);
  std::vector<ServerChannel*>& all = peer.servers;
  all.back()->place = channel.place;
  all[channel.place] = all.back();
  all.pop_back();
  if (all.empty()) forget_life(peer, peer.boot_id);  // the present life only: ended ones stay
  if (channel.state_ != ServerChannel::State::executing) unused_.remove(channel);
  channel.vanish();
  servers_.unbind(gone);
}

void ChannelProtocol::sweep() noexcept {
  ++epoch_;
  while (!unused_.empty() && epoch_ - unused_.first()->epoch_ > packet_epochs_) drop(*unused_.first());
  for (ServerChannel* channel = unused_.first(); channel != nullptr && epoch_ - channel->epoch_ > reply_epochs_;
       channel = channel->link.after) {
    if (channel->state_ != ServerChannel::State::answered) continue;
    channel->let_go_of_reply();
    channel->state_ = ServerChannel::State::forgotten;
  }
  drop_unused_peers(false);
  if (!peers_.empty()) host().events().schedule(sweep_, sweep_period_);
}

void ChannelProtocol::drop_unused_peers(bool at_once) noexcept {
  if (learning_ != 0) return;
  const Time now = host().now();
  struct Gone {
    HostAddress host;
    bool known = false;  // to other sessions that lead to it
  };
  std::vector<Gone> gone;
  peers_.unbind_if([&](const Session*, std::unique_ptr<ChannelPeer>& peer) {
    std::erase_if(peer->ended, [&](const ChannelPeer::EndedLife& life) {
      const bool over = at_once || life.until <= now;
      if (over) forget_life(*peer, life.boot_id);
      return over;
    });
    if (peer->servers.empty()) peer->other_way = {};
    const bool called = peer->called != 0 && epoch_ - peer->called <= packet_epochs_ && !at_once;
    const bool served = !peer->servers.empty() || *peer->abandoned != 0;
    const bool used = !peer->clients.empty() || served || !peer->ended.empty() || called;
    const bool unused_before = std::exchange(peer->unused_before, !used);
    if (used || !(unused_before || at_once)) return false;
    forget_calls_to(*peer);
    attempt([&] {  // if memory is short, the host is remembered for longer
      gone.push_back({peer->host});
      for (const HostAddress host : peer->called_as) gone.push_back({host});
    });
    return true;
  });
  if (gone.empty()) return;
  std::ranges::sort(gone, {}, &Gone::host);
  const auto same = [](const Gone& a, const Gone& b) { return a.host == b.host; };
  gone.erase(std::unique(gone.begin(), gone.end(), same), gone.end());
  peers_.for_each([&](const Session*, std::unique_ptr<ChannelPeer>& peer) {
    const auto found = std::ranges::lower_bound(gone, peer->host, {}, &Gone::host);
    if (found != gone.end() && found->host == peer->host) found->known = true;
  });
  for (const Gone& one : gone)
    if (!one.known && called_.resolve({hash_seed_, one.host}) == nullptr) host().peers().forget(one.host);
}

}  // namespace lrpc::netrpc::channel
