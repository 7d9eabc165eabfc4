// Threads in which commands of other hosts are served when the thread that has received them must go on receiving.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "lrpc/netrpc/fifo_queue.h"
#include "lrpc/netrpc/path/transport.h"
#include "lrpc/netrpc/protocol.h"

namespace lrpc::netd {

/// A command to be served. A `session` that it has may be copied, assigned and destroyed only inside the host's
/// monitor; moved anywhere. One without it, as after a move, may be assigned and destroyed anywhere, too.
struct Command {
  netrpc::SessionRef session;
  netrpc::Message request;
  Principal from;
  netpath::Arrival arrived = 0;
  std::uint16_t number = 0;
  std::chrono::steady_clock::time_point since{};  ///< When it arrived here.
};

/// A host that has rebooted, and the last command, of any host, that had arrived when that was seen.
struct Rebooted {
  netpath::HostAddress host = 0;
  netpath::Arrival last = 0;
};

/// Threads come as they are needed, up to a limit, and stay. Thread-safe.
class Workers {
 public:
  /// `serve`: what a thread does with a command; `rebooted`: with a host that has rebooted.
  Workers(std::size_t limit, std::function<void(Command&&)> serve, std::function<void(Rebooted)> rebooted)
      : limit_(limit), serve_(std::move(serve)), rebooted_(std::move(rebooted)) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { stop(); }

  /// Inside the monitor. False: too many wait already, or it ends; the command is unchanged.
  [[nodiscard]] bool put(Command& command) noexcept;
  void put_rebooted(Rebooted host) noexcept;
  /// Waits for those that are being served; who waits is not served any more. Not inside the monitor.
  void stop() noexcept;
  /// What nobody has served; to be destroyed inside the monitor. After stop().
  [[nodiscard]] netrpc::FifoQueue<Command> left() { return std::move(commands_); }

 private:
  static constexpr std::size_t kWaiting = 1024;
  static constexpr std::size_t kRebooted = 4096;
  void work() noexcept;
  void one_more_locked() noexcept;

  const std::size_t limit_;
  const std::function<void(Command&&)> serve_;
  const std::function<void(Rebooted)> rebooted_;
  std::mutex mutex_;
  std::condition_variable wake_;
  netrpc::FifoQueue<Command> commands_{kWaiting};
  std::deque<Rebooted> hosts_;
  std::size_t idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lrpc::netd
