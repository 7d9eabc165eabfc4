#include "clerk.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "domain.h"

namespace lrpc::server {
namespace {

constexpr std::chrono::seconds kAnswerTime{10};

shim::OwnedInterfaceId owned(const InterfaceId& id) { return {std::string(id.name), id.major, id.minor, id.hash}; }

shim::BinderMessage failed_answer(std::uint32_t request, const Error& error) {
  shim::BinderMessage answer;
  answer.request = request;
  answer.body = shim::Failed{error.code, error.message()};
  return answer;
}

Status authorise(const ServedInterface& interface, const shim::Credentials& client) {
  if (!interface.options.authorise) return {};
  Status decision = interface.options.authorise(client);
  if (decision) return decision;
  Error error = decision.error();
  return Error{Errc::not_permitted, "the server's clerk refused: " + error.message()};
}

}  // namespace

// ---- Requests to the nameserver, from the program's threads ----

Status Clerk::connect_locked() {
  if (closed_) return Error{Errc::invalid_argument, "the server is being destroyed"};
  if (nameserver_) return {};
  auto socket = shim::connect_nameserver(domain_.options().nameserver);
  if (!socket) return socket.error();
  nameserver_ = *std::move(socket);
  auto watched = domain_.watcher().watch(nameserver_.get(), [this, fd = nameserver_.get()](shim::Watcher::Event event) { on_nameserver(fd, event.id); });
  if (!watched) {
    nameserver_.reset();
    return watched.error();
  }
  nameserver_watch_ = *watched;
  return {};
}

Result<shim::BinderMessage> Clerk::ask(shim::BinderMessage request) {
  std::future<Result<shim::BinderMessage>> answer;
  std::uint32_t number = 0;
  {
    std::lock_guard lock(mutex_);
    if (Status connected = connect_locked(); !connected) return connected.error();
    number = request.request;
    answer = asked_[number].get_future();
    if (Status sent = shim::send_message(nameserver_.get(), request); !sent) {
      asked_.erase(number);
      return sent.error();
    }
  }
  if (answer.wait_for(kAnswerTime) == std::future_status::ready) return answer.get();
  std::lock_guard lock(mutex_);
  asked_.erase(number);
  return Error{Errc::timed_out, "the nameserver did not answer in time"};
}

Result<ExportId> Clerk::export_interface(std::string name, std::shared_ptr<ServedInterface> interface) {
  if (!shim::valid_name(name)) {
    return Error{Errc::invalid_argument,
                 "'" + name + "' is not a name: 1 to 255 printable ASCII characters without space, '@' or '/'"};
  }
  shim::BinderMessage request;
  {
    std::lock_guard lock(mutex_);
    request.request = ++last_request_;
    exporting_[request.request] = interface;
  }
  const Pdl& pdl = *interface->pdl;
  request.body = shim::ExportRequest{.name = std::move(name),
                                     .interface = owned(pdl.interface),
                                     .classes = {pdl.classes.begin(), pdl.classes.end()},
                                     .text = std::string(pdl.text)};
  const std::uint32_t number = request.request;
  auto answer = ask(std::move(request));
  std::lock_guard lock(mutex_);
  exporting_.erase(number);
  if (!answer) return answer.error();
  if (auto* failed = std::get_if<shim::Failed>(&answer->body)) return Error{failed->code, failed->text};
  if (auto* done = std::get_if<shim::Exported>(&answer->body)) return ExportId{done->export_id};
  return Error{Errc::bad_message, "the nameserver's answer to an export makes no sense"};
}

Status Clerk::withdraw(ExportId id) {
  shim::BinderMessage request;
  {
    std::lock_guard lock(mutex_);
    request.request = ++last_request_;
    exports_.erase(static_cast<std::uint64_t>(id));
  }
  request.body = shim::WithdrawRequest{static_cast<std::uint64_t>(id)};
  auto answer = ask(std::move(request));
  if (!answer) return answer.error();
  if (auto* failed = std::get_if<shim::Failed>(&answer->body)) return Error{failed->code, failed->text};
  return {};
}

void Clerk::close() {
  std::uint64_t watch = 0;
  std::vector<std::shared_ptr<PrivateSocket>> sockets;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    watch = std::exchange(nameserver_watch_, 0);
    for (auto& [fd, socket] : private_) sockets.push_back(socket);
    private_.clear();
  }
  // Outside the lock: a callback that runs now may want it.
  if (watch != 0) domain_.watcher().unwatch(watch);
  for (const auto& socket : sockets) domain_.watcher().unwatch(socket->watch);
  std::lock_guard lock(mutex_);
  nameserver_.reset();
}

