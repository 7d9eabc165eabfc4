// What the parts of the engine share. Everything here is under the host's monitor unless it says otherwise.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstring>
#include <mutex>
#include <optional>

#include "lrpc/detail/shim/system/sleeping_word.h"
#include "netrpc/devices/engine/uring_engine.h"

namespace lrpc::netrpc {

/// The longest address of a kind of socket that we use: sockaddr_ll, sockaddr_in, sockaddr_nl.
inline constexpr std::size_t kAddressRoom = 32;
/// The longest datagram: IP's, with its header.
inline constexpr std::size_t kLongestDatagram = 65535;
/// Slices of a message that go out without being made contiguous.
inline constexpr std::size_t kOutgoingSlices = 8;

struct EngineSocket {
  int fd = -1;  ///< -1: the slot is free.
  std::uint32_t generation = 0;
  SocketReader* reader = nullptr;
  bool watched = false;  ///< Its reader reads.
};

/// A datagram. Of a watched descriptor: the news that there may be something to read.
struct Arrival {
  SocketId socket;
  Message message;
  std::array<std::byte, kAddressRoom> from{};
  std::size_t from_size = 0;
};

/// A datagram on its way out. Pinned from describe() until the kernel has copied it.
struct Outgoing {
  SocketId socket;
  Message message;
  std::array<std::byte, kAddressRoom> to{};
  std::size_t to_size = 0;
  msghdr header{};
  std::array<iovec, kOutgoingSlices> parts{};

  void describe() noexcept {
    header = {};
    header.msg_name = to.data();
    header.msg_namelen = static_cast<socklen_t>(to_size);
    header.msg_iov = parts.data();
    header.msg_iovlen = message.describe(parts);
  }
};

/// Waits in the kernel for a leader.
class Receiver {
 public:
  virtual ~Receiver() = default;
  /// Inside the monitor, which is let go while the thread sleeps: sends what is queued, and waits for a datagram, a
  /// kick or
  /// `until`. What has arrived is put into Core::arrivals.
  virtual void receive(std::optional<Time> until) = 0;
  /// Gives up every socket. Inside the monitor, while nobody is in receive().
  virtual void let_go() noexcept = 0;
};

class UringReceiver;

/// How long a sleep until then is; negative, for ever, if that is Time::max().
Duration left_until(Time until) noexcept;

/// A thread that has the lead. Lies on its stack; leads within a lead (a nested wait) are linked.
struct UringEngine::Lead {
  std::thread::id thread = std::this_thread::get_id();
  Lead* outer = nullptr;
  const std::function<bool()>* done = nullptr;  ///< Null: a service thread.
  Time deadline = Time::max();
  bool in_kernel = false;
};

/// A thread that waits while another leads. Lies on its stack.
struct UringEngine::Follower {
  const std::function<bool()>* done = nullptr;
  std::atomic<std::uint32_t> word{0};  ///< 1: woken, which others see. So there is nothing to count (SleepingWord).
  Follower* next = nullptr;
};

struct UringEngine::Core {
  Core() = default;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();

  Host* host = nullptr;
  std::vector<EngineSocket> sockets;
  std::uint32_t generations = 0;
  std::vector<Arrival> arrivals;  ///< Received; from next_arrival on not yet shepherded.
  std::size_t next_arrival = 0;
  std::vector<Outgoing> outgoing;
  std::vector<Outgoing> flushing;  ///< Empty but within flush().
  int kick_event = -1;             ///< An eventfd: makes the leader come out of the kernel.
  bool kicked = false;

  Lead* leader = nullptr;
  Follower* followers = nullptr;
  bool woke_follower = false;         ///< Since the leader last looked.
  std::uint32_t serving = 0;          ///< How many more calls may end before this host counts as one that only calls.
  std::uint32_t long_procedures = 0;  ///< The same, for user procedures that block their thread.
  /// How often the lead has been taken or left. Read by the deputy outside the monitor.
  std::atomic<std::uint64_t> turns{0};

  enum class Watch : std::uint8_t { nobody, watching, asleep };
  Watch watch = Watch::nobody;  ///< What the deputy does.
  bool take_now = false;        ///< The deputy need not wait.
  shim::SleepingWord deputy_word;
  shim::SleepingWord spare_word;
  std::uint32_t spares = 0;
  std::atomic<bool> stopping{false};  ///< Of all threads, and not for good: no word's own stop().
  std::vector<std::thread> threads;

  std::vector<std::weak_ptr<UringReceiver>> rings;       ///< One a thread that has ever led.
  std::vector<std::shared_ptr<UringReceiver>> prepared;  ///< For threads that have not.
  bool no_more_rings = false;                            ///< But those.
  /// For threads without a ring. Made with the engine, so that one that is short of descriptors goes on receiving.
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
  /// Copies a datagram out of a receive area into a message of its own.
  void arrived(SocketId id, std::span<const std::byte> data, std::span<const std::byte> from) noexcept;
  /// A watched descriptor: its reader is to read. False: there is no memory.
  bool readable(SocketId id) noexcept;
  void send_failed(SocketId id, int error) noexcept;
  void receive_failed(SocketId id, int error) noexcept;
  /// A datagram had arrived, and there was no room for it.
  void lost(SocketId id) noexcept;
  /// Sends by system calls of this thread's own what is queued. `apart`: not on the way to a wait.
  void flush(bool apart = true) noexcept;
  void flush_batch(bool apart) noexcept;
  static void add_one(std::atomic<std::uint64_t>& count) noexcept {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

/// Errors: system_error.
Result<std::unique_ptr<Receiver>> make_epoll_receiver(UringEngine& engine);

}  // namespace lrpc::netrpc
