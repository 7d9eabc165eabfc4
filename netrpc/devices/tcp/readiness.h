// Which of many stream sockets can be read or written, told inside the monitor: a set of epoll(7) that the engine
// watches.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "netrpc/devices/engine/uring_engine.h"

namespace lrpc::netrpc {

class Readiness final : private SocketReader {
 public:
  /// Called inside the monitor. `events`: EPOLLIN and so on; of a descriptor that has been closed meanwhile, perhaps.
  using Ready = std::function<void(std::uint64_t id, std::uint32_t events)>;

  /// Errors: system_error. Inside the monitor.
  static Result<std::unique_ptr<Readiness>> make(Host& host, UringEngine& engine, Ready ready);
  /// Inside the monitor.
  ~Readiness() { engine_.remove(watched_); }

  /// `ready(id, ...)` is called once when one of `events` is so: then it has to be asked for again. When `fd` is
  /// closed, this ends. False: system_error. Inside the monitor.
  [[nodiscard]] bool watch(int fd, std::uint64_t id, std::uint32_t events) noexcept;
  [[nodiscard]] bool watch_again(int fd, std::uint64_t id, std::uint32_t events) noexcept;

 private:
  Readiness(UringEngine& engine, Ready ready) : engine_(engine), ready_(std::move(ready)) {}
  void arrived(Message /*message*/, std::span<const std::byte> /*from*/) noexcept override {}
  void readable() noexcept override;

  UringEngine& engine_;
  const Ready ready_;
  int epoll_ = -1;  ///< The engine's.
  SocketId watched_;
  std::array<epoll_event, 16> found_{};  ///< In the set; those before next_ have been told.
  int next_ = 0;
  int count_ = 0;
};

}  // namespace lrpc::netrpc
