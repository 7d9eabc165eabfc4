// How long messages between two hosts may be: what each says of its own link (kAgree), and what the routers between
// them say.
#include <algorithm>
#include <array>

#include "lrpc/netrpc/session_cache.h"
#include "lrpc/netrpc/wire.h"
#include "netrpc/devices/device/interface.h"
#include "network_service.h"

namespace lrpc::netd {

namespace {

using netrpc::Message;
using netrpc::Session;
using netrpc::SessionRef;
using netrpc::Shepherd;
using netrpc::Time;

/// The MTU of the path to a host is asked for at most once in kAskAgain. An import waits for the answer at least
/// kShortestAnswer, if it has that time left, and at most kLongestAnswer.
constexpr netrpc::Duration kAskAgain = std::chrono::seconds(10);
constexpr std::chrono::milliseconds kShortestAnswer(10);
constexpr std::chrono::milliseconds kLongestAnswer(200);

constexpr std::size_t kAgreeRequest = 4;
constexpr std::size_t kAgreeReply = 8;

/// The MTU of the link to and from `host`; 0: not known.
std::uint32_t mtu_towards(netrpc::HostAddress host) noexcept {
  return host.known() ? static_cast<std::uint32_t>(netrpc::path_mtu(host)) : 0;
}

}  // namespace

Errc NetworkService::agree(netpath::HostAddress to, netpath::MessageSizes& sizes,
                           std::chrono::milliseconds timeout) noexcept {
  const auto began = std::chrono::steady_clock::now();
  const auto took = [&] {
    return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
  };
  const auto left = [&] { return timeout == kNoLimit ? timeout : timeout - took(); };
  const std::uint32_t mtu = mtu_towards({to});
  const netrpc::BootId life = life_of({to});
  Errc outcome = agree_on(mtu, to, sizes, timeout);
  // The host has restarted since it was last heard: the question was meant for its earlier life, and may be repeated.
  // If the new life does not answer either, the first answer says more about the host (its key may be another one).
  if (outcome == Errc::peer_gone && life_of({to}) != life && left().count() > 0)
    if (const Errc again = agree_on(mtu, to, sizes, left()); again != Errc::host_unreachable) outcome = again;
  if (outcome != Errc::ok) return outcome;
  ask_path(to, took(), left());
  const std::uint32_t learnt = mtu_towards({to});
  if (learnt == 0 || learnt >= mtu) return Errc::ok;
  netpath::MessageSizes smaller;
  const auto rest = left();
  if (rest.count() > 0 && agree_on(learnt, to, smaller, rest) == Errc::ok) {
    sizes = smaller;
    return Errc::ok;
  }
  // The other host does not know the smaller MTU, and routers fragment what it sends: the agreed sizes hold, as far as
  // they are not larger than what is known here.
  outcome = take_mtu(learnt, to, sizes.request);
  if (outcome == Errc::ok) sizes.reply = std::min(sizes.reply, sizes.request);
  return outcome;
}

netrpc::BootId NetworkService::life_of(netrpc::HostAddress host) noexcept {
  const Shepherd inside(this->host().monitor());
  return this->host().peers().boot_id(host);
}

/// Only for a host that has answered, and has shown its key if the graph has AUTH: it knows already that somebody
/// speaks to it. An answer takes a round trip, and `round_trip` was one at least.
void NetworkService::ask_path(netpath::HostAddress to, std::chrono::milliseconds round_trip,
                              std::chrono::milliseconds left) noexcept {
  if (!may_ask_path({to})) return;
  const UniqueFd question = netrpc::ask_path_mtu({to});
  const auto patience = std::clamp(2 * round_trip, kShortestAnswer, kLongestAnswer);
  if (question && left.count() > 0) netrpc::wait_for_answer(question, std::min(patience, left));
}

/// True once in kAskAgain for each host, and for as many hosts as asked_ has places.
bool NetworkService::may_ask_path(netrpc::HostAddress to) noexcept {
  const Shepherd inside(host().monitor());
  const Time now = host().now();
  const auto lately = [now](const Asked& one) { return one.host.known() && now - one.at < kAskAgain; };
  if (std::ranges::any_of(asked_, [&](const Asked& one) { return one.host == to && lately(one); })) return false;
  const auto place = std::ranges::find_if_not(asked_, lately);
  if (place == asked_.end()) return false;
  *place = {to, now};
  return true;
}

Errc NetworkService::agree_on(std::uint32_t own_mtu, netpath::HostAddress to, netpath::MessageSizes& sizes,
                              std::chrono::milliseconds timeout) noexcept {
  std::array<std::byte, kAgreeRequest> request;
  netrpc::WireWriter(request.data()).put(own_mtu);
  std::array<std::byte, kAgreeReply> reply;
  std::size_t size = 0;
  if (const Errc outcome = call(to, kAgree, request, reply, size, timeout, {}); outcome != Errc::ok) return outcome;
  if (size != reply.size()) return Errc::bad_message;
  netrpc::WireReader reader(reply.data());
  auto mtu = reader.get<std::uint32_t>();
  if (own_mtu != 0) mtu = std::min(mtu, own_mtu);
  sizes.reply = reader.get<std::uint32_t>();
  sizes.reply = std::min(sizes.reply, max_message_);
  return take_mtu(mtu, to, sizes.request);
}

Errc NetworkService::take_mtu(std::uint32_t mtu, netpath::HostAddress to, std::size_t& longest_request) noexcept {
  const Shepherd inside(host().monitor());
  if (mtu != 0) host().peers().set_mtu({to}, mtu);
  const Result<SessionRef> opened = session_to({to}, kAgree);
  if (!opened) return transport_outcome(opened.code());
  longest_request = longest(**opened);
  return Errc::ok;
}

/// Inside the monitor. Costs less than most commands, and makes nothing but an entry for a host that has been heard.
void NetworkService::answer_agree(Session& lower, Message request) noexcept {
  Message::Header<kAgreeRequest> asked;
  request.pop(asked);
  if (!asked || !request.empty()) return lower.reply(refusal(Errc::bad_message));
  const auto mtu = netrpc::WireReader(asked.bytes).get<std::uint32_t>();
  const netrpc::HostAddress peer = netrpc::peer_host(lower, lower.participants());
  if (mtu != 0 && peer.known()) host().peers().set_mtu(peer, mtu);
  Message reply = Message::make(host().pool(), kRefusal + kAgreeReply);
  if (!reply.allocated()) return lower.reply(refusal(Errc::limit_reached));
  netrpc::WireWriter(reply.bytes().data())
      .put(std::uint16_t{0})
      .put(mtu_towards(peer))
      .put(static_cast<std::uint32_t>(longest(lower)));
  lower.reply(std::move(reply));
}

}  // namespace lrpc::netd
