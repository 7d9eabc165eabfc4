// Stands for etcd's gateway, on loopback. The input says what it answers, and when it breaks off.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "input.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::directory {

/// Never destroyed: a fuzzer ends by _exit().
class HostileGateway {
 public:
  struct Answer {
    std::string bytes;    ///< Status line, headers and body, or anything else.
    bool closes = false;  ///< Closes the connection after the answer; needed if the answer does not say where it ends.
  };

  HostileGateway() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    fuzz::require(::bind(listener_.get(), generic, size) == 0 && ::listen(listener_.get(), 16) == 0 &&
                      ::getsockname(listener_.get(), generic, &size) == 0,
                  "there is a gateway");
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    std::thread([this] { serve(); }).detach();
  }
  [[nodiscard]] const std::string& url() const noexcept { return url_; }

  void will_say(Answer answer) {
    const std::lock_guard lock(mutex_);
    answers_.push_back(std::move(answer));
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    answers_.clear();
  }

 private:
  struct Connection {
    UniqueFd fd;
    std::string got;
  };

  /// The length of the first request; 0: it is not complete.
  static std::size_t whole(std::string_view got) {
    constexpr std::string_view kLength = "Content-Length: ";
    const std::size_t end = got.find("\r\n\r\n");
    const std::size_t length = got.substr(0, end).find(kLength);
    if (end == std::string_view::npos || length == std::string_view::npos) return 0;
    std::size_t body = 0;
    (void)std::from_chars(got.data() + length + kLength.size(), got.data() + end, body);
    return got.size() >= end + 4 + body ? end + 4 + body : 0;
  }

  void serve() {
    std::list<Connection> connections;
    for (;;) {
      std::vector<pollfd> watched{{listener_.get(), POLLIN, 0}};
      for (const Connection& one : connections) watched.push_back({one.fd.get(), POLLIN, 0});
      if (::poll(watched.data(), watched.size(), -1) < 0) continue;
      std::size_t i = 1;
      for (auto one = connections.begin(); one != connections.end(); ++i) {
        const bool stays = (watched[i].revents == 0) || answered(*one);
        one = stays ? std::next(one) : connections.erase(one);
      }
      if (watched[0].revents != 0)
        if (UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)); fd)
          connections.push_back({std::move(fd), {}});
    }
  }

  /// Answers the complete requests. False: the connection ends.
  bool answered(Connection& connection) {
    char buffer[4096];
    const ssize_t size = ::read(connection.fd.get(), buffer, sizeof buffer);
    if (size <= 0) return false;
    connection.got.append(buffer, static_cast<std::size_t>(size));
    for (std::size_t request = 0; (request = whole(connection.got)) != 0;) {
      connection.got.erase(0, request);
      Answer answer{.bytes = {}, .closes = true};
      {
        const std::lock_guard lock(mutex_);
        if (!answers_.empty()) {
          answer = std::move(answers_.front());
          answers_.pop_front();
        }
      }
      std::string_view left = answer.bytes;
      while (!left.empty()) {
        const ssize_t sent = ::send(connection.fd.get(), left.data(), left.size(), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        left.remove_prefix(static_cast<std::size_t>(sent));
      }
      if (answer.closes) return false;
    }
    return true;
  }

  const UniqueFd listener_;
  std::string url_;
  std::mutex mutex_;
  std::deque<Answer> answers_;
};

}  // namespace lrpc::directory
