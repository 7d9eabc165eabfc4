// Reports, inside the monitor, which of many stream sockets can be read or written: a set of epoll(7) that the engine
// watches. Hosts take turns.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "lrpc/detail/shim/system/fd.h"
#include "netrpc/devices/engine/uring_engine.h"

namespace lrpc::netrpc {

/// However many descriptors of one host are ready, a descriptor of another host waits at most for one turn of each
/// other host, and one more until it is seen. This holds while at most kMost descriptors are ready.
class Readiness final : private SocketReader {
 public:
  static constexpr std::size_t kMost = 1024;

  /// Called inside the monitor. `events`: EPOLLIN and so on. The descriptor may have been closed meanwhile.
  using Ready = std::function<void(std::uint64_t id, std::uint32_t events)>;
  /// Who uses a turn when a descriptor of the set is ready: a host, or something that has its own turns. Called inside
  /// the monitor.
  using Whose = std::function<std::uint64_t(std::uint64_t id)>;

  /// Errors: system_error. Inside the monitor.
  static Result<std::unique_ptr<Readiness>> make(Host& host, UringEngine& engine, Ready ready, Whose whose);
  /// Inside the monitor.
  ~Readiness() { engine_.remove(watched_); }

  /// Calls `ready(id, ...)` once, when one of `events` occurs; watch_again() is needed for the next time. Closing `fd`
  /// ends this. False: system_error. Inside the monitor.
  [[nodiscard]] bool watch(int fd, std::uint64_t id, std::uint32_t events) noexcept;
  [[nodiscard]] bool watch_again(int fd, std::uint64_t id, std::uint32_t events) noexcept;

 private:
  struct Waiting {
    std::uint64_t id = 0;
    std::uint32_t events = 0;
    std::uint64_t whose = 0;
    std::uint64_t turn = 0;  ///< The last turn of its host, or the last one of all before that host began to wait.
  };
  Readiness(UringEngine& engine, Ready ready, Whose whose)
      : engine_(engine), ready_(std::move(ready)), whose_(std::move(whose)) {}
  void arrived(Message /*message*/, std::span<const std::byte> /*from*/) noexcept override {}
  void readable() noexcept override;
  void look() noexcept;
  void line_up(const epoll_event& event) noexcept;
  [[nodiscard]] Waiting take_next() noexcept;

  UringEngine& engine_;
  const Ready ready_;
  const Whose whose_;
  int epoll_ = -1;  ///< Owned by the engine.
  SocketId watched_;
  UniqueFd more_;                 ///< Always readable: makes the set ready while something waits here.
  std::vector<Waiting> waiting_;  ///< To be reported. Room for kMost is reserved.
  std::size_t left_ = 0;          ///< Turns left until timers run.
  std::uint64_t turns_ = 0;
  std::uint64_t looked_ = 0;  ///< The last turn before the last look().
};

}  // namespace lrpc::netrpc
