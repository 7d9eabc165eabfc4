// What the parts of the engine share. Everything here is under the host's monitor unless stated otherwise.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>

#include "lrpc/detail/shim/system/sleeping_word.h"
#include "netrpc/devices/engine/local_address.h"
#include "netrpc/devices/engine/uring_engine.h"
#include "netrpc/src/attempt.h"
#include "netrpc/src/queue.h"

namespace lrpc::netrpc {

/// Room for the longest socket address that is used: sockaddr_ll, sockaddr_in, sockaddr_nl.
inline constexpr std::size_t kAddressRoom = 32;
/// The longest datagram: IP's, with its header.
inline constexpr std::size_t kLongestDatagram = 65535;
/// The most slices of a message that is sent without being made contiguous.
inline constexpr std::size_t kOutgoingSlices = 8;
struct EngineSocket {
  int fd = -1;  ///< -1: the slot is free.
  std::uint32_t generation = 0;
  SocketReader* reader = nullptr;
  bool watched = false;  ///< The reader itself reads from it.
  bool in_epoll = false;
};

/// A datagram; or, for a watched descriptor, the notice that there may be something to read.
struct Arrival {
  SocketId socket;
  Message message;
  std::array<std::byte, kAddressRoom> from{};
  std::size_t from_size = 0;
};

/// A datagram to be sent. Must not move from describe() until the kernel has copied it.
struct Outgoing {
  SocketId socket;
  Message message;
  std::array<std::byte, kAddressRoom> to{};
  std::size_t to_size = 0;
  alignas(cmsghdr) std::array<std::byte, kControlRoom> control{};
  msghdr header{};
  std::array<iovec, kOutgoingSlices> parts{};

  void describe() noexcept {
    header = {};
    header.msg_name = to.data();
    header.msg_namelen = static_cast<socklen_t>(to_size);
    header.msg_iov = parts.data();
    header.msg_iovlen = message.describe(parts);
    header.msg_controllen = describe_local_address(to, control);
    if (header.msg_controllen != 0) header.msg_control = control.data();
  }
};

/// The way in which a leader waits in the kernel.
class Receiver {
 public:
  virtual ~Receiver() = default;
  /// Inside the monitor, which is released while the thread sleeps: sends the queued datagrams and waits for a
  /// datagram, a kick or `until`. Puts what has arrived into Core::arrivals.
  virtual void receive(std::optional<Time> until) = 0;
  /// Stops using every socket. Inside the monitor, possibly while a thread is in receive().
  virtual void let_go() noexcept = 0;
};

class UringReceiver;

/// How long to sleep until `until`; negative (for ever) if that is Time::max().
Duration left_until(Time until) noexcept;

/// Describes a thread that leads, on its stack. Nested leads (a wait within a wait) are linked.
struct UringEngine::Lead {
  std::thread::id thread = std::this_thread::get_id();
  Lead* outer = nullptr;
  const std::function<bool()>* done = nullptr;  ///< Null: a service thread.
  Time deadline = Time::max();
  bool in_kernel = false;
};

/// Describes a thread that waits while another leads, on its stack.
struct UringEngine::Follower {
  const std::function<bool()>* done = nullptr;
  std::atomic<std::uint32_t> word{0};  ///< 1: woken. Other threads read this, so no SleepingWord.
  Link<Follower> link{};
};

struct UringEngine::Core {
  ~Core();

  Host* host = nullptr;
  std::vector<EngineSocket> sockets;
  std::uint32_t generations = 0;
  std::vector<Arrival> arrivals;  ///< Received; from next_arrival on not yet shepherded.
  std::size_t next_arrival = 0;
  std::vector<Outgoing> outgoing;
  std::vector<Outgoing> flushing;  ///< Empty except in flush().
  int kick_event = -1;             ///< An eventfd: makes the leader come out of the kernel.
  bool kicked = false;

  Lead* leader = nullptr;
  Queue<Follower, &Follower::link> followers;
  bool woke_follower = false;         ///< Since this leader began.
  std::uint32_t serving = 0;          ///< How many more calls may end until this host counts as one that only calls.
  std::uint32_t long_procedures = 0;  ///< How many more short user procedures until no long ones are expected.
  /// How often the lead has been taken or left. Read by the deputy outside the monitor.
  std::atomic<std::uint64_t> turns{0};

  enum class Watch : std::uint8_t { nobody, watching, asleep };
  Watch watch = Watch::nobody;  ///< What the deputy does.
  bool take_now = false;        ///< The deputy takes the lead without waiting.
  shim::SleepingWord deputy_word;
  shim::SleepingWord spare_word;
  std::uint32_t spares = 0;
  std::atomic<bool> stopping{false};  ///< For all threads. Can be reset, unlike SleepingWord::stop().
  std::vector<std::thread> threads;

  std::vector<std::weak_ptr<UringReceiver>> rings;       ///< One for each thread that has ever led.
  std::vector<std::shared_ptr<UringReceiver>> prepared;  ///< For threads that have not led yet.
  bool no_more_rings = false;                            ///< Only the prepared ones.
  /// For threads without a ring. Made with the engine, so that the engine can still receive when descriptors or memory
  /// run out.
  std::unique_ptr<Receiver> epoll;
  std::uint64_t identifier = 0;  ///< Of the engine, in the threads' caches of rings.

  struct Counts {
    std::atomic<std::uint64_t> waits{0}, received{0}, direct{0}, sent{0}, flushes{0}, wakes{0}, takeovers{0},
        truncated{0};
  } counts;

  [[nodiscard]] EngineSocket* find(SocketId id) noexcept {
    EngineSocket& socket = sockets[id.index];
    return socket.fd >= 0 && socket.generation == id.generation ? &socket : nullptr;
  }
  /// Copies a datagram out of a receive area into a message of its own. `control`: of the datagram, from recvmsg(2).
  void arrived(SocketId id, std::span<const std::byte> data, std::span<const std::byte> from,
               std::span<const std::byte> control) noexcept;
  /// Queues a notice for the reader of a watched descriptor. False: there is no memory.
  bool readable(SocketId id) noexcept;
  void send_failed(SocketId id, int error) noexcept {
    if (const EngineSocket* const socket = find(id)) socket->reader->send_failed(error);
  }
  void receive_failed(SocketId id, int error) noexcept {
    if (const EngineSocket* const socket = find(id)) socket->reader->receive_failed(error);
  }
  /// A datagram has arrived for which there was no room.
  void lost(SocketId id) noexcept {
    add_one(counts.truncated);
    receive_failed(id, ENOMEM);
  }
  /// Sends the queued datagrams, each by a system call. `apart`: no wait follows.
  void flush(bool apart = true) noexcept;
  void flush_batch(bool apart) noexcept;
  static void add_one(std::atomic<std::uint64_t>& count) noexcept {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

/// Errors: system_error.
Result<std::unique_ptr<Receiver>> make_epoll_receiver(UringEngine& engine);

}  // namespace lrpc::netrpc
