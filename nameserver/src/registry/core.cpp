// Connections: how peers come, are heard, are answered, and go.
#include "core.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace lrpc::nameserver {

using shim::BinderMessage;

namespace {

constexpr int kPeersPerEvent = 32;  ///< Accepted before other events get their turn.
constexpr std::chrono::milliseconds kAcceptPause{100};

/// The messages that a nameserver answers.
template <class Body, class... Others>
constexpr bool kOneOf = (std::is_same_v<Body, Others> || ...);
template <class Body>
constexpr bool kForNameserver = kOneOf<Body, shim::ExportRequest, shim::WithdrawRequest, shim::ImportRequest,
                                       shim::BindReply, shim::ListRequest, shim::DescribeRequest, shim::WakeAllocator>;

}  // namespace

Core::Core(EventLoop& loop, ListenSocket listener, const NameserverOptions& options)
    : loop_(loop),
      listener_(std::move(listener)),
      options_(options),
      policy_(options.policy),
      accounts_([this](uid_t user) { return policy_->quota(user, options_.limits.user); }, supplies_of(options_.limits),
                ::geteuid()),
      user_log_(options.log) {}

Core::~Core() {
  for (const auto& [serial, peer] : connections_) {
    loop_.forget(peer->watch);
    loop_.forget(peer->death_watch);
    loop_.cancel(peer->ask_again);
  }
  loop_.cancel(unread_look_);
  for (const EventLoop::WatchId extra : extra_watches_) loop_.forget(extra);
  loop_.forget(new_policy_watch_);
  loop_.forget(listen_watch_);
}

Status Core::begin() {
  auto listening = loop_.watch(listener_.fd(), {.readable = true}, [this](Readiness) {
    accept_peers();
    reap();
  });
  if (!listening) return listening.error();
  listen_watch_ = *listening;
  begin_allocator();
  if (auto begun = begin_policy(); !begun) return begun;
  if (options_.stop_fd < 0) return {};
  auto stopping = loop_.watch(options_.stop_fd, {.readable = true}, [this](Readiness) { loop_.stop(); });
  if (!stopping) return stopping.error();
  return {};
}

void Core::begin_allocator() {
  if (options_.allocator_tick == kNoLimit) return;
  MachineLoadSource load = options_.machine_load;
  if (!load) {
    auto proc = proc_machine_load();
    if (!proc) return log(LogLevel::warning, "no processors are allocated: " + proc.error().message());
    load = *std::move(proc);
  }
  allocator_.emplace(loop_, options_.allocator_tick, options_.allocator_rules_always, std::move(load));
}

void Core::accept_peers() {
  for (int i = 0; i < kPeersPerEvent; ++i) {
    UniqueFd socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      admit(std::move(socket));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EAGAIN) {
      log(LogLevel::warning, system_error("cannot accept a connection, trying again soon: accept4", errno).text);
      pause_accepting();
    }
    return;
  }
}

/// Without this a peer that cannot be accepted (no descriptors, no memory) would keep the loop spinning.
void Core::pause_accepting() {
  if (!loop_.change(listen_watch_, {})) return;
  accept_pause_ = loop_.after(kAcceptPause, [this] {
    if (!loop_.change(listen_watch_, {.readable = true})) pause_accepting();
  });
}

void Core::admit(UniqueFd socket) {
  auto who = shim::peer_credentials(socket.get());
  if (!who) return;
  give_back_closed();
  if (short_of_memory()) return;
  Status room = accounts_.room(who->uid, Quota::connections);
  if (!room && take_connection_back(*who)) room = accounts_.room(who->uid, Quota::connections);
  if (!room) {
    log_about(*who, LogLevel::warning, "turned away " + describe_peer(*who) + ": " + room.error().message());
    const shim::Failed failed{Errc::limit_reached, room.error().message()};
    // Only a courtesy; the peer learns as much from the end of file.
    [[maybe_unused]] const auto told = shim::send_message(socket.get(), {0, failed, {}, {}}, false);
    return;
  }

  auto peer = std::make_unique<Connection>();
  do {
    peer->serial = ++last_serial_;
  } while (connections_.contains(peer->serial) || peer->serial == 0);
  peer->peer = Peer{*who, shim::peer_groups(socket.get())};
  if (auto& groups = peer->peer.groups; groups && groups->size() > kMostGroupsKept)
    groups = std::vector(groups->begin(), groups->begin() + kMostGroupsKept);
  auto hold = std::make_shared<const int>();
  peer->open = hold;
  peer->socket = shim::PeerSocket(std::move(socket), shim::PeerSocket::Made::here, {who->uid, std::move(hold)});
  auto watched = loop_.watch(peer->socket.get(), {.readable = true},
                             [this, serial = peer->serial](Readiness readiness) { on_ready(serial, readiness); });
  if (!watched) {
    log_about(peer->peer, LogLevel::warning, watched.error().message());
    return;
  }
  peer->watch = *watched;
  const std::uint32_t serial = peer->serial;
  accounts_.take(who->uid, Quota::connections);
  connections_.emplace(serial, std::move(peer));
  // Who connects has something to ask, and has most often sent it by now: that saves a turn of the loop.
  on_ready(serial, {.readable = true});
}

void Core::on_ready(std::uint32_t serial, Readiness readiness) {
  const auto found = connections_.find(serial);
  if (found == connections_.end()) return;
  Connection& peer = *found->second;
  if (readiness.writable || readiness.hung_up) flush(peer);
  // Who will send no more and does not read either is not worth waiting for.
  if (readiness.hung_up && !peer.outbox.empty()) doom(peer);

  // One message an event: the others get their turn, and to look in vain for a second costs as much as the event.
  if (!peer.closing && peer.outbox.empty()) {
    auto message = shim::receive_message(peer.socket.get(), std::chrono::milliseconds(0), shim::Attachments::none);
    if (message && *message) {
      on_message(peer, std::move(**message));
    } else if (message.code() == Errc::bad_message) {
      protocol_error(peer, 0, message.error().text);
    } else if (!message) {
      doom(peer);
    }
  }
  reap();
}

