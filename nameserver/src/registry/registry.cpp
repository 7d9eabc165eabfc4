#include "registry.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "loop/no_memory.h"

namespace lrpc::nameserver {
namespace {

/// Whether a declaration may have this character: it is shown on terminals, of other users, too.
bool declares(char c) noexcept { return (c >= ' ' && c <= '~') || c == '\n'; }

}  // namespace

/// All checks of an export except its size and whether the name is taken.
Status Registry::may_export(const Connection& peer, const shim::ExportRequest& body) {
  if (!shim::valid_name(body.name))
    return Error{Errc::invalid_argument, "'" + body.name + "' cannot be exported: a name is 1 to " +
                                             std::to_string(shim::kMaxNameLength) +
                                             " printable ASCII characters without space, '@' and '/'"};
  if (body.interface.name.empty()) return Error{Errc::invalid_argument, "the interface has no name"};
  if (!std::ranges::all_of(body.text, declares))
    return Error{Errc::invalid_argument, "the interface's declaration has other characters than printable ASCII"};
  if (!may_have_name(peer.peer.uid, body.name, ::geteuid()))
    return Error{Errc::not_permitted, "'" + body.name + "' is for lrpc's own daemons: root or the nameserver's user"};
  Status may = policy_->may_export(WholePeer(peer).get(), body.name);
  if (!may) peers_.log_refusal(peer.peer, may.error());
  return may;
}

/// Whether the connection and its user may export one name more, whose declaration has so many bytes.
Status Registry::room_for_export(const Connection& peer, std::size_t bytes) {
  if (peer.exports.size() >= limits_.max_exports_per_connection ||
      peer.export_bytes + bytes > limits_.max_export_bytes_per_connection)
    return Error{Errc::limit_reached, "this connection exports too much"};
  if (auto room = peers_.accounts().room(peer.peer.uid, Quota::names); !room) return room;
  return peers_.accounts().room(peer.peer.uid, Quota::declaration_bytes, bytes);
}

// B2
void Registry::on(Connection& peer, std::uint32_t request, shim::ExportRequest body) {
  if (auto allowed = may_export(peer, body); !allowed) return peers_.fail(peer, request, allowed.error());
  // Before the quotas, in which the last holder may still count.
  if (const auto held = exports_.find(body.name); held != exports_.end()) {
    Connection& holder = *held->second.server;
    // A restarted server must get its name although the end of the one before has not been handled yet.
    if (&holder == &peer || !(shim::hung_up(holder.socket.get()) || has_ended(holder)))
      return peers_.fail(peer, request,
                         {Errc::name_taken, "'" + body.name + "' is exported by " + describe_peer(holder.peer)});
    peers_.doom(holder);
    on_end(holder);
    if (peer.closing) return;  // an import of its own has ended, and it could not be told
  }
  const std::size_t bytes = body.text.size() + body.descriptors.size();
  if (auto room = room_for_export(peer, bytes); !room) return peers_.fail(peer, request, room.error());
  auto layout = shim::RegionLayout::of(body.classes);
  if (!layout) return peers_.fail(peer, request, layout.error());
  if (layout->size() > limits_.max_region_bytes)
    return peers_.fail(
        peer, request,
        {Errc::limit_reached, "a binding would take " + std::to_string(layout->size()) +
                                  " bytes, this nameserver allows " + std::to_string(limits_.max_region_bytes)});
  if (auto watched = watch_process(peer); !watched) return peers_.fail(peer, request, watched.error());

  const ExportId id = ++last_export_;
  peers_.log_about(
      peer.peer, LogLevel::info,
      describe_peer(peer.peer) + " exports '" + body.name + "' (" + shim::version_of(body.interface.view()) + ")");
  // In this order: if there is no memory for the rest, the connection's end takes back what has been added.
  peer.exports.emplace(id, body.name);
  exports_.emplace(body.name, Export{id, &peer, std::move(body.interface), std::move(body.classes), std::move(*layout),
                                     std::move(body.text), std::move(body.descriptors)});
  peer.export_bytes += bytes;
  peers_.accounts().take(peer.peer.uid, Quota::names);
  peers_.accounts().take(peer.peer.uid, Quota::declaration_bytes, bytes);
  peers_.send(peer, request, shim::Exported{id});
  followers_.on_exported(peer, body.name);
}

/// B5. The process that connected owns the name: when it ends the name goes, even if others still hold the socket.
Status Registry::watch_process(Connection& server) {
  if (server.pidfd) return {};
  auto pidfd = shim::peer_pidfd(server.socket.get());
  if (!pidfd) return pidfd.error();
  const auto on_death = [this, serial = server.serial](Readiness) {
    if (Connection* const ended = peers_.find(serial); ended != nullptr) peers_.doom(*ended);
    peers_.reap();
  };
  auto watched = loop_.watch(pidfd->get(), {.readable = true}, on_death, server.peer.uid);
  if (!watched) return watched.error();
  server.pidfd = std::move(*pidfd);
  server.death_watch = *watched;
  return {};
}

// B6
void Registry::on(Connection& peer, std::uint32_t request, const shim::WithdrawRequest& body) {
  if (!peer.exports.contains(body.export_id))
    return peers_.fail(peer, request, {Errc::invalid_argument, "this connection has no such export"});
  // Clerks that are being asked may still answer: the client came before the withdrawal.
  remove_export(peer, body.export_id);
  peers_.send(peer, request, shim::Withdrawn{});
}

void Registry::remove_export(Connection& server, ExportId id) noexcept {
  const auto owned = server.exports.extract(id);
  const std::string& name = owned.mapped();
  const auto found = exports_.find(name);
  if (found == exports_.end() || found->second.id != id) return;  // there was no memory for it
  server.export_bytes -= found->second.bytes();
  peers_.accounts().give(server.peer.uid, Quota::names);
  peers_.accounts().give(server.peer.uid, Quota::declaration_bytes, found->second.bytes());
  exports_.erase(found);

  (void)as_memory_allows([&] { peers_.log_about(server.peer, LogLevel::info, "'" + name + "' is withdrawn"); });
  // If there is no memory, clients that wait for the name wait until their turn would have come.
  (void)as_memory_allows([&] { followers_.on_withdrawn(server, name); });
}

// B7
void Registry::on_end(Connection& server) noexcept {
  while (!server.exports.empty()) remove_export(server, server.exports.begin()->first);
}

void Registry::on(Connection& peer, std::uint32_t request, const shim::ListRequest& body) {
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
  peers_.send(peer, request, std::move(page));
}

void Registry::on(Connection& peer, std::uint32_t request, const shim::DescribeRequest& body) {
  const auto found = exports_.find(body.name);
  if (found == exports_.end())
    return peers_.fail(peer, request, {Errc::name_unknown, "nobody exports '" + body.name + "'"});
  peers_.send(peer, request, shim::Described{found->second.interface, found->second.text, found->second.descriptors});
}

void Registry::on_new_policy() {
  for (const auto& [name, exported] : exports_) {
    if (policy_->may_export(WholePeer(*exported.server).get(), name)) continue;
    peers_.log(LogLevel::warning, describe_peer(exported.server->peer) + " exports '" + name +
                                      "', which the policy would not allow now: the name stays until that process "
                                      "withdraws it");
  }
}

const Export* Registry::find(std::string_view name) const {
  const auto found = exports_.find(name);
  return found != exports_.end() ? &found->second : nullptr;
}

Connection* Registry::server_of(std::string_view name) const {
  const Export* const exported = find(name);
  return exported != nullptr ? exported->server : nullptr;
}

}  // namespace lrpc::nameserver
