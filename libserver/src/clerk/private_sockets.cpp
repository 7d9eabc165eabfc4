#include "private_sockets.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "bindings.h"

namespace lrpc::server {
namespace {

shim::BinderMessage failed_answer(std::uint32_t request, const Error& error) {
  return {request, shim::Failed::because_of(error, "the server"), {}, {}};
}

/// The credentials of a message's sender, with its groups if the kernel knows them. For a socket it knows the groups of
/// the process that connected it or made the pair; they are used if that process is the sender, with the same user and
/// group, and lives, so that its number is its own. (A pair that a server makes for a child with fewer rights has the
/// server's groups.) All processes outside of this process namespace have pid 0, and cannot be told apart. Errors: as
/// peer_pidfd(), except that the process has ended.
Result<shim::ClientCredentials> with_groups(int socket, const shim::Credentials& sender) {
  const auto peer = shim::peer_credentials(socket);
  bool same = peer && peer->pid > 0 && peer->pid == sender.pid && peer->uid == sender.uid && peer->gid == sender.gid;
  if (same) {
    const auto lives = shim::peer_pidfd(socket);
    if (!lives && lives.code() != Errc::peer_gone) return lives.error();
    same = static_cast<bool>(lives);
  }
  return shim::ClientCredentials::of(sender, same ? shim::peer_groups(socket) : std::nullopt);
}

/// The client's pidfd: that of the process that has sent the request, if the kernel has told (`told`). By its number,
/// another process could be found that has the number since then.
Result<UniqueFd> pidfd_of_client(shim::NextSender told, const shim::Credentials& client) {
  if (client.pid == 0 || !told.who) return shim::pidfd_of_sender(client);
  const bool same = told.who->pid == client.pid && told.who->uid == client.uid && told.who->gid == client.gid;
  // If it lives now, no other process has had its number.
  if (same && told.pidfd && !shim::has_ended(told.pidfd.get())) return std::move(told.pidfd);
  if (told.lacks != 0) return system_error("the client's pidfd", told.lacks);
  return Error{Errc::peer_gone, "the client's process is no more"};
}

/// Whether the next message may have been sent before the kernel was asked for credentials. `left`: the bytes that may.
bool next_is_early(int socket, int& left) noexcept {
  if (left == 0) return false;
  const ssize_t size = recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
  left -= static_cast<int>(std::clamp<ssize_t>(size, 0, left));
  return true;
}

}  // namespace

void PrivateSockets::close() {
  decltype(sockets_) sockets;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    sockets.swap(sockets_);
  }
  // Outside the lock: a callback that runs now may take it.
  for (const auto& [fd, socket] : sockets) watcher_.unwatch(socket->watch);
}

Status PrivateSockets::serve_over(shim::PeerSocket socket, std::shared_ptr<ServedInterface> interface) {
  const auto early = shim::ask_for_senders(socket.get());
  if (!early) return early.error();
  // The process may have inherited the socket by dup2(2), without the flag: programs that it executes would get it,
  // too.
  (void)fcntl(socket.get(), F_SETFD, FD_CLOEXEC);
  const auto peer = shim::peer_credentials(socket.get());
  const auto user = peer ? shim::Watcher::User(peer->uid) : std::nullopt;
  auto shared = std::make_shared<PrivateSocket>(PrivateSocket{std::move(socket), 0, std::move(interface), *early});
  std::lock_guard lock(mutex_);
  if (closed_) return Error{Errc::invalid_argument, "the server is being destroyed"};
  const auto place = sockets_.insert_or_assign(shared->fd.get(), shared).first;
  try {
    const auto on_news = [this, shared](shim::Watcher::Event event) { on_message(shared, event.id); };
    auto watched = watcher_.watch(shared->fd.get(), on_news, user, shim::Watcher::For::messages);
    if (watched) {
      shared->watch = *watched;
      return {};
    }
    sockets_.erase(place);
    return watched.error();
  } catch (const std::bad_alloc&) {
    sockets_.erase(place);
    throw;
  }
}

