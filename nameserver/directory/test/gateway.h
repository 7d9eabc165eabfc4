// A gateway that answers what a test says, on loopback: for answers that no etcd gives.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::directory::test {

/// Serves each connection on a thread of its own until it is destroyed; `answer` is called on all of them.
class Gateway {
 public:
  struct Request {
    std::string path;
    std::string token;  ///< Of the header Authorization.
    std::string body;
  };
  /// Everything that is written back: status line, headers, body. Empty: the connection is closed without an answer.
  using Answer = std::function<std::string(const Request&)>;

  explicit Gateway(Answer answer);
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway();

  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  [[nodiscard]] int requests() const noexcept { return requests_.load(); }
  /// What begins with this is sent, and then nothing more: the connection stays open until the client closes it.
  static constexpr const char* kThenNothing = "\x01";

 private:
  void run();
  void serve(int connection);

  const Answer answer_;
  UniqueFd listener_;
  std::string url_;
  std::atomic<int> requests_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
  std::vector<std::thread> serving_;  ///< Of thread_.
};

/// A whole answer with the length of its body.
[[nodiscard]] std::string answer(int status, const std::string& body);

}  // namespace lrpc::directory::test
