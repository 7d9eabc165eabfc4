// The import call (LRPC §3.1): from a name, or a private socket, to a Binding Object.
#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "answer_slack.h"
#include "binding/library.h"
#include "import.h"
#include "lrpc/detail/shim/binder/ask_nameserver.h"
#include "lrpc/detail/shim/system/cancellation.h"
#include "lrpc/detail/shim/system/processor.h"

namespace lrpc {

std::chrono::milliseconds client::answer_slack{10'000};

namespace {

using client::answer_slack;
using client::ImportWish;
using std::chrono::milliseconds;

/// Pauses between attempts to reach a nameserver that has ended; they double from the first to the longest.
constexpr milliseconds kFirstPause{50};
constexpr milliseconds kLongestPause{1'000};

/// How long to wait for the name.
milliseconds wait_of(const ImportOptions& options) { return options.timeout.value_or(kDoNotWait); }

/// How long to wait for the answer. A private import has no name to wait for: its timeout is for the answer alone.
milliseconds patience_of(const ImportOptions& options, bool is_private) {
  const milliseconds wait = wait_of(options);
  if (wait == kNoLimit) return wait;
  const milliseconds told(shim::ImportRequest::wire_timeout(wait));
  return is_private && options.timeout ? told : told + answer_slack;
}

bool is_watched(const ImportOptions& options) {
  return options.watcher && options.gate != Gate::trap;  // a sealed process has one thread; a trap shows the end
}

/// Prepares what a process needs once for all its bindings, while the nameserver and the server work on its first
/// import: this takes 0.1 ms. What fails here fails again when it is needed, and is reported then.
void get_ready(const ImportOptions& options) try {
  (void)shim::ticks_per_microsecond();
  if (is_watched(options)) (void)client::Library::get().watcher.start();
} catch (const std::bad_alloc&) {
}

Result<shim::BinderMessage> ask(int socket, std::string_view name, const ImportWish& wish, const ImportOptions& options,
                                const shim::Stranger& server) {
  shim::ImportRequest request{.name = std::string(name),
                              .interface = shim::OwnedInterfaceId::of(wish.interface),
                              .timeout_ms = shim::ImportRequest::wire_timeout(wait_of(options)),
                              .gate = options.gate,
                              .principal = wish.principal};
  const milliseconds patience = patience_of(options, wish.is_private);
  const Status sent = shim::send_message(socket, {1, std::move(request), {}, {}}, patience);
  if (sent.code() == Errc::limit_reached) return Error{Errc::timed_out, "nobody read the import request in time"};
  if (sent.code() == Errc::peer_gone && !wish.is_private) return shim::last_words(socket, sent.error());
  if (!sent) return sent.error();

  get_ready(options);
  // The nameserver is trusted; a private server is not.
  const auto attachments = wish.is_private ? shim::Attachments::taken_in : shim::Attachments::trusted;
  auto answer = shim::receive_message(socket, patience, attachments, server);
  if (!answer) return answer.error();
  if (!answer->has_value()) return Error{Errc::timed_out, "nobody answered the import request in time"};
  return std::move(**answer);
}

/// B19: checks the answer, without trusting it, against what this client was compiled for. Takes those descriptors out
/// of `answer` that are of the expected kind.
Result<client::BindingParts> accept(shim::BinderMessage& answer, const ImportWish& wish, const ImportOptions& options,
                                    const shim::Stranger& server, std::vector<AStackClass>* classes) {
  const bool is_private = wish.is_private;
  if (auto* failed = std::get_if<shim::Failed>(&answer.body)) return Error{failed->code, std::move(failed->text)};
  if (answer.fds_lost)
    return Error{Errc::limit_reached,
                 "this process is out of file descriptors: a binding needs three (four while it is made, if lrpcd is "
                 "outside of this process namespace), the first of a process two more"};
  auto* bound = std::get_if<shim::Bound>(&answer.body);
  const std::size_t wanted_fds = is_private ? 2 : 3;
  if (bound == nullptr || answer.fds.size() != wanted_fds)
    return Error{Errc::bad_message, "the answer to an import is not a binding"};
  // The client writes on the bell and watches it for the server's end.
  if (!shim::is_socket_pair_end(answer.fds[wanted_fds - 1].get()))
    return Error{Errc::bad_message, "the binding's bell is not one"};
  if (is_private && shim::is_socket_pair_end(answer.fds[0].get()))
    return Error{Errc::bad_message, "the binding's region is not one, but a socket"};
  // A caller that was not compiled for a layout takes the one that the nameserver has given the region.
  if (classes != nullptr) *classes = bound->classes;
  if (classes == nullptr && !std::ranges::equal(bound->classes, wish.classes))
    return Error{Errc::hash_mismatch, "the server's A-stacks differ from this client's: regenerate both sides' stubs"};
  auto layout = shim::RegionLayout::of(bound->classes);
  if (!layout) return layout.error();
  auto region = shim::Region::map(answer.fds[0].get(), *std::move(layout));
  if (!region) return region.error();
  answer.fds[0].reset();  // the mapping keeps the memory

  client::BindingParts parts;
  parts.id = bound->binding_id;
  parts.nonce = bound->nonce;
  parts.region = *std::move(region);
  parts.bell = shim::PeerSocket(std::move(answer.fds[wanted_fds - 1]),
                                is_private ? shim::PeerSocket::Made::by_peer : shim::PeerSocket::Made::here, server);
  parts.gate = options.gate;
  parts.supply = options.supply;
  parts.grown_idle = options.grown_idle;
  parts.call_timeout = options.call_timeout;
  parts.watched = is_watched(options);
  parts.on_revoked = options.on_revoked;
  if (!is_private) {
    // A server can send nothing on its bell: the nameserver has ensured that.
    parts.server = bound->server;
    parts.server_pidfd = std::move(answer.fds[1]);
    return parts;
  }
  parts.bell.take_nothing();
  // Over a socketpair, the server is the process that sent the message, as the kernel reports it (SO_PASSCRED).
  if (!shim::sender_known(answer, wish.early))
    return Error{Errc::bad_message, "the private peer's credentials are missing"};
  parts.server = *answer.sender;
  auto pidfd = shim::pidfd_of_sender(parts.server);
  if (!pidfd) return pidfd.error();
  parts.server_pidfd = *std::move(pidfd);
  return parts;
}

ImportWish wish_of(const Pdl& pdl, bool is_private) { return {pdl.interface, pdl.classes, std::nullopt, is_private}; }

}  // namespace

Status client::check_options(const ImportOptions& options, bool sealed) {
  const milliseconds wait = wait_of(options);
  if (Status sound = shim::check_wait("ImportOptions::timeout", wait); !sound) return sound;
  if (Status sound = shim::check_span("ImportOptions::grown_idle", options.grown_idle); !sound) return sound;
  if (Status sound = shim::check_span("ImportOptions::call_timeout", options.call_timeout); !sound) return sound;
  if (sealed && !(options.call_timeout == kNoLimit))
    return Error{Errc::not_supported, "call_timeout: a caller in a trap cannot go on before the server answers"};
  if (sealed && options.supply == AStackSupply::grow)
    return Error{Errc::not_supported, "AStackSupply::grow: a sealed domain cannot take another region"};
  if (options.on_revoked && (sealed || !options.watcher))
    return Error{Errc::not_supported, "on_revoked: nobody would call it, for without a watcher nobody watches"};
  return {};
}

Result<Binding> client::bind(int socket, std::string_view name, const ImportWish& wish, const ImportOptions& options,
                             std::vector<AStackClass>* bound_classes) {
  if (Status sound = check_options(options, options.gate == Gate::trap); !sound) return sound.error();
  shim::Stranger server = wish.is_private ? shim::stranger_at(socket) : shim::Stranger{};
  auto answer = ask(socket, name, wish, options, server);
  if (!answer) return answer.error();
  if (const auto* bound = std::get_if<shim::Bound>(&answer->body); !wish.is_private && bound != nullptr)
    server.user = bound->server.uid;
  auto parts = accept(*answer, wish, options, server, bound_classes);
  if (wish.is_private) shim::close_strangers(std::move(answer->fds), server);  // what accept() has not taken
  if (!parts) return parts.error();
  if (!wish.is_private) {
    const auto number = shim::number_of_introduced(socket, parts->server.pid, parts->server_pidfd.get());
    if (!number) return number.error();
    parts->server.pid = *number;
  }
  auto object = client::BindingObject::create(*std::move(parts));
  if (!object) return object.error();
  return detail::StubAccess::bind<Binding>(*std::move(object));
}

Result<Binding> client::import_here(std::string_view name, const Pdl& pdl, const ImportOptions& options) {
  std::vector<std::string> sockets = shim::nameserver_sockets(options.nameserver);
  auto socket = shim::connect_first_of(sockets);
  if (!socket) return socket.error();
  const shim::Wait wait(wait_of(options));
  auto bound = client::bind(socket->get(), name, wish_of(pdl, false), options);
  if (bound || wait.whole() == kDoNotWait) return bound;

  // B18. An import that waits for a name also waits for a nameserver that is being restarted: the servers export their
  // names to it again. If descriptors or memory lack for a connection meanwhile, that may pass, too.
  milliseconds pause = kFirstPause;
  while (bound.code() == Errc::peer_gone && shim::hung_up(socket->get())) {
    do {
      const milliseconds left = wait.left();
      if (left == kDoNotWait && socket.code() == Errc::system_error) return socket.error();
      if (left == kDoNotWait) return bound;
      std::this_thread::sleep_for(std::min(pause, left));
      pause = std::min(pause * 2, kLongestPause);
      socket = shim::connect_first_of(sockets);
    } while (!socket);
    ImportOptions rest = options;
    rest.timeout = wait.left();
    bound = client::bind(socket->get(), name, wish_of(pdl, false), rest);
  }
  return bound;
}

Result<Binding> Binding::import_over(UniqueFd given, const Pdl& pdl, const ImportOptions& options) {
  const shim::NoCancellation never;
  const shim::Stranger server = shim::stranger_at(given.get());
  // The maker of the pair may have left messages in this end, and may hold a copy of it.
  const shim::ClosedAside socket(std::move(given), server);
  (void)::fcntl(socket.get(), F_SETFD, FD_CLOEXEC);  // dup2(2) clears it, and another thread may call exec(2)
  if (options.timeout == kDoNotWait) {
    return Error{
        Errc::invalid_argument,
        "ImportOptions::timeout is zero: the answer to a private import takes some time; leave it unset for 10 s"};
  }
  const auto early = shim::ask_for_senders(socket.get());
  if (!early) return early.error();
  ImportWish wish = wish_of(pdl, true);
  wish.early = *early != 0;
  return client::bind(socket.get(), "", wish, options);
}

}  // namespace lrpc
