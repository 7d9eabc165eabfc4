// Questions to the kernel whose answers no thread awaits inside the monitor.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "lrpc/detail/shim/system/thread.h"
#include "netrpc/devices/arp/rtnetlink_requests.h"
#include "netrpc/devices/engine/uring_engine.h"

namespace lrpc::netrpc {

/// Asks the kernel over rtnetlink on its own thread: an answer may have to wait for a program that changes links or
/// routes (the kernel's RTNL lock). Answers are handled inside the monitor. The thread starts with the first question,
/// so it lacks the privileges that its process has given up before.
class Asker final : private SocketReader {
 public:
  /// Handles an answer, inside the monitor; not called after the asker's destruction. Must throw nothing but bad_alloc.
  using Answer = std::function<void()>;
  /// Asks the kernel, outside the monitor: so it holds by value all that it needs of the graph. May throw bad_alloc.
  using Question = std::function<Answer(rtnetlink::Requests& kernel)>;

  /// Errors: system_error.
  static Result<std::unique_ptr<Asker>> make(Host& host, UringEngine& engine);
  /// Blocks until the kernel has answered the present question. Inside the monitor.
  ~Asker();

  /// Questions are asked in order. False: too many wait, or there is no memory or no thread; the question is dropped.
  /// Inside the monitor.
  [[nodiscard]] bool ask(Question question) noexcept;

 private:
  static constexpr std::size_t kMost = 1024;

  explicit Asker(UringEngine& engine) : engine_(engine) {}
  void arrived(Message message, std::span<const std::byte> from) noexcept override;
  /// A lost datagram means only that there are answers.
  void receive_failed(int /*error*/) noexcept override { arrived({}, {}); }
  void run() noexcept;

  UringEngine& engine_;
  rtnetlink::Requests kernel_;
  SocketId answered_;
  UniqueFd wake_;
  std::mutex mutex_;
  std::condition_variable more_;
  bool stopping_ = false;
  std::deque<Question> questions_;
  std::vector<Answer> answers_;
  shim::Thread thread_;
};

}  // namespace lrpc::netrpc
