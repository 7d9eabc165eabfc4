// Which of many stream sockets can be read or written, told inside the monitor. The engine receives datagrams alone, so
// a thread waits on epoll(7) and has the engine's leader, which runs the graph, look.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "lrpc/netrpc/event_manager.h"
#include "lrpc/shim/system/fd.h"
#include "lrpc/shim/system/thread.h"
#include "netrpc/devices/engine/uring_engine.h"

namespace lrpc::netrpc {

class Readiness final : private SocketReader {
 public:
  /// Called inside the monitor. `events`: EPOLLIN and so on; of a descriptor that has been closed meanwhile, perhaps.
  using Ready = std::function<void(std::uint64_t id, std::uint32_t events)>;

  /// For `most` descriptors at one time. The thread begins when the engine runs the host's events: not before its
  /// process has shut itself in. Errors: system_error. Inside the monitor.
  static Result<std::unique_ptr<Readiness>> make(Host& host, UringEngine& engine, std::size_t most, Ready ready);
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;
  /// Inside the monitor.
  ~Readiness();

  /// `ready(id, ...)` is called once when one of `events` is so: then it has to be asked for again. Who closes `fd` is
  /// done. False: system_error. Inside the monitor.
  [[nodiscard]] bool watch(int fd, std::uint64_t id, std::uint32_t events) noexcept;
  [[nodiscard]] bool watch_again(int fd, std::uint64_t id, std::uint32_t events) noexcept;

 private:
  struct One {
    std::uint64_t id = 0;
    std::uint32_t events = 0;
  };
  Readiness(Host& host, UringEngine& engine, Ready ready);
  void arrived(Message message, std::span<const std::byte> from) noexcept override;
  void send_failed(int /*error*/) noexcept override {}
  void begin() noexcept;
  void run() noexcept;
  /// False: there is no memory for it.
  [[nodiscard]] bool add(const One& one) noexcept;
  [[nodiscard]] std::optional<One> take() noexcept;
  /// Of the reports, how many nobody has taken.
  [[nodiscard]] std::size_t untaken() noexcept;

  Host& host_;
  UringEngine& engine_;
  const Ready ready_;
  Event begin_;
  UniqueFd epoll_;
  UniqueFd stop_;
  UniqueFd tell_;  ///< To the engine.
  SocketId told_;
  bool open_ = false;
  std::mutex mutex_;
  std::vector<One> found_;  ///< Under mutex_, as the next. Rarely needs more room than it has from the beginning.
  std::size_t next_ = 0;    ///< Of those, what nobody has been told yet begins here.
  shim::Thread thread_;
};

}  // namespace lrpc::netrpc