void PrivateSockets::on_message(const std::shared_ptr<PrivateSocket>& socket, shim::Watcher::Id watch) noexcept try {
  const bool early = next_is_early(socket->fd.get(), socket->early);
  shim::NextSender told = shim::next_sender(socket->fd.get());
  auto received = shim::receive_message(socket->fd.get(), std::chrono::milliseconds(0), shim::Attachments::none);
  if (!received) {
    // Garbage or the end: either way there is nothing to answer. Bindings made over the socket live on.
    if (received.code() == Errc::bad_message)
      (void)shim::send_message(socket->fd.get(), failed_answer(0, received.error()), kDoNotWait);
    hang_up(socket, watch);
    return;
  }
  if (!received->has_value()) return;
  auto answer = bind(*socket, **received, early, std::move(told));
  const auto message = answer ? *std::move(answer) : failed_answer((*received)->request, answer.error());
  const Status sent = shim::send_message(socket->fd.get(), message, kDoNotWait);
  const auto* bound = std::get_if<shim::Bound>(&message.body);
  if (bound == nullptr) return;
  if (sent) return bindings_.expect_call(bound->binding_id);
  // Too many descriptors are in flight, or there is no memory: an answer without descriptors may still arrive.
  bindings_.end(bound->binding_id);
  const Error why{Errc::limit_reached, "the server could not send the binding: " + sent.error().message()};
  (void)shim::send_message(socket->fd.get(), failed_answer(message.request, why), kDoNotWait);
} catch (const std::bad_alloc&) {
  hang_up(socket, watch);  // this is the answer: no bindings are made over it any more
}

Result<shim::BinderMessage> PrivateSockets::bind(const PrivateSocket& socket, const shim::BinderMessage& message,
                                                 bool early, shim::NextSender told) {
  const auto* wanted = std::get_if<shim::ImportRequest>(&message.body);
  if (wanted == nullptr) return Error{Errc::bad_message, "a private client may only import"};
  if (!shim::sender_known(message, early)) return Error{Errc::bad_message, "the client's credentials are missing"};
  const Pdl& pdl = *socket.interface->pdl;
  if (Status fits = shim::compatible(wanted->interface.view(), pdl.interface); !fits) return fits.error();
  const auto client = with_groups(socket.fd.get(), *message.sender);
  if (!client) return client.error();
  if (Status allowed = authorise(*socket.interface, *client); !allowed) return allowed.error();
  auto layout = shim::RegionLayout::of(pdl.classes);
  if (!layout) return layout.error();
  if (Status room = bindings_.room_for(*message.sender, 0, *socket.interface, wanted->gate); !room) return room.error();
  auto region_fd = shim::create_region(*layout);
  if (!region_fd) return region_fd.error();
  auto region = shim::Region::map(region_fd->get(), *std::move(layout));
  if (!region) return region.error();
  auto bells = shim::make_socket_pair();
  if (!bells) return bells.error();
  auto pidfd = pidfd_of_client(std::move(told), *message.sender);
  if (!pidfd) return pidfd.error();

  ServedParts parts;
  parts.id = bindings_.next_id();
  parts.nonce = shim::make_nonce();
  parts.client = *message.sender;
  parts.region = *std::move(region);
  parts.client_pidfd = *std::move(pidfd);
  parts.bell = std::move(bells->first);
  parts.gate = wanted->gate;
  parts.interface = socket.interface;

  shim::Bound bound{
      .binding_id = parts.id, .nonce = parts.nonce, .server = {}, .classes = {pdl.classes.begin(), pdl.classes.end()}};
  shim::BinderMessage answer{message.request, std::move(bound), {}, {}};
  answer.fds.push_back(*std::move(region_fd));
  answer.fds.push_back(std::move(bells->second));
  if (Status added = bindings_.add(std::move(parts)); !added) return added.error();
  return answer;
}

void PrivateSockets::hang_up(const std::shared_ptr<PrivateSocket>& socket, shim::Watcher::Id watch) {
  watcher_.unwatch(watch);
  std::lock_guard lock(mutex_);
  sockets_.erase(socket->fd.get());
}

}  // namespace lrpc::server
