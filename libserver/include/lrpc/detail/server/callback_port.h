// How a server calls the client of one binding back: first the socket that the client has offered, then the stub that
// was bound over it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/stub_access.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::server {

/// One for each binding; thread-safe. It does not know the stub's type, which the generated code decides. No thread
/// holds its lock while it waits for the client, so the clerk, which calls offer() and close(), never waits for a
/// client.
class CallbackPort {
 public:
  /// `client`: the process of the binding; 0: it has no pid here. `pidfd`: its descriptor, which stays the caller's.
  /// `declared`: whether the interface has a callback.
  CallbackPort(pid_t client, int pidfd, bool declared) noexcept : client_(client), pidfd_(pidfd), declared_(declared) {}
  CallbackPort(const CallbackPort&) = delete;
  CallbackPort& operator=(const CallbackPort&) = delete;

  /// The stub for the client: the one that is bound, or one bound now over the socket that the client has offered. One
  /// thread binds at a time. The others wait for its attempt, each for its own timeout, and may then make one
  /// themselves: so this blocks at most twice as long as kImportOver with these options. After timed_out,
  /// limit_reached or system_error the offer can be used again; any other failure of an attempt uses it up. kImportOver
  /// and kBinding are the stub's import_over() and binding(), whatever the generated code calls them. Errors:
  /// not_supported (nothing is offered), binding_revoked, timed_out, not_permitted (a process other than the client
  /// answers, or the server cannot tell), those of import_over().
  template <class Stub, auto kImportOver, auto kBinding, class Options>
  [[nodiscard]] Result<std::shared_ptr<Stub>> bound(const Options& options) {
    Attempt attempt(*this, options.timeout.value_or(kUsualPatience));
    if (attempt.stub != nullptr) return std::static_pointer_cast<Stub>(std::move(attempt.stub));
    if (!attempt.socket) return std::move(attempt.why_not);
    if (client_ == 0) return attempt.failed(Error{Errc::not_permitted, kNobodyKnows});
    auto made = kImportOver(std::move(attempt.socket), options);
    if (!made) return attempt.failed(made.error());
    auto stub = std::make_shared<Stub>(*std::move(made));
    // Only the client itself may serve the callback: another process would take our requests for the server's own wish.
    if (((*stub).*kBinding)().server().pid != client_) return attempt.failed(Error{Errc::not_permitted, kNotTheClient});
    // Last: if the client lives now, no other process has had its number.
    if (shim::has_ended(pidfd_)) return attempt.failed(Error{Errc::binding_revoked, kGone});
    if (Status kept = attempt.keep({stub, &alive<Stub, kBinding>, &revoke<Stub, kBinding>}); !kept) return kept.error();
    return stub;
  }

  /// On the clerk's thread: the client has offered `socket`. Ignored if it is empty, if the interface has no callback,
  /// after close(), during an attempt to bind, and while an earlier offer or stub is good.
  void offer(shim::PeerSocket socket);
  /// The binding has ended: revokes the stub, so whoever still holds it gets errors from it. Idempotent.
  void close() noexcept;
  /// Whether it holds a stub. After close() no stub is added any more.
  [[nodiscard]] bool keeps_stub() noexcept;
  /// After close(): hands the stub over; null if there is none. If nobody else holds it, the caller's reset waits for a
  /// hook of the program (ImportOptions::on_revoked) that is running.
  [[nodiscard]] std::shared_ptr<void> take_stub() noexcept;

 private:
  /// The timeout of import_over() if the options set none.
  static constexpr std::chrono::milliseconds kUsualPatience{10'000};
  static constexpr const char* kGone = "the client has gone, or has let go of the binding";
  static constexpr const char* kNotTheClient =
      "another process than the binding's client serves the callback (or lrpcd, which has said who the client is, runs "
      "in a process namespace below this server's)";
  static constexpr const char* kNobodyKnows =
      "the binding's client has no process number in this server's process namespace, or none that /proc tells (a "
      "sandbox must let the server read /proc/self), so the server cannot tell whether that client serves the callback";

  /// A stub, whatever its type.
  struct Kept {
    std::shared_ptr<void> stub;
    bool (*alive)(void* stub, bool look) = nullptr;  ///< `look`: ask the kernel, too.
    void (*revoke)(void* stub) = nullptr;
    [[nodiscard]] bool good(bool look) const { return stub != nullptr && alive(stub.get(), look); }
  };
  template <class Stub, auto kBinding>
  static bool alive(void* stub, bool look) {
    auto& object = detail::StubAccess::object((static_cast<Stub*>(stub)->*kBinding)());
    if (look) object.check_server();
    return !object.revoked();
  }
  template <class Stub, auto kBinding>
  static void revoke(void* stub) {
    detail::StubAccess::object((static_cast<Stub*>(stub)->*kBinding)()).revoke();
  }

  /// One thread's attempt: exactly one of stub, socket and why_not is set. If it is the socket, this thread binds, and
  /// other threads wait until this attempt is destroyed.
  struct Attempt {
    Attempt(CallbackPort& port, std::chrono::milliseconds patience);
    ~Attempt();
    [[nodiscard]] Status keep(Kept kept);
    [[nodiscard]] Error failed(Error why);

    CallbackPort& port;
    std::shared_ptr<void> stub;
    UniqueFd socket;
    Error why_not;
    bool binding = false;
  };

  const pid_t client_;
  const int pidfd_;
  const bool declared_;
  std::mutex mutex_;
  std::condition_variable bound_;
  shim::PeerSocket offered_;
  Kept kept_;
  bool binding_ = false;
  bool closed_ = false;
};

}  // namespace lrpc::server
