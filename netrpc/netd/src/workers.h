// Threads in which commands of other hosts are served when the thread that has received them must go on receiving.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "host_turns.h"

namespace lrpc::netd {

/// A host that has rebooted, and the last command, of any host, that had arrived when that was seen.
struct Rebooted {
  netpath::HostAddress host = 0;
  netpath::Arrival last = 0;
};

/// Threads come as they are needed, up to a limit, and stay. Thread-safe.
class Workers {
 public:
  /// `shared`: `threads` of HostTurns. `serve`: what a thread does with a command; `rebooted`: what it does with a host
  /// that has rebooted.
  Workers(std::size_t limit, std::size_t shared, std::function<void(Command&&)> serve,
          std::function<void(Rebooted)> rebooted)
      : limit_(limit), serve_(std::move(serve)), rebooted_(std::move(rebooted)), turns_(shared, kWaiting) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { stop(); }

  /// Inside the monitor. False: too many wait, of this host or in all; stop() has been called; or there is no memory or
  /// no thread. Then the command is unchanged.
  [[nodiscard]] bool put(Command& command) noexcept;
  void put_rebooted(Rebooted host) noexcept;
  /// Waits for the commands that are being served. Those that wait are not served any more. Not inside the monitor.
  void stop() noexcept;
  /// The commands that were not served; to be destroyed inside the monitor. After stop().
  [[nodiscard]] std::list<Command> left() noexcept { return turns_.take_all(); }

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
  HostTurns turns_;
  std::deque<Rebooted> hosts_;
  std::size_t idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lrpc::netd
