#include "binder.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "loop/no_memory.h"

namespace lrpc::nameserver {

using Clock = EventLoop::Clock;
using shim::BinderMessage;

namespace {
/// Descriptors of a BindRequest: region, client's pidfd, bell.
constexpr std::size_t kBindFds = 3;
/// Pause until a server that does not read is asked again: doubling, from the first to the longest.
constexpr std::chrono::milliseconds kFirstAskAgain{10};
constexpr std::chrono::milliseconds kLongestAskAgain{1000};

/// The user whose turn the import takes.
ImportLine::User user_of(const Import& import) noexcept {
  return {import.client->peer.uid, import.wanted.principal ? import.wanted.principal->host : 0};
}

}  // namespace

Status Binder::may_import(const Connection& client, const std::string& name, const Connection* server) {
  Status may = policy_->may_import(WholePeer(client).get(), name, server != nullptr ? &server->peer : nullptr);
  if (!may) peers_.log_refusal(client.peer, may.error());
  return may;
}

/// Whether the import may be put in line for its name. The error is for its client.
Status Binder::may_wait(Connection& peer, const shim::ImportRequest& wanted) {
  const std::string& name = wanted.name;
  if (name.find('@') != std::string::npos)
    return Error{Errc::remote_unavailable,
                 "'" + name + "' is on another host: the network domain is to be asked for it, not the nameserver"};
  if (!shim::valid_name(name)) return Error{Errc::invalid_argument, "'" + name + "' is no name that could be exported"};
  if (peer.imports.size() >= options_.limits.max_imports_per_connection)
    return Error{Errc::limit_reached, "this connection has too many imports under way"};
  if (auto room = peers_.accounts().room(peer.peer.uid, Quota::imports); !room) return room;
  if (wanted.principal && !is_network_domain(peer)) {
    // After a start the network domain may import before it has exported its name: so this is no permanent refusal.
    if (registry_.find(shim::kNetworkName) == nullptr)
      return Error{Errc::name_unknown, "nobody speaks for other hosts here, at present"};
    return Error{Errc::not_permitted, "only this machine's network domain speaks for other hosts"};
  }
  // Before the answer reveals anything about the name.
  const Connection* const server = registry_.server_of(name);
  if (auto may = may_import(peer, name, server); !may) return may;
  if (wanted.timeout_ms == 0 && server == nullptr) return Error{Errc::name_unknown, "nobody exports '" + name + "'"};
  return {};
}

// 1. An import arrives, and is put in line for its name, behind its user's imports of all names of this server.
void Binder::on(Connection& peer, std::uint32_t request, shim::ImportRequest body) {
  if (auto may = may_wait(peer, body); !may) return peers_.fail(peer, request, may.error());
  const ImportId id = ++last_import_;
  peer.imports.insert(id);  // first, so that the connection's end undoes all, even after a bad_alloc
  Import& import = imports_[id];
  import.client = &peer;
  import.request = request;
  import.wanted = std::move(body);
  if (import.wanted.timeout_ms != shim::ImportRequest::kForever)
    import.deadline = Clock::now() + std::chrono::milliseconds(import.wanted.timeout_ms);
  peers_.accounts().take(peer.peer.uid, Quota::imports);
  wait_for_name(id, import);
  if (Connection* const server = registry_.server_of(import.wanted.name); server != nullptr) serve_waiting_of(*server);
}

/// Whether `peer` is the process that exports kNetworkName, and is alive: only then nobody else can have its pid.
bool Binder::is_network_domain(const Connection& peer) const {
  const Connection* const network = registry_.server_of(shim::kNetworkName);
  return network != nullptr && !network->closing && network->peer.pid == peer.peer.pid &&
         network->peer.uid == peer.peer.uid && !has_ended(*network);
}

// B8
void Binder::wait_for_name(ImportId id, Import& import) {
  waiting_[import.wanted.name].insert(id);
  Connection* const server = registry_.server_of(import.wanted.name);
  if (server != nullptr) server->waiting.insert(user_of(import), id);
  loop_.cancel(import.timer);
  if (!import.deadline) return;
  auto wait = *import.deadline - Clock::now();
  // If the name exists, the import only waits for its turn, and each turn is bounded.
  if (server != nullptr) wait = std::max<Clock::duration>(wait, options_.bind_timeout);
  const auto over = [this, id] { on_time_over(id); };  // clang-format 14 breaks it where it is an argument
  import.timer = loop_.after(wait, over);
}

/// Called when the name or its server has gone. If the import has time left, it waits for the next server that exports
/// the name, and the result is true; else it is answered with `late`.
bool Binder::wait_on(ImportId id, Import& import, const Error& late) {
  if (import.deadline && *import.deadline <= Clock::now()) {
    answer_import(id, late);
    return false;
  }
  const Status waits = as_memory_allows([&] { wait_for_name(id, import); });
  if (!waits) answer_import(id, waits.error());
  return waits.has_value();
}

void Binder::on_exported(Connection& server, const std::string& name) {
  const auto waiting = waiting_.find(name);
  if (waiting == waiting_.end()) return;
  for (const ImportId id : waiting->second) server.waiting.insert(user_of(imports_.at(id)), id);
  serve_waiting_of(server);
}

// 2. Whenever the name is there and its server can be asked once more, the next user in line has its turn. A server has
// one line for all its names. So nobody can keep others from one name by imports of another, nor by many imports.
void Binder::serve_waiting_of(Connection& server) {
  while (!server.closing && !server.waiting.empty() && server.binds.size() < options_.limits.max_binds_per_server) {
    const ImportId id = server.waiting.next();
    Import& import = imports_.at(id);
    if (import.client->closing) {  // nobody would get the binding
      erase_import(id);
      continue;
    }
    const ImportLine::User user = user_of(import);
    const auto asked = as_memory_allows([&] { return ask_clerk(id, import, *registry_.find(import.wanted.name)); });
    // A server that was found dead loses the name when it is reaped; until then the import stays in line.
    if (server.closing) return;
    if (asked && *asked == Asked::not_now) {
      // Its next answer shows that it reads, and makes us try again.
      if (server.binds.empty()) ask_again_soon(server);
      return;
    }
    server.waiting.had_turn(user);
    if (!asked) answer_import(id, asked.error());
  }
}

/// For a server that has not read what it was sent, and owes no answer that would make us try again.
void Binder::ask_again_soon(Connection& server) {
  if (server.ask_again.serial != 0) return;  // nor later, for others wait for it
  server.ask_again_pause = std::clamp(server.ask_again_pause * 2, kFirstAskAgain, kLongestAskAgain);
  const auto again = [this, serial = server.serial] {
    if (Connection* const found = peers_.find(serial)) found->ask_again = {}, serve_waiting_of(*found);
    peers_.reap();
  };
  if (!as_memory_allows([&] { server.ask_again = loop_.after(server.ask_again_pause, again); }))
    peers_.doom(server);  // nobody would ever ask it again
}

// 3. B9: the kernel's part: check, allocate the pairwise memory, ask the clerk. Nothing is kept on failure.
Result<Binder::Asked> Binder::ask_clerk(ImportId id, Import& import, const Export& exported) {
  Connection& server = *exported.server;
  const std::string& name = import.wanted.name;
  if (auto fits = shim::compatible(import.wanted.interface.view(), exported.interface.view()); !fits)
    return fits.error();
  if (auto may = may_import(*import.client, name, &server); !may) return may.error();

  // The server seems not to have read what it was sent before. That delays the import, but does not refuse it.
  if (!server.outbox.empty() || !peers_.room_in_flight(server, kBindFds)) return Asked::not_now;

  const uid_t user = import.client->peer.uid;
  if (auto room = peers_.accounts().room(user, Quota::region_bytes, exported.layout.size()); !room) return room.error();
  if (auto room = peers_.accounts().room(user, Quota::binds); !room) return room.error();
  auto region = shim::create_region(exported.layout);
  if (!region) return region.error();
  auto bell = shim::make_socket_pair();
  if (!bell) return bell.error();
  auto client_pidfd = shim::peer_pidfd(import.client->socket.get());
  if (!client_pidfd) return client_pidfd.error();

  PendingBind bind{};
  bind.id = server.next_binding();
  bind.server = &server;
  bind.nonce = shim::make_nonce();
  bind.classes = exported.classes;
  // The server, which gets the other end, must not send on it. So whoever closes this end last, this process or the
  // client, finds nothing unread of the server's that could delay the close.
  if (::shutdown(bell->first.get(), SHUT_RD) != 0) return system_error("shutdown of a bell", errno);
  bind.client_bell = std::move(bell->first);

  const auto client = shim::ClientCredentials::of(import.client->peer, import.client->peer.groups);
  BinderMessage ask;
  ask.body = shim::BindRequest{exported.id, bind.id, bind.nonce, client, import.wanted.gate, import.wanted.principal};
  ask.fds.push_back(std::move(*region));
  ask.fds.push_back(std::move(*client_pidfd));
  ask.fds.push_back(std::move(bell->second));
  // What needs memory must be done before the request is sent.
  EventLoop::TimerId timer;
  const auto take_back = [&] {
    loop_.cancel(timer);
    binds_.erase(bind.id);
    server.binds.erase(id);
  };
  Status sent;
  try {
    timer = loop_.after(options_.bind_timeout, [this, id] { on_time_over(id); });
    binds_.emplace(bind.id, id);
    server.binds.insert(id);
    sent = peers_.send_with_fds(server, ask);
  } catch (const std::bad_alloc&) {
    take_back();
    throw;
  }
  if (!sent) {
    take_back();
    if (sent.code() == Errc::limit_reached) return Asked::not_now;
    return Error{sent.code(), "the server of '" + name + "' cannot be asked: " + sent.error().message()};
  }
  bind.region = std::move(ask.fds.front());
  bind.region_bytes = exported.layout.size();
  peers_.accounts().take(user, Quota::region_bytes, bind.region_bytes);
  peers_.accounts().take(user, Quota::binds);

  leave_line(id, import);
  import.timer = timer;
  import.bind = std::move(bind);
  return Asked::yes;
}

// 4. The clerk has decided.
void Binder::on(Connection& peer, std::uint32_t request, const shim::BindReply& body) {
  const auto pending = binds_.find(body.binding_id);
  Import* import = pending != binds_.end() ? &imports_.at(pending->second) : nullptr;
  if (import == nullptr || import->bind->server != &peer) {
    // Late, because the client left or its time was over: no harm. Never asked of this peer: a forgery.
    if (!peer.has_issued(body.binding_id))
      peers_.protocol_error(peer, request, "BindReply: this peer was not asked about such a binding");
    return;
  }
  const ImportId id = pending->second;
  if (body.code == Errc::name_unknown) return on_withdrawn_meanwhile(id, *import, peer);
  peer.ask_again_pause = {};  // it reads, and decides
  if (body.code == Errc::ok) {
    introduce(id, *import);
  } else {
    const Errc code = shim::code_for_peer(body.code);
    const bool own_trouble = code == Errc::limit_reached || code == Errc::not_supported;
    answer_import(id, error_of(own_trouble ? code : Errc::not_permitted, [&] {
                    const std::string text = body.text.empty() ? "without a reason" : sanitized(body.text);
                    return sanitized("the server of '" + import->wanted.name + "' refused: " + text);
                  }));
  }
  serve_waiting_of(peer);
}

/// The clerk has withdrawn the name, and its WithdrawRequest is on its way to us. That is no refusal: the import goes
/// on waiting, for the next server that exports the name.
void Binder::on_withdrawn_meanwhile(ImportId id, Import& import, Connection& server) {
  const Error withdrawn = error_of(Errc::name_unknown, [&] { return "'" + import.wanted.name + "' was withdrawn"; });
  end_bind(id, import);
  wait_on(id, import, withdrawn);
  // Not at once, and later each time: a server that gives this answer for ever, and keeps the name, must not keep us
  // busy.
  ask_again_soon(server);
}

// 5. B12: the client gets its half. With the end of this function the nameserver holds nothing of the binding.
void Binder::introduce(ImportId id, Import& import) {
  const Status sent = as_memory_allows([&] { return send_its_half(import); });
  if (!sent) return answer_import(id, sent.error());
  erase_import(id);
}

/// On failure the bell's end is closed: so the server learns that no client will come.
Status Binder::send_its_half(Import& import) {
  Connection& client = *import.client;
  PendingBind& bind = *import.bind;
  // A copy of the server's pidfd travels; the original goes on watching the server.
  UniqueFd server_pidfd(::fcntl(bind.server->pidfd.get(), F_DUPFD_CLOEXEC, 0));
  if (!server_pidfd) return system_error("cannot copy the server's pidfd", errno);

  BinderMessage bound;
  bound.request = import.request;
  bound.body = shim::Bound{bind.id, bind.nonce, bind.server->peer, std::move(bind.classes)};
  bound.fds.push_back(std::move(bind.region));
  bound.fds.push_back(std::move(server_pidfd));
  bound.fds.push_back(std::move(bind.client_bell));
  peers_.log_about(client.peer, LogLevel::debug,
                   describe_peer(client.peer) + " is bound to '" + import.wanted.name + "'");
  return peers_.send_with_fds(client, bound);
}

/// B10: the time is over: the import's to wait for its name, or the clerk's to answer.
void Binder::on_time_over(ImportId id) {
  const auto found = imports_.find(id);
  if (found == imports_.end()) return;
  Import& import = found->second;
  const std::string name = import.wanted.name;
  if (import.bind) {
    Connection& server = *import.bind->server;
    peers_.log_about(import.client->peer, LogLevel::warning,
                     "the clerk of '" + name + "' did not answer: " + describe_peer(server.peer));
    answer_import(id, {Errc::timed_out, "the server of '" + name + "' did not answer"});
    serve_waiting_of(server);
  } else if (const Connection* const server = registry_.server_of(name); server != nullptr) {
    const bool reads = !server->binds.empty() || unread_bytes(server->socket.get()) == 0;
    const char* const why = reads ? "has too many imports to answer" : "does not read what it is sent";
    answer_import(id, {Errc::timed_out, "the server of '" + name + "' " + why});
  } else {
    answer_import(id, {Errc::name_unknown,
                       "nobody exported '" + name + "' within " + std::to_string(import.wanted.timeout_ms) + " ms"});
  }
  peers_.reap();
}

/// B14: the clerk's answer does not matter any more; region and bell are closed.
void Binder::end_bind(ImportId id, Import& import) {
  if (!import.bind) return;
  binds_.erase(import.bind->id);
  import.bind->server->binds.erase(id);
  peers_.accounts().give(import.client->peer.uid, Quota::region_bytes, import.bind->region_bytes);
  peers_.accounts().give(import.client->peer.uid, Quota::binds);
  import.bind.reset();
}

void Binder::answer_import(ImportId id, const Error& error) {
  Import& import = imports_.at(id);
  Connection& client = *import.client;
  const std::uint32_t request = import.request;
  erase_import(id);
  peers_.fail(client, request, error);
}

void Binder::erase_import(ImportId id) {
  Import& import = imports_.at(id);
  end_bind(id, import);
  leave_line(id, import);
  import.client->imports.erase(id);
  peers_.accounts().give(import.client->peer.uid, Quota::imports);
  imports_.erase(id);
}

/// Ends the wait for its name, and its timer.
void Binder::leave_line(ImportId id, Import& import) {
  loop_.cancel(import.timer);
  Connection* const server = registry_.server_of(import.wanted.name);
  if (server != nullptr) server->waiting.erase(user_of(import), id);
  const auto waiting = waiting_.find(import.wanted.name);
  if (waiting == waiting_.end()) return;
  waiting->second.erase(id);
  if (waiting->second.empty()) waiting_.erase(waiting);
}

void Binder::on_withdrawn(Connection& server, const std::string& name) {
  const auto waiting = waiting_.find(name);
  if (waiting == waiting_.end()) return;
  for (const ImportId id : waiting->second) server.waiting.erase(user_of(imports_.at(id)), id);  // needs no memory
  const Error late{Errc::name_unknown, "'" + name + "' was withdrawn before its turn came"};
  const std::set<ImportId> ids = waiting->second;
  for (const ImportId id : ids) wait_on(id, imports_.at(id), late);
}

void Binder::on_new_policy() {
  std::vector<std::pair<ImportId, Error>> refused;
  for (const auto& [name, ids] : waiting_) {
    const Connection* const server = registry_.server_of(name);
    for (const ImportId id : ids)
      if (auto may = may_import(*imports_.at(id).client, name, server); !may) refused.emplace_back(id, may.error());
  }
  for (const auto& [id, why] : refused) answer_import(id, why);
}

void Binder::on_end(Connection& peer) noexcept {
  orphan_binds(peer);
  drop_imports(peer);
}

/// B15: the client is gone, and so are its imports. Their servers may be asked about other imports instead.
void Binder::drop_imports(Connection& client) noexcept {
  while (!client.imports.empty()) {
    const ImportId id = *client.imports.begin();
    const auto found = imports_.find(id);
    if (found == imports_.end()) {  // there was no memory for it
      client.imports.erase(id);
      continue;
    }
    const auto& bind = found->second.bind;
    Connection* const server = bind ? bind->server : nullptr;
    erase_import(id);
    if (server != nullptr) serve_waiting_of(*server);
  }
}

/// B13: the server is gone while its clerk was being asked: the import waits for the name again if it has time left.
void Binder::orphan_binds(Connection& server) noexcept {
  while (!server.binds.empty()) {
    const ImportId id = *server.binds.begin();
    Import& import = imports_.at(id);
    end_bind(id, import);
    const Error gone =
        error_of(Errc::peer_gone, [&] { return "the server of '" + import.wanted.name + "' went away"; });
    if (!wait_on(id, import, gone)) continue;
    if (Connection* const next = registry_.server_of(import.wanted.name); next != nullptr) serve_waiting_of(*next);
  }
}

}  // namespace lrpc::nameserver
