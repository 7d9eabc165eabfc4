// The engine of real hosts: it waits on io_uring (or epoll where that is refused), and the thread that waits receives.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "lrpc/detail/shim/result.h"
#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/message.h"

namespace lrpc::netrpc {

/// How the engine talks to the kernel.
enum class EngineKind : std::uint8_t {
  automatic,  ///< io_uring if this kernel lets this user, else epoll.
  uring,
  epoll,
};

/// A device's end of a socket; the engine keeps a pointer to it. All calls come from the thread that is inside the
/// monitor.
class SocketReader {
 public:
  SocketReader(const SocketReader&) = delete;
  SocketReader& operator=(const SocketReader&) = delete;
  /// A datagram has arrived from the address `from`, whose length the kernel has set.
  virtual void arrived(Message message, std::span<const std::byte> from) noexcept = 0;
  /// A queued message could not be sent (`error`: an errno). No caller waits for this result: count it.
  virtual void send_failed(int /*error*/) noexcept {}
  /// Datagrams may have been lost before they could be received (`error`: an errno). Only a reader that keeps a copy of
  /// the kernel's state needs to know. Datagrams that had arrived before are delivered afterwards.
  virtual void receive_failed(int /*error*/) noexcept {}
  /// For a watched descriptor: there may be something to read.
  virtual void readable() noexcept {}

 protected:
  SocketReader() = default;
  ~SocketReader() = default;
};

/// Names a socket of an engine; never reused. SocketId{}: none.
struct SocketId {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
};

/// What the engine has done, for tests and benches. Not exact while other threads are at work.
struct EngineStatistics {
  std::uint64_t waits = 0;      ///< Times a leader has entered the kernel to wait.
  std::uint64_t received = 0;   ///< Datagrams.
  std::uint64_t direct = 0;     ///< Of those, received bypassing the ring, from a busy socket.
  std::uint64_t sent = 0;       ///< Datagrams handed to the kernel.
  std::uint64_t flushes = 0;    ///< Of those, sent apart from a wait, by a system call of their own.
  std::uint64_t wakes = 0;      ///< Threads woken: followers, deputies, leaders kicked.
  std::uint64_t takeovers = 0;  ///< Times a service thread has taken the lead.
  std::uint64_t truncated = 0;  ///< Datagrams dropped: longer than any that we could have sent, or no buffer.
};

/// Leader and followers (docs/DEVICES.md, "The engine"): of the threads that wait, one is the leader; it alone waits in
/// the kernel, and shepherds what arrives. So a call's reply is received by the thread that waits for it.
///
/// One engine drives one host. Constructed before the host, destroyed after it (but stop() it first).
class UringEngine final : public Engine, private MonitorExit {
 public:
  /// Errors: not_supported (EngineKind::uring where io_uring is refused; the text says by what), system_error.
  static Result<std::unique_ptr<UringEngine>> make(EngineKind kind = EngineKind::automatic);
  ~UringEngine() override;

  /// Makes rings for `count` threads now, because the process is about to lose the right to make them. A thread that
  /// ends does not give its ring back; threads without a ring wait on epoll. Call it before start(). Returns how many
  /// rings there are; 0 with epoll.
  std::size_t prepare_rings(std::size_t count);

  bool wait(Host& host, const std::function<bool()>& done, Time deadline) override;
  void wake(Host& host) noexcept override;
  void outside(Host& host, const std::function<void()>& procedure) override;

  /// Starts `threads` service threads, which receive when nobody else does: without them messages wait until some
  /// thread calls wait(). With two, one receives while the other runs a user's procedure. Not inside the monitor.
  /// Errors: system_error.
  Status start(Host& host, unsigned threads);
  /// Ends the service threads and waits for them, also for a user's procedure that one of them runs. Not inside the
  /// monitor.
  void stop();

  // ---- for devices, inside the monitor ----

  /// Receives datagrams from `fd`, a blocking datagram socket which the engine owns from now on.
  SocketId add(Host& host, int fd, SocketReader& reader) { return take(host, fd, reader, false); }
  /// Watches `fd`, which the engine owns from now on: calls reader.readable() as long as there is something to read.
  SocketId watch(Host& host, int fd, SocketReader& reader) { return take(host, fd, reader, true); }
  /// For a reader that has read more than it has handled: calls its readable() once more, after what has arrived by
  /// now. False: there is no memory.
  [[nodiscard]] bool tell_again(SocketId id) noexcept;
  /// `reader` will not be called any more; the socket is closed, in the kernel perhaps a moment later. No effect on
  /// SocketId{}.
  void remove(SocketId id) noexcept;
  /// A socket's descriptor, which stays the engine's, to change what it is bound to. -1: it has been removed.
  [[nodiscard]] int descriptor(SocketId id) const noexcept;
  /// Queues a datagram to `to` (copied). It goes out when the thread waits or leaves the monitor.
  void send(SocketId id, Message message, std::span<const std::byte> to) noexcept;

  [[nodiscard]] EngineKind kind() const noexcept { return kind_; }  ///< uring or epoll.
  [[nodiscard]] EngineStatistics statistics() const noexcept;

 private:
  struct Core;
  struct Lead;
  struct Follower;
  friend class UringReceiver;
  friend class EpollReceiver;

  explicit UringEngine(EngineKind kind);
  void attach(Host& host);
  SocketId take(Host& host, int fd, SocketReader& reader, bool watched);
  void leaving_monitor() noexcept override;

  // leader.cpp
  void lead(Lead& me);
  [[nodiscard]] bool finished(const Lead& me) const;
  void follow(const std::function<bool()>& done, Time deadline);
  void hand_over(bool now) noexcept;
  void kick() noexcept;
  void shepherd_one() noexcept;
  class Receiver& my_receiver();
  std::shared_ptr<class UringReceiver> next_ring();

  // service_threads.cpp
  void serve();
  void watch();
  void wake_deputy(bool take_now) noexcept;

  const EngineKind kind_;
  std::unique_ptr<Core> core_;
};

}  // namespace lrpc::netrpc
