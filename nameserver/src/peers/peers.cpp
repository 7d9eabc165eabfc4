#include "peers.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "loop/no_memory.h"
#include "lrpc/detail/shim/printable.h"

namespace lrpc::nameserver {

using shim::BinderMessage;
using std::chrono::milliseconds;

namespace {

/// BindReplies of a clerk: each takes some 0.1 ms, with the BindRequest for the next import that waits.
constexpr std::size_t kAnswersPerTurn = 8;
/// The longest time between two checks for unread messages. There are checks only while there are such messages.
constexpr milliseconds kLongestLook{1000};

}  // namespace

Peers::Peers(EventLoop& loop, ListenSocket listener, const NameserverOptions& options,
             UserAccounts::QuotaSource quota_of, Owner& owner)
    : loop_(loop),
      listener_(std::move(listener)),
      options_(options),
      owner_(owner),
      accounts_(std::move(quota_of), supplies_of(options.limits), ::geteuid()),
      user_log_(options.log) {}

Peers::~Peers() {
  for (const auto& [serial, peer] : connections_) leave_alone(*peer);
  loop_.cancel(unread_look_);
  loop_.forget(listen_watch_);
}

Status Peers::begin() {
  auto listening = loop_.watch(listener_.fd(), {.readable = true}, [this](Readiness) {
    (void)as_memory_allows([&] { accept_peers(); });
    last_accepting_ = loop_.busy_time();
    reap();
  });
  if (!listening) return listening.error();
  listen_watch_ = *listening;
  last_accepting_ = loop_.busy_time();
  return {};
}

Connection* Peers::find(std::uint32_t serial) const noexcept {
  const auto found = connections_.find(serial);
  return found != connections_.end() ? found->second.get() : nullptr;
}

// ---- Receiving ----

void Peers::on_ready(std::uint32_t serial, Readiness readiness) {
  Connection* const found = find(serial);
  if (found == nullptr) return;
  if (!as_memory_allows([&] { hear(*found, readiness); })) doom(*found);
  reap();
}

void Peers::hear(Connection& peer, Readiness readiness) {
  if (readiness.writable || readiness.hung_up) flush(peer);
  // A peer that will send no more and does not read either is not worth waiting for.
  if (readiness.hung_up && !peer.outbox.empty()) doom(peer);

  // One message a turn: to try in vain for a second costs as much as a turn. More of a clerk, for whose answers others
  // wait.
  std::size_t most = std::clamp(peer.binds.size(), std::size_t{1}, kAnswersPerTurn);
  for (; most > 0 && !peer.closing && peer.outbox.empty(); --most) {
    auto message = shim::receive_message(peer.socket.get(), milliseconds(0), shim::Attachments::none);
    if (message.code() == Errc::bad_message) return protocol_error(peer, 0, message.error().text);
    if (!message) return doom(peer);
    if (!*message) return;
    if (!std::holds_alternative<shim::BindReply>((*message)->body)) most = 1;
    owner_.on_message(peer, std::move(**message));
  }
}

// ---- Sending ----

void Peers::send(Connection& peer, std::uint32_t request, shim::BinderBody body) {
  if (peer.closing) return;
  if (!as_memory_allows([&] { send_or_queue(peer, request, std::move(body)); })) doom(peer);
}

void Peers::send_or_queue(Connection& peer, std::uint32_t request, shim::BinderBody body) {
  look_for_unread_soon();
  BinderMessage message{request, std::move(body), {}, {}};
  if (peer.outbox.empty()) {
    const auto sent = shim::send_message(peer.socket.get(), message, kDoNotWait);
    if (sent) return;
    if (sent.code() != Errc::limit_reached) return doom(peer);
  }
  if (peer.outbox.size() >= options_.limits.max_queued_messages)
    return disconnect(peer, "it does not read its answers");
  peer.outbox.push_back(std::move(message));
  if (!loop_.change(peer.watch, {.writable = true})) doom(peer);
}

void Peers::flush(Connection& peer) {
  while (!peer.closing && !peer.outbox.empty()) {
    const auto sent = shim::send_message(peer.socket.get(), peer.outbox.front(), kDoNotWait);
    if (!sent && sent.code() == Errc::limit_reached) return;
    if (!sent) return doom(peer);
    peer.outbox.pop_front();
  }
  if (!peer.closing && !loop_.change(peer.watch, {.readable = true})) doom(peer);
}

void Peers::fail(Connection& peer, std::uint32_t request, const Error& error) {
  if (!as_memory_allows([&] { send(peer, request, shim::Failed::because_of(error, "the nameserver")); })) doom(peer);
}

Status Peers::send_with_fds(Connection& peer, const BinderMessage& message) {
  if (peer.closing) return Errc::peer_gone;
  if (!peer.outbox.empty() || !room_in_flight(peer, message.fds.size())) {
    if (auto room = accounts_.room(peer.peer.uid, Quota::descriptors_in_flight, message.fds.size()); !room) return room;
    return Error{Errc::limit_reached, describe_peer(peer.peer) + " does not read its messages"};
  }
  look_for_unread_soon();
  auto sent = shim::send_message(peer.socket.get(), message, kDoNotWait);
  if (sent) {
    peer.fds_in_flight += message.fds.size();
    accounts_.take(peer.peer.uid, Quota::descriptors_in_flight, message.fds.size());
  } else if (sent.code() == Errc::peer_gone) {
    doom(peer);
  }
  return sent;
}

void Peers::refresh_in_flight(Connection& peer) {
  if (peer.fds_in_flight == 0 || unread_bytes(peer.socket.get()) > 0) return;
  accounts_.give(peer.peer.uid, Quota::descriptors_in_flight, peer.fds_in_flight);
  peer.fds_in_flight = 0;
}

bool Peers::room_in_flight(Connection& peer, std::size_t fds) {
  refresh_in_flight(peer);
  if (peer.fds_in_flight + fds > options_.limits.max_fds_in_flight_per_connection) return false;
  const auto room = [&] { return accounts_.room(peer.peer.uid, Quota::descriptors_in_flight, fds).has_value(); };
  if (room()) return true;
  for (const auto& [serial, one] : connections_) refresh_in_flight(*one);
  ended_.give_back_read();
  return room();
}

void Peers::look_for_unread_soon() {
  if (unread_look_.serial == 0) set_unread_look();
}

/// If there is no memory for the next timer, the last one fires again.
void Peers::set_unread_look() {
  const milliseconds pause = std::min(kLongestLook, options_.unread_timeout / 4);
  unread_look_ = loop_.after(std::max(pause, milliseconds(1)), [this] {
    const bool any = look_for_unread();
    reap();
    if (any) return set_unread_look();
    unread_look_ = {};
  });
}

/// Checks all connections. Returns whether any has unread messages.
bool Peers::look_for_unread() {
  ended_.give_back_read();
  bool any = ended_.any_unread();
  const auto now = Unread::Clock::now();
  const auto patience = options_.unread_timeout == kNoLimit ? Unread::Clock::duration::max()
                                                            : Unread::Clock::duration(options_.unread_timeout);
  for (const auto& [serial, one] : connections_) {
    if (one->closing) continue;
    const bool stays = one->unread.stays(unread_bytes(one->socket.get()), now, patience);
    any = any || one->unread.any();
    if (stays) disconnect(*one, "it does not read its messages");
  }
  return any;
}

// ---- Ending ----

void Peers::protocol_error(Connection& peer, std::uint32_t request, std::string what) {
  if (peer.closing) return;
  log_about(peer.peer, LogLevel::warning, "disconnected " + describe_peer(peer.peer) + ": " + sanitized(what));
  fail(peer, request, {Errc::bad_message, std::move(what)});
  doom(peer);
}

void Peers::disconnect(Connection& peer, const char* why) {
  log_about(peer.peer, LogLevel::warning, "disconnected " + describe_peer(peer.peer) + ": " + why);
  doom(peer);
}

void Peers::doom(Connection& peer) {
  if (peer.closing) return;
  peer.closing = true;
  leave_alone(peer);
  doomed_.push_back(&peer);
}

/// The loop calls no handler for it any more.
void Peers::leave_alone(Connection& peer) {
  loop_.forget(peer.watch);
  loop_.forget(peer.death_watch);
  loop_.cancel(peer.ask_again);
}

void Peers::reap() {
  // Freeing one connection answers others' imports, which can doom more of them.
  while (!doomed_.empty()) {
    Connection& peer = *doomed_.back();
    doomed_.pop_back();
    owner_.on_end(peer);
    leave_alone(peer);  // what has been watched since doom()
    refresh_in_flight(peer);
    ended_.take(peer);
    connections_.erase(peer.serial);
    ended_.give_back_closed();
  }
  // Without memory, the next end or the next message starts the checks.
  if (ended_.any_unread()) (void)as_memory_allows([&] { look_for_unread_soon(); });
}

void Peers::log(LogLevel level, std::string_view line) const {
  if (options_.log) (void)as_memory_allows([&] { options_.log(level, line); });
}

void Peers::log_about(const shim::Credentials& peer, LogLevel level, std::string_view line) {
  (void)as_memory_allows([&] { user_log_.write(level, peer.uid, line); });
}

void Peers::log_refusal(const shim::Credentials& peer, const Error& why) {
  log_about(peer, LogLevel::info, describe_peer(peer) + " was refused: " + sanitized(why.message()));
}

bool has_ended(const Connection& server) noexcept { return shim::has_ended(server.pidfd.get()); }

std::string sanitized(std::string_view text) { return shim::printable(text, shim::kMaxReasonLength); }

std::string describe_peer(const shim::Credentials& peer) {
  return "process " + std::to_string(peer.pid) + " (user " + std::to_string(peer.uid) + ")";
}

}  // namespace lrpc::nameserver