// ---- The nameserver's messages, on the watcher's thread ----

void Clerk::on_nameserver(int socket, shim::Watcher::Id watch) {
  auto received = shim::receive_message(socket, std::chrono::milliseconds(0));
  if (!received) {
    hang_up_nameserver(watch);
    return;
  }
  if (!received->has_value()) return;
  shim::BinderMessage message = std::move(**received);
  if (std::holds_alternative<shim::BindRequest>(message.body)) {
    on_bind_request(socket, std::move(message));
    return;
  }
  std::lock_guard lock(mutex_);
  const auto asked = asked_.find(message.request);
  if (asked == asked_.end()) return;  // nobody waits for it any more
  if (auto* done = std::get_if<shim::Exported>(&message.body)) {
    // Known before the next message is read, which may be a bind request for it.
    if (const auto it = exporting_.find(message.request); it != exporting_.end()) exports_[done->export_id] = it->second;
  }
  asked->second.set_value(std::move(message));
  asked_.erase(asked);
}

void Clerk::hang_up_nameserver(shim::Watcher::Id watch) {
  domain_.watcher().unwatch(watch);
  std::lock_guard lock(mutex_);
  nameserver_watch_ = 0;
  nameserver_.reset();
  exports_.clear();
  for (auto& [number, promise] : asked_) promise.set_value(Error{Errc::peer_gone, "the nameserver hung up"});
  asked_.clear();
}

std::shared_ptr<ServedInterface> Clerk::exported(std::uint64_t export_id) {
  std::lock_guard lock(mutex_);
  const auto found = exports_.find(export_id);
  return found != exports_.end() ? found->second : nullptr;
}

void Clerk::on_bind_request(int socket, shim::BinderMessage message) {
  auto& request = std::get<shim::BindRequest>(message.body);
  const Status bound = bind(request, std::move(message.fds));
  shim::BinderMessage reply;
  reply.request = message.request;
  reply.body = shim::BindReply{request.binding_id, bound.code(), bound ? std::string() : bound.error().message()};
  (void)shim::send_message(socket, reply);
}

Status Clerk::bind(shim::BindRequest& request, std::vector<UniqueFd> fds) {
  const auto interface = exported(request.export_id);
  if (interface == nullptr) return Error{Errc::name_unknown, "the name has been withdrawn"};
  if (fds.size() != 3) return Error{Errc::bad_message, "a bind request without its descriptors"};
  if (Status allowed = authorise(*interface, request.client); !allowed) return allowed;
  auto layout = shim::RegionLayout::of(interface->pdl->classes);
  if (!layout) return layout.error();
  auto region = shim::Region::map(std::move(fds[0]), *std::move(layout));
  if (!region) return region.error();
  ServedParts parts;
  parts.id = domain_.next_binding_id();
  parts.nonce = request.nonce;
  parts.client = request.client;
  parts.region = *std::move(region);
  parts.client_pidfd = std::move(fds[1]);
  parts.bell = std::move(fds[2]);
  parts.gate = request.gate;
  parts.interface = interface;
  return domain_.add_binding(std::move(parts));
}

// ---- Private bindings: the clerk is the binder ----

