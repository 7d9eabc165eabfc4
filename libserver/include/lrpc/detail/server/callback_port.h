// The way from a server back to the client of one binding: the socket that the client has offered, then the stub that
// was bound over it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/stub_access.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::server {

/// One a binding; thread-safe. It knows nothing of clients: whose stub is kept, the generated code says. Its lock is
/// never held while a client is waited for, so the clerk, who offers and closes, never waits for one.
class CallbackPort {
 public:
  /// `client`: the process of the binding; 0: it has no number here. `declared`: whether the interface has a callback.
  CallbackPort(pid_t client, bool declared) noexcept : client_(client), declared_(declared) {}
  CallbackPort(const CallbackPort&) = delete;
  CallbackPort& operator=(const CallbackPort&) = delete;

  /// The stub for the client: the one that is bound, or bound now over what the client has offered. Threads that come
  /// meanwhile wait for that one attempt, each for its own timeout, and may then make one of their own: blocks at most
  /// twice as long as kImportOver with these options does. An attempt that timed out may be repeated, one that failed
  /// otherwise uses the offer up. kImportOver and kBinding are the stub's import_over() and binding(), whatever the
  /// generated code calls them. Errors: not_supported (nothing is offered), binding_revoked, timed_out, not_permitted
  /// (another process than the client answers, or nobody can tell which does), those of import_over().
  template <class Stub, auto kImportOver, auto kBinding, class Options>
  [[nodiscard]] Result<std::shared_ptr<Stub>> bound(const Options& options) {
    Attempt attempt(*this, options.timeout.value_or(kUsualPatience));
    if (attempt.stub != nullptr) return std::static_pointer_cast<Stub>(std::move(attempt.stub));
    if (!attempt.socket) return std::move(attempt.why_not);
    if (client_ == 0) return attempt.failed(Error{Errc::not_permitted, kNobodyKnows});
    auto made = kImportOver(std::move(attempt.socket), options);
    if (!made) return attempt.failed(made.error());
    auto stub = std::make_shared<Stub>(*std::move(made));
    // A client may not lead us to somebody else, who would take what we say for our own wish.
    if (((*stub).*kBinding)().server().pid != client_) return attempt.failed(Error{Errc::not_permitted, kNotTheClient});
    if (Status kept = attempt.keep({stub, &alive<Stub, kBinding>, &revoke<Stub, kBinding>}); !kept) return kept.error();
    return stub;
  }

  /// The clerk's: the client has offered `socket`. Accepted unless there is one that is good, or it is none.
  void offer(shim::PeerSocket socket);
  /// The binding has ended: whoever still has the stub gets errors from it. Idempotent.
  void close() noexcept;
  /// Whether it holds a stub. After close() no stub is added any more.
  [[nodiscard]] bool keeps_stub() noexcept;
  /// After close(): gives up its hold on the stub. If nobody else has one, the caller's reset waits for a hook of the
  /// program (ImportOptions::on_revoked) that is running. Null without a stub.
  [[nodiscard]] std::shared_ptr<void> take_stub() noexcept;

 private:
  /// As that of import_over() without a timeout.
  static constexpr std::chrono::milliseconds kUsualPatience{10'000};
  static constexpr const char* kNotTheClient = "another process than the binding's client serves the callback";
  static constexpr const char* kNobodyKnows =
      "the binding's client is of another process namespace: whether it is the one that serves the callback, nobody "
      "can tell";

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

  /// A thread's turn: exactly one of stub, socket and why_not is set. With the socket it is the one that binds, until
  /// it goes.
  struct Attempt {
    Attempt(CallbackPort& port, std::chrono::milliseconds patience);
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;
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
  const bool declared_;
  std::mutex mutex_;
  std::condition_variable bound_;
  shim::PeerSocket offered_;
  Kept kept_;
  bool binding_ = false;
  bool closed_ = false;
};

}  // namespace lrpc::server
