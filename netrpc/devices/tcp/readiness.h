// Which of many stream sockets can be read or written, told inside the monitor: a set of epoll(7) that the engine
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

/// However many descriptors of one host are ready, a descriptor of another host waits for one turn of each other host,
/// and for one more before it is seen. This holds while at most kMost descriptors are ready.
class Readiness final : private SocketReader {
 public:
  static constexpr std::size_t kMost = 1024;

  /// Called inside the monitor. `events`: EPOLLIN and so on; of a descriptor that has been closed meanwhile, perhaps.
  using Ready = std::function<void(std::uint64_t id, std::uint32_t events)>;
  /// Whose turn it is when a descriptor of the set is ready: a host's, or that of something that has its own turns.
  /// Called inside the monitor.
  using Whose = std::function<std::uint64_t(std::uint64_t id)>;

  /// Errors: system_error. Inside the monitor.
  static Result<std::unique_ptr<Readiness>> make(Host& host, UringEngine& engine, Ready ready, Whose whose);
  /// Inside the monitor.
  ~Readiness() { engine_.remove(watched_); }

  /// `ready(id, ...)` is called once when one of `events` is so: then it has to be asked for again. When `fd` is
  /// closed, this ends. False: system_error. Inside the monitor.
  [[nodiscard]] bool watch(int fd, std::uint64_t id, std::uint32_t events) noexcept;
  [[nodiscard]] bool watch_again(int fd, std::uint64_t id, std::uint32_t events) noexcept;

 private:
  struct Waiting {
    std::uint64_t id = 0;
    std::uint32_t events = 0;
    std::uint64_t whose = 0;
    std::uint64_t turn = 0;  ///< The last one of its host, or the last one before that host began to wait.
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
  int epoll_ = -1;  ///< The engine's.
  SocketId watched_;
  UniqueFd more_;                 ///< Always ready: makes the set so when something waits here.
  std::vector<Waiting> waiting_;  ///< To be told. Room for kMost is reserved.
  std::size_t left_ = 0;          ///< Turns until timers have theirs.
  std::uint64_t turns_ = 0;
  std::uint64_t looked_ = 0;  ///< The last turn before the set was asked.
};

}  // namespace lrpc::netrpc