Status Clerk::serve_over(UniqueFd socket, std::shared_ptr<ServedInterface> interface) {
  const int on = 1;
  if (setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
    return system_error("serve_over: SO_PASSCRED", errno);
  }
  auto shared = std::make_shared<PrivateSocket>(PrivateSocket{std::move(socket), 0, std::move(interface)});
  std::lock_guard lock(mutex_);
  if (closed_) return Error{Errc::invalid_argument, "the server is being destroyed"};
  auto watched = domain_.watcher().watch(shared->fd.get(), [this, shared](shim::Watcher::Event event) { on_private(shared, event.id); });
  if (!watched) return watched.error();
  shared->watch = *watched;
  private_[shared->fd.get()] = shared;
  return {};
}

void Clerk::on_private(const std::shared_ptr<PrivateSocket>& socket, shim::Watcher::Id watch) {
  auto received = shim::receive_message(socket->fd.get(), std::chrono::milliseconds(0));
  if (!received) {
    // Garbage or the end: either way there is nothing more to say. Bindings made over it live on.
    if (received.code() == Errc::bad_message) {
      (void)shim::send_message(socket->fd.get(), failed_answer(0, received.error()), false);
    }
    hang_up(socket, watch);
    return;
  }
  if (!received->has_value()) return;
  auto answer = bind_privately(*socket, **received);
  const auto message = answer ? *std::move(answer) : failed_answer((*received)->request, answer.error());
  (void)shim::send_message(socket->fd.get(), message, false);
}

Result<shim::BinderMessage> Clerk::bind_privately(const PrivateSocket& socket, const shim::BinderMessage& message) {
  const auto* wanted = std::get_if<shim::ImportRequest>(&message.body);
  if (wanted == nullptr) return Error{Errc::bad_message, "a private client may only import"};
  if (!message.sender) return Error{Errc::bad_message, "the client's credentials are missing"};
  const Pdl& pdl = *socket.interface->pdl;
  if (Status fits = shim::compatible(wanted->interface.view(), pdl.interface); !fits) return fits.error();
  if (Status allowed = authorise(*socket.interface, *message.sender); !allowed) return allowed.error();

  auto layout = shim::RegionLayout::of(pdl.classes);
  if (!layout) return layout.error();
  auto region_fd = shim::create_region(*layout);
  if (!region_fd) return region_fd.error();
  UniqueFd own_fd(fcntl(region_fd->get(), F_DUPFD_CLOEXEC, 0));
  if (!own_fd) return system_error("dup of a region", errno);
  auto region = shim::Region::map(std::move(own_fd), *std::move(layout));
  if (!region) return region.error();
  auto bells = shim::make_socket_pair();
  if (!bells) return bells.error();
  auto pidfd = shim::open_pidfd(message.sender->pid);
  if (!pidfd) return pidfd.error();

  ServedParts parts;
  parts.id = domain_.next_binding_id();
  parts.nonce = shim::make_nonce();
  parts.client = *message.sender;
  parts.region = *std::move(region);
  parts.client_pidfd = *std::move(pidfd);
  parts.bell = std::move(bells->first);
  parts.gate = wanted->gate;
  parts.interface = socket.interface;

  shim::BinderMessage answer;
  answer.request = message.request;
  answer.body = shim::Bound{.binding_id = parts.id, .nonce = parts.nonce, .server = {}, .classes = {pdl.classes.begin(), pdl.classes.end()}};
  answer.fds.push_back(*std::move(region_fd));
  answer.fds.push_back(std::move(bells->second));
  if (Status added = domain_.add_binding(std::move(parts)); !added) return added.error();
  return answer;
}

void Clerk::hang_up(const std::shared_ptr<PrivateSocket>& socket, shim::Watcher::Id watch) {
  domain_.watcher().unwatch(watch);
  std::lock_guard lock(mutex_);
  private_.erase(socket->fd.get());
}

}  // namespace lrpc::server
