// Importing: how a client gets a Binding Object (LRPC §3.1).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lrpc/detail/client/binding/binding_object.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/no_limit.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/stub_access.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc {

/// Durations: see lrpc/detail/shim/no_limit.h. A duration that makes no sense for its option is refused as
/// invalid_argument.
struct ImportOptions {
  /// Nameserver socket; empty: $LRPC_SOCKET, else $XDG_RUNTIME_DIR/lrpc/lrpcd.sock, else /run/lrpc/lrpcd.sock.
  std::string nameserver{};
  /// How long to wait for the name. kDoNotWait: it must exist; kNoLimit: for ever. If the nameserver ends meanwhile,
  /// the import waits for it, too, and asks no other. If there is no nameserver at the beginning, the import fails at
  /// once (no_nameserver). For a private binding (import_over()): how long to wait for the answer; it must be above
  /// zero. Unset: kDoNotWait for a name, 10 s for a private binding.
  std::optional<std::chrono::milliseconds> timeout{};
  /// The gate of calls. `adaptive` chooses one for each call; exchange, handoff and sleep force one, as far as the
  /// server cooperates. `none` is for lrpc's own tests: nobody serves its calls. `trap` is for a process that will seal
  /// itself with lrpc::seal() (lrpc/sealed.h): until then calls return Errc::not_supported. It takes no call_timeout
  /// and has no watcher. A program that was started sealed always uses `trap`, and ignores this.
  Gate gate = Gate::adaptive;
  AStackSupply supply = AStackSupply::wait;
  /// With AStackSupply::grow: an unused secondary region is kept for at least this time and at most twice this time.
  /// Above zero. More than a day counts as a day. kNoLimit: as long as the binding.
  std::chrono::milliseconds grown_idle{1'000};
  /// The longest that a call may wait for an A-stack, and then for the server. After that it returns
  /// Errc::call_aborted, and its A-stack stays in quarantine until the server returns it. Above zero. Each wait counts
  /// from the moment when the call would first sleep; for a started call, from its ring.
  std::chrono::milliseconds call_timeout = kNoLimit;
  /// The first import starts the watcher thread, even if the import fails. False: this binding has no watcher; callers
  /// notice a server's death when they wake up, after at most 100 ms.
  bool watcher = true;
  /// Called once, on the watcher's thread, when the binding is revoked, because the server is gone or has broken the
  /// protocol. Without a watcher the import is not_supported. It must not block. It may destroy or replace the Binding
  /// if no other thread is in one of its calls or in a member of one of its started calls. A thread that destroys the
  /// Binding waits for this function, and so must hold no lock that the function takes. An exception becomes a line on
  /// stderr. See also Binding::when_revoked().
  std::function<void()> on_revoked{};
};

/// Owns a Binding Object: the client's key to one imported interface. Move-only. Any number of threads may call through
/// it at the same time. No thread may be in a call when it is destroyed; started calls may outlive it. A forked child
/// holds no bindings: there, every call returns Errc::binding_revoked. No function here, and no call, is a cancellation
/// point (pthreads(7)) or may be used in a signal handler.
class Binding {
 public:
  /// Binds to `name` with the help of the nameserver. Blocks up to options.timeout (plus the clerk's decision). In a
  /// program that was started as a sealed domain: takes the one binding that was made for it, once. The thread's
  /// CallScopes do not limit it.
  ///
  /// `name@host`, with an IPv4 address or a name of one: binds to what is exported as `name` on another host (LRPC
  /// §5.1), with the help of this machine's network domain, lrpc-netd. The stubs and the errors are the same. A call
  /// that a host, the network or a broker has lost is call_failed, and the binding is revoked. There is no gate to
  /// choose, there are no callbacks, and no procedure may take more than about 16 KiB (message_too_long; the text names
  /// the procedure).
  ///
  /// `name@`, without a host: binds to `name` on any host. This machine's directory, lrpc-directory, lists the hosts
  /// that export it: this machine first, the others in random order. The import binds to the first that accepts, as
  /// with `name@host`. Errors: no_nameserver, name_unknown, interface_mismatch, version_mismatch, hash_mismatch,
  /// not_permitted, timed_out, peer_gone, limit_reached, message_too_long, remote_unavailable (no network domain here,
  /// no directory, no such host), bad_message, system_error; the text says what to do.
  static Result<Binding> import(std::string_view name, const Pdl& pdl, const ImportOptions& options = {});

  /// Binds privately, without any name, to the server that holds the other end of `socket` (a socketpair, see
  /// make_socket_pair) and has given that end to Server::serve_over(). Takes the socket. Blocks up to options.timeout,
  /// 10 s if that is unset.
  static Result<Binding> import_over(UniqueFd socket, const Pdl& pdl, const ImportOptions& options = {});

  Binding(Binding&&) noexcept;
  Binding& operator=(Binding&&) noexcept;
  ~Binding();

  /// True once the server is gone: every further call returns Errc::binding_revoked.
  [[nodiscard]] bool revoked() const noexcept { return object_->revoked(); }
  /// A descriptor that becomes readable (poll(2), select(2), epoll(7)) when the binding is revoked, and stays readable.
  /// Remote bindings have one, too. The first call makes it; later calls return the same. The Binding owns it and
  /// closes it at its end. If started calls outlive the Binding, it is closed with the last of them, and does not
  /// become readable meanwhile. Neither read nor write it. In a forked child it is readable, because the child's
  /// bindings are revoked; an epoll instance that the parent made does not report that. Errors: not_supported (no
  /// watcher, or Gate::trap), system_error. Thread-safe. Does not block.
  [[nodiscard]] Result<int> revocation_fd() const { return object_->revocation_fd(); }
  /// Calls `told` once when the binding is revoked, on the watcher's thread, after the functions that were given
  /// before. If all of those have returned already, calls it at once, on this thread. After the Binding's end none is
  /// called; but if one of them destroys the Binding, the rest are still called. The rules of ImportOptions::on_revoked
  /// apply. Errors: not_supported (no watcher, Gate::trap, or a forked child), invalid_argument (empty). Thread-safe.
  Status when_revoked(std::function<void()> told) { return object_->when_revoked(std::move(told)); }
  /// The server's identity at the time of the import, as the kernel reports it.
  [[nodiscard]] const Credentials& server() const noexcept { return object_->server(); }

 private:
  friend struct detail::StubAccess;
  explicit Binding(std::unique_ptr<client::BindingObject> object) noexcept;
  [[nodiscard]] client::BindingObject& object() const noexcept { return *object_; }
  /// Offers the server a socket for callbacks to this client, and returns its other end; generated code
  /// (serve_callbacks()) serves the callback interface there. Blocks until the server's clerk has accepted, at most
  /// some 10 s. Errors: binding_revoked, peer_gone (the server has an offer already, or cannot take one), not_supported
  /// (a remote binding), timed_out, system_error.
  [[nodiscard]] Result<UniqueFd> offer_callback();

  std::unique_ptr<client::BindingObject> object_;
};

}  // namespace lrpc
