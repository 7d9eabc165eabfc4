// A user process: a process that is a protocol of a graph in another process.
//
//   auto echo = lrpc::netuser::UserProcess::create("echo", {.receive = [](auto& self, const auto& arrived) {
//     (void)self.push(arrived.session, arrived.message);
//   }});
//   if (echo) (void)(*echo)->enable();
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "lrpc/client.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::netuser {

/// Thread-safe. Every operation is a call into the graph's process, and can also fail with the errors of calls
/// (docs/ERRORS.md). After call_failed or binding_revoked the graph is gone: make another UserProcess.
class UserProcess {
 public:
  /// Names a session of the graph, until it is closed. The graph may also close a session that a peer has made, to make
  /// room for others.
  using SessionNumber = std::uint64_t;
  struct Arrived {
    SessionNumber session = 0;
    std::uint32_t host = 0;              ///< The peer's IPv4 address, in host order,
    std::uint16_t port = 0;              ///< and its port, if the protocol below tells ports apart.
    bool opened = false;                 ///< The peer has made the session, with this message (open_done).
    std::span<const std::byte> message;  ///< Valid until the return.
  };
  struct Sizes {
    std::size_t largest = 0;  ///< Bytes of the longest message,
    std::size_t uncut = 0;    ///< and of the longest that is not fragmented on its way.
  };
  struct Options {
    /// demux: a message has come. On one of `threads`; may use `self`, but not destroy it. Must not throw.
    std::function<void(UserProcess& self, const Arrived& arrived)> receive{};
    /// The graph is gone: no message will come. Called once by each of `threads` before it ends; not after the
    /// destructor has begun. binding_revoked or call_failed: its process has died; call_cancelled: it has ended in
    /// order; limit_reached: this process has no memory. May use the UserProcess, but not destroy it. Must not throw.
    std::function<void(const Error& why)> lost{};
    unsigned threads = 1;  ///< At most kMostThreads: how many messages are received at a time.
    ImportOptions binding{};
  };
  static constexpr unsigned kMostThreads = 4;

  /// Becomes the protocol USER(name = ...) of this machine's graph; blocks as Binding::import(). Errors: those of
  /// import, name_taken (another process is it; also for a moment after that one has died), invalid_argument (an
  /// option), limit_reached (no memory, or no thread, here or there).
  static Result<std::unique_ptr<UserProcess>> create(std::string_view name, Options options);
  /// The same over a socket whose other end was given to ServedUsers::serve_over().
  static Result<std::unique_ptr<UserProcess>> create_over(UniqueFd socket, Options options);
  UserProcess(const UserProcess&) = delete;
  /// Closes all sessions, and waits for receive() and lost() to return; not to be called in them. If the graph does not
  /// answer, waits at most 10 s, and at most the binding's call_timeout; then calls made in receive() end as
  /// call_cancelled.
  ~UserProcess();

  /// From now on messages of peers without an open session arrive (open_enable), or no longer do (disable()).
  Status enable();
  Status disable();
  /// Opens a session to a host. `port`: the host's port; 0: the port that all hosts have. Errors: those of
  /// Protocol::open() below; limit_reached.
  Result<SessionNumber> open(std::uint32_t host, std::uint16_t port = 0);
  /// Errors: invalid_argument (no such session), message_too_long, limit_reached, host_unreachable.
  Status push(SessionNumber session, std::span<const std::byte> message);
  Result<Sizes> sizes(SessionNumber session);
  Status close(SessionNumber session);
  /// Bytes of the longest message that push() takes.
  [[nodiscard]] std::size_t largest() const noexcept { return largest_; }

 private:
  struct Graph;
  UserProcess(std::unique_ptr<Graph> graph, Options options);
  static Result<std::unique_ptr<UserProcess>> begin(std::unique_ptr<Graph> graph, Options options);
  void receive(std::span<std::byte> memory);
  void lose(const Error& why);

  const std::unique_ptr<Graph> graph_;
  const Options options_;
  std::size_t largest_ = 0;
  std::atomic<bool> closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lrpc::netuser