void Core::on_message(Connection& peer, BinderMessage message) {
  std::visit(
      [&](auto&& body) {
        using Body = std::remove_cvref_t<decltype(body)>;
        constexpr bool kStays = kOneOf<Body, shim::ExportRequest, shim::ImportRequest>;
        if constexpr (kStays) {
          if (short_of_memory()) {
            return fail(peer, message.request, {Errc::limit_reached, "the nameserver is short of memory"});
          }
        }
        if constexpr (kForNameserver<Body>) {
          on(peer, message.request, std::forward<decltype(body)>(body));
        } else {
          protocol_error(peer, message.request, "only a nameserver sends this message");
        }
      },
      std::move(message.body));
}

void Core::send(Connection& peer, std::uint32_t request, shim::BinderBody body) {
  if (peer.closing) return;
  look_for_unread_soon();
  BinderMessage message{request, std::move(body), {}, {}};
  if (peer.outbox.empty()) {
    const auto sent = shim::send_message(peer.socket.get(), message, false);
    if (sent) return;
    if (sent.code() != Errc::limit_reached) return doom(peer);
  }
  if (peer.outbox.size() >= options_.limits.max_queued_messages) {
    log_about(peer.peer, LogLevel::warning,
              "disconnected " + describe_peer(peer.peer) + ": it does not read its answers");
    return doom(peer);
  }
  peer.outbox.push_back(std::move(message));
  if (!loop_.change(peer.watch, {.writable = true})) doom(peer);
}

void Core::flush(Connection& peer) {
  while (!peer.closing && !peer.outbox.empty()) {
    const auto sent = shim::send_message(peer.socket.get(), peer.outbox.front(), false);
    if (!sent && sent.code() == Errc::limit_reached) return;
    if (!sent) return doom(peer);
    peer.outbox.pop_front();
  }
  if (!peer.closing && !loop_.change(peer.watch, {.readable = true})) doom(peer);
}

void Core::fail(Connection& peer, std::uint32_t request, const Error& error) {
  const std::string text = error.message();
  send(peer, request, shim::Failed{error.code, text});
}

/// Sends now or not at all: descriptors never wait in an outbox.
Status Core::send_with_fds(Connection& peer, const BinderMessage& message) {
  if (peer.closing) return Errc::peer_gone;
  if (!peer.outbox.empty() || !room_in_flight(peer, message.fds.size())) {
    if (auto room = accounts_.room(peer.peer.uid, Quota::descriptors_in_flight, message.fds.size()); !room) return room;
    return Error{Errc::limit_reached, describe_peer(peer.peer) + " does not read its messages"};
  }
  look_for_unread_soon();
  auto sent = shim::send_message(peer.socket.get(), message, false);
  if (sent) {
    peer.fds_in_flight += message.fds.size();
    accounts_.take(peer.peer.uid, Quota::descriptors_in_flight, message.fds.size());
  } else if (sent.code() == Errc::peer_gone) {
    doom(peer);
  }
  return sent;
}

void Core::protocol_error(Connection& peer, std::uint32_t request, std::string what) {
  if (peer.closing) return;
  log_about(peer.peer, LogLevel::warning, "disconnected " + describe_peer(peer.peer) + ": " + sanitized(what));
  fail(peer, request, {Errc::bad_message, std::move(what)});
  doom(peer);
}

/// Ends a connection. It is freed by reap() at the end of the event, so that whoever is at work on it can finish.
void Core::doom(Connection& peer) {
  if (peer.closing) return;
  peer.closing = true;
  loop_.forget(peer.watch);
  loop_.forget(peer.death_watch);
  loop_.cancel(peer.ask_again);
  doomed_.push_back(&peer);
}

void Core::reap() {
  // Freeing one connection answers others' imports, which can doom more of them.
  while (!doomed_.empty()) {
    Connection& peer = *doomed_.back();
    doomed_.pop_back();
    remove_exports(peer);
    orphan_binds(peer);
    drop_imports(peer);
    if (allocator_) allocator_->remove(peer.serial);
    leave_unread(peer);
    if (peer.socket) {
      closing_.emplace_back(peer.peer.uid, peer.open);
    } else {
      accounts_.give(peer.peer.uid, Quota::connections);
    }
    connections_.erase(peer.serial);
    give_back_closed();
  }
}

/// A connection counts until its socket is closed, which can wait for its peer, on another thread.
void Core::give_back_closed() {
  std::erase_if(closing_, [this](const auto& one) {
    if (!one.second.expired()) return false;
    accounts_.give(one.first, Quota::connections);
    return true;
  });
}

void Core::log(LogLevel level, std::string_view line) const {
  if (options_.log) options_.log(level, line);
}

/// What a peer can bring about as often as it likes.
void Core::log_about(const shim::Credentials& peer, LogLevel level, std::string_view line) {
  user_log_.write(level, peer.uid, line);
}

std::string sanitized(std::string_view text) {
  std::string clean(text.substr(0, shim::kMaxReasonLength));
  std::ranges::replace_if(
      clean, [](char c) { return c < ' ' || c > '~'; }, '?');
  return clean;
}

std::string describe_peer(const shim::Credentials& peer) {
  return "process " + std::to_string(peer.pid) + " (user " + std::to_string(peer.uid) + ")";
}

}  // namespace lrpc::nameserver
