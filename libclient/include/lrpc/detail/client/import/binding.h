// Importing: how a client gets a Binding Object (LRPC §3.1).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lrpc/detail/client/import/binding_object.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/no_limit.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/stub_access.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc {

/// Durations: lrpc/detail/shim/no_limit.h. One that has no meaning is refused as invalid_argument.
struct ImportOptions {
  /// Nameserver socket; empty: $LRPC_SOCKET, else $XDG_RUNTIME_DIR/lrpc/lrpcd.sock, else /run/lrpc/lrpcd.sock.
  std::string nameserver{};
  /// How long to wait for the name to appear; kDoNotWait: it must be there; kNoLimit: for ever. Whoever waits also
  /// waits for a nameserver that goes away meanwhile; one that was never there is no_nameserver at once. Of a private
  /// binding (import_over()) it is all the time that the answer may take, over zero. Unset: kDoNotWait for a name, and
  /// 10 s for a private binding's answer.
  std::optional<std::chrono::milliseconds> timeout{};
  /// Which gate calls go through. `adaptive` picks call by call; exchange, handoff and sleep force one (as far as the
  /// server plays along). `none` is for our own tests: nobody serves its calls. `trap` is for a process that is
  /// going to seal itself with lrpc::seal() (lrpc/sealed.h): until then calls return Errc::not_supported; it takes no
  /// call_timeout and has no watcher. A program that was started sealed asks for nothing: the trap is the only gate
  /// there.
  Gate gate = Gate::adaptive;
  AStackSupply supply = AStackSupply::wait;
  /// With AStackSupply::grow: how long a secondary region is kept that nobody uses. At least that, at most twice that;
  /// over zero. More than a day is a day. kNoLimit: as long as the binding.
  std::chrono::milliseconds grown_idle{1'000};
  /// Longest time a call may wait for the server; then it returns Errc::call_aborted and its A-stack is quarantined
  /// until the server lets go. Also the longest time it may wait for an A-stack before. Over zero. Each is counted from
  /// when the call would first sleep; for a started call from when it is rung, whoever waits for it.
  std::chrono::milliseconds call_timeout = kNoLimit;
  /// False declines the watcher thread, which the first import starts, even one that fails: a server's death is then
  /// noticed by the bounded sleep (100 ms).
  bool watcher = true;
  /// Called once, on the watcher's thread, when the binding is revoked because the server is gone, or has broken the
  /// protocol; not_supported without a watcher. Must not block. May destroy or replace the Binding if no other thread
  /// is in a call of it, or in a member of one of its started calls. Must not lock what a thread holds that destroys
  /// the Binding: that thread waits for this. An exception ends there, as a line on stderr. More:
  /// Binding::when_revoked().
  std::function<void()> on_revoked{};
};

/// Owns a Binding Object: the client's key to one imported interface. Move-only. Any number of threads may call through
/// it at the same time; destroying it while a thread is in a call is a bug of the caller. Started calls may outlive it.
/// A fork child holds no bindings: there, every call returns Errc::binding_revoked. Nothing in here, nor a call, is a
/// cancellation point (pthreads(7)), and none may be made by a signal handler.
class Binding {
 public:
  /// Binds to `name` with the help of the nameserver. Blocks up to options.timeout (plus the clerk's decision). In a
  /// program that was started as a sealed domain: takes the one binding that was made for it, once. The thread's
  /// CallScopes do not limit it.
  ///
  /// `name@host`, with an IPv4 address or a name of one: what is exported as `name` on another host (LRPC §5.1), with
  /// the help of this machine's network domain, lrpc-netd. Its calls are the same stubs', and bring the same errors; a
  /// call that a host, the network or a broker lost on its way is call_failed, and the binding revoked. There is no
  /// gate to choose and no callback, and no procedure may take more than some 16 KiB (message_too_long; the text says
  /// which does).
  ///
  /// `name@`, without a host: wherever it is. This machine's directory, lrpc-directory, says which hosts export it,
  /// this machine first, the others in an order by chance; the import binds to the first that binds, as with
  /// `name@host`. Errors: no_nameserver, name_unknown, interface_mismatch, version_mismatch, hash_mismatch,
  /// not_permitted, timed_out, peer_gone, limit_reached, message_too_long, remote_unavailable (no network domain here,
  /// no directory, no such host), bad_message, system_error; the text says what to do.
  static Result<Binding> import(std::string_view name, const Pdl& pdl, const ImportOptions& options = {});

  /// Binds privately, without any name, to the server that holds the other end of `socket` (a socketpair, see
  /// make_socket_pair, given to Server::serve_over there). Takes the socket. Blocks up to options.timeout, 10 s if
  /// that is unset.
  static Result<Binding> import_over(UniqueFd socket, const Pdl& pdl, const ImportOptions& options = {});

  Binding(Binding&&) noexcept;
  Binding& operator=(Binding&&) noexcept;
  ~Binding();

  /// True once the server is gone: every further call returns Errc::binding_revoked.
  [[nodiscard]] bool revoked() const noexcept { return object_->revoked(); }
  /// A descriptor that is readable (poll(2), select(2), epoll(7)) from the moment the binding is revoked, and stays so.
  /// For remote bindings, too. Made by the first call, the same for all, owned by the Binding and closed with it,
  /// or, if started calls outlive it, with the last of them; until then it is not signalled any more. Neither read it
  /// nor write it. In a fork child it stands for an event of the child's own and is readable, as its
  /// bindings are revoked; an epoll instance of the parent's does not know that. Errors: not_supported (the watcher was
  /// declined, or Gate::trap), system_error. Thread-safe. Does not block.
  [[nodiscard]] Result<int> revocation_fd() const { return object_->revocation_fd(); }
  /// Has `told` called once when the binding is revoked, on the watcher's thread, after those that were asked for
  /// before; if they have been called, at once, on this thread. Not after the Binding has been destroyed, but if one of
  /// those that are told destroys it, those behind it are still told. The same rules as for ImportOptions::on_revoked.
  /// Errors: not_supported (the watcher was declined, Gate::trap, or a fork child). Thread-safe.
  Status when_revoked(std::function<void()> told) { return object_->when_revoked(std::move(told)); }
  /// The server by the kernel's word, as it was at bind time.
  [[nodiscard]] const Credentials& server() const noexcept { return object_->server(); }

 private:
  friend struct detail::StubAccess;
  explicit Binding(std::unique_ptr<client::BindingObject> object) noexcept;
  [[nodiscard]] client::BindingObject& object() const noexcept { return *object_; }
  /// Offers the server a socket to call this client back over, and returns the other end of it, on which the callback
  /// interface is to be served; generated code does (serve_callbacks()). Blocks until the server's clerk has accepted,
  /// at most some 10 s. Errors: binding_revoked, peer_gone (it has an offer already, or cannot take one),
  /// not_supported (a remote binding), timed_out, system_error.
  [[nodiscard]] Result<UniqueFd> offer_callback();

  std::unique_ptr<client::BindingObject> object_;
};

}  // namespace lrpc
