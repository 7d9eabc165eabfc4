// Questions to the kernel that nobody waits for inside the monitor.
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

/// Asks the kernel over rtnetlink on a thread of its own: an answer may wait for a program that changes links or routes
/// (the kernel's RTNL lock). What is done with an answer is done inside the monitor. The thread begins with the first
/// question: so it has no privilege that its process has given up before.
class Asker final : private SocketReader {
 public:
  /// Done with the answer, inside the monitor, unless the asker has gone meanwhile. Must not throw anything but
  /// bad_alloc.
  using Answer = std::function<void()>;
  /// Asks, outside of the monitor: whatever it needs of the graph it holds by value. May throw bad_alloc.
  using Question = std::function<Answer(rtnetlink::Requests& kernel)>;

  /// Errors: system_error.
  static Result<std::unique_ptr<Asker>> make(Host& host, UringEngine& engine);
  /// Waits for the kernel's answer to the question of now. Inside the monitor.
  ~Asker();

  /// In the order of asking. False: too many wait, or there is no memory: it is not asked, nor answered. Inside the
  /// monitor.
  [[nodiscard]] bool ask(Question question) noexcept;

 private:
  static constexpr std::size_t kMost = 1024;

  explicit Asker(UringEngine& engine) : engine_(engine) {}
  void arrived(Message message, std::span<const std::byte> from) noexcept override;
  /// What has been lost says no more than that there are answers.
  void receive_failed(int /*error*/) noexcept override { arrived({}, {}); }
  void run() noexcept;
  /// So that the engine calls arrived().
  void wake() noexcept;

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
