// Names: export, withdraw, list, describe.
#include <poll.h>
#include <unistd.h>

#include "core.h"

namespace lrpc::nameserver {

using shim::BinderMessage;

namespace {

bool hung_up(int socket) noexcept {
  pollfd entry{socket, 0, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLERR)) != 0;
}

std::string version_of(const shim::OwnedInterfaceId& interface) {
  return interface.name + " " + std::to_string(interface.major) + "." + std::to_string(interface.minor);
}

}  // namespace

/// What the connection and its user may still export.
Status Core::room_for_export(const Connection& peer, const shim::ExportRequest& body) {
  const std::size_t bytes = body.text.size() + body.descriptors.size();
  if (peer.exports.size() >= options_.limits.max_exports_per_connection ||
      peer.export_bytes + bytes > options_.limits.max_export_bytes_per_connection) {
    return Error{Errc::limit_reached, "this connection exports too much"};
  }
  if (auto room = accounts_.room(peer.peer.uid, Quota::names); !room) return room;
  return accounts_.room(peer.peer.uid, Quota::declaration_bytes, bytes);
}

// B2
void Core::on(Connection& peer, std::uint32_t request, shim::ExportRequest body) {
  if (auto allowed = may_export(peer, body); !allowed) return fail(peer, request, allowed.error());
  if (auto room = room_for_export(peer, body); !room) return fail(peer, request, room.error());
  auto layout = shim::RegionLayout::of(body.classes);
  if (!layout) return fail(peer, request, layout.error());
  if (layout->size() > options_.limits.max_region_bytes) {
    return fail(peer, request,
                {Errc::limit_reached, "a binding would take " + std::to_string(layout->size()) +
                                          " bytes, this nameserver allows " +
                                          std::to_string(options_.limits.max_region_bytes)});
  }
  if (const auto held = exports_.find(body.name); held != exports_.end()) {
    Connection& holder = *held->second.server;
    // A server that restarts must not lose against its own hang-up that has not been heard yet.
    if (&holder == &peer || !hung_up(holder.socket.get())) {
      return fail(peer, request,
                  {Errc::name_taken, "'" + body.name + "' is exported by " + describe_peer(holder.peer)});
    }
    doom(holder);
    remove_exports(holder);
  }
  if (auto watched = watch_process(peer); !watched) return fail(peer, request, watched.error());

  const ExportId id = ++last_export_;
  log_about(peer.peer, LogLevel::info,
            describe_peer(peer.peer) + " exports '" + body.name + "' (" + version_of(body.interface) + ")");
  peer.exports.emplace(id, body.name);
  peer.export_bytes += body.text.size() + body.descriptors.size();
  accounts_.take(peer.peer.uid, Quota::names);
  accounts_.take(peer.peer.uid, Quota::declaration_bytes, body.text.size() + body.descriptors.size());
  exports_.emplace(body.name, Export{id, &peer, std::move(body.interface), std::move(body.classes), std::move(*layout),
                                     std::move(body.text), std::move(body.descriptors)});
  send(peer, request, shim::Exported{id});
  share_page(peer);
  serve_waiting(body.name);
}

/// Without its page a server polls by its own rule: nothing is lost, and the next export tries again.
void Core::share_page(Connection& server) {
  if (!allocator_ || server.closing || allocator_->has(server.serial)) return;
  auto page = allocator_->add(server.serial, server.peer);
  if (!page) return log_about(server.peer, LogLevel::warning, page.error().message());
  BinderMessage message{0, shim::PollerPage{}, {}, {}};
  message.fds.push_back(*std::move(page));
  if (!send_with_fds(server, message)) allocator_->remove(server.serial);
}

void Core::on(Connection& peer, std::uint32_t request, const shim::WakeAllocator&) {
  if (!allocator_ || !allocator_->has(peer.serial)) {
    return protocol_error(peer, request, "WakeAllocator: this peer shares no page with the allocator");
  }
  allocator_->wake();
}

/// B5. The process that connected is the one that exports: when it ends the name goes, whoever else still holds the
/// socket.
Status Core::watch_process(Connection& server) {
  if (server.pidfd) return {};
  auto pidfd = shim::peer_pidfd(server.socket.get());
  if (!pidfd) return pidfd.error();
  auto watched = loop_.watch(pidfd->get(), {.readable = true}, [this, serial = server.serial](Readiness) {
    if (const auto found = connections_.find(serial); found != connections_.end()) doom(*found->second);
    reap();
  });
  if (!watched) return watched.error();
  server.pidfd = std::move(*pidfd);
  server.death_watch = *watched;
  return {};
}

// B6
void Core::on(Connection& peer, std::uint32_t request, const shim::WithdrawRequest& body) {
  if (!peer.exports.contains(body.export_id)) {
    return fail(peer, request, {Errc::invalid_argument, "this connection has no such export"});
  }
  // Clerks that are being asked may still answer: the client came before the withdrawal.
  remove_export(peer, body.export_id);
  send(peer, request, shim::Withdrawn{});
}

void Core::remove_export(Connection& server, ExportId id) {
  const auto owned = server.exports.find(id);
  const auto found = exports_.find(owned->second);
  log_about(server.peer, LogLevel::info, "'" + owned->second + "' is withdrawn");
  server.export_bytes -= found->second.bytes();
  accounts_.give(server.peer.uid, Quota::names);
  accounts_.give(server.peer.uid, Quota::declaration_bytes, found->second.bytes());
  const std::string name = std::move(owned->second);
  exports_.erase(found);
  server.exports.erase(owned);

  // Who still waits, behind others, came for a name that was there: now its own time counts, and not its turn.
  const auto waiting = waiting_.find(name);
  if (waiting == waiting_.end()) return;
  const auto now = EventLoop::Clock::now();
  const std::set<ImportId> ids = waiting->second;
  for (const ImportId import : ids) {
    Import& one = imports_.at(import);
    if (one.deadline && *one.deadline <= now) {
      answer_import(import, {Errc::name_unknown, "'" + name + "' was withdrawn before its turn came"});
    } else {
      wait_for_name(import, one);
    }
  }
}

// B7
void Core::remove_exports(Connection& server) {
  while (!server.exports.empty()) remove_export(server, server.exports.begin()->first);
}

void Core::on(Connection& peer, std::uint32_t request, const shim::ListRequest& body) {
  // A page is what fits one message for certain; the fixed part of a ListedName takes 26 bytes.
  std::size_t room = shim::kMaxBinderMessage - 64;
  shim::Listed page;
  for (auto at = exports_.upper_bound(body.after); at != exports_.end(); ++at) {
    const auto& [name, exported] = *at;
    const std::size_t size = 26 + name.size() + exported.interface.name.size();
    if (size > room) {
      page.more = true;
      break;
    }
    room -= size;
    page.names.push_back({name, exported.interface, exported.server->peer});
  }
  send(peer, request, std::move(page));
}

void Core::on(Connection& peer, std::uint32_t request, const shim::DescribeRequest& body) {
  const auto found = exports_.find(body.name);
  if (found == exports_.end()) {
    return fail(peer, request, {Errc::name_unknown, "nobody exports '" + body.name + "'"});
  }
  send(peer, request, shim::Described{found->second.interface, found->second.text, found->second.descriptors});
}

}  // namespace lrpc::nameserver
