#include "gateway.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace lrpc::directory::test {
namespace {

std::string header(const std::string& head, const std::string& name) {
  const std::size_t at = head.find("\r\n" + name + ": ");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 4;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

}  // namespace

std::string answer(int status, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) + " x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

Gateway::Gateway(Answer answer)
    : answer_(std::move(answer)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_.get(), generic, size) != 0 || ::listen(listener_.get(), 16) != 0 ||
      ::getsockname(listener_.get(), generic, &size) != 0)
    throw std::runtime_error("no gateway on loopback");
  url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  thread_ = std::thread([this] { run(); });
}

Gateway::~Gateway() {
  stopping_ = true;
  ::shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
}

void Gateway::run() {
  while (!stopping_) {
    UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection) serving_.emplace_back([this, one = std::move(connection)] { serve(one.get()); });
  }
  for (std::thread& one : serving_) one.join();
}

void Gateway::serve(int connection) {
  std::string got;
  const auto more = [&] {
    pollfd entry{connection, POLLIN, 0};
    while (!stopping_) {
      if (::poll(&entry, 1, 20) <= 0) continue;
      char buffer[4096];
      const ssize_t size = ::read(connection, buffer, sizeof buffer);
      if (size <= 0) return false;
      got.append(buffer, static_cast<std::size_t>(size));
      return true;
    }
    return false;
  };
  for (;;) {
    std::size_t end = 0;
    while ((end = got.find("\r\n\r\n")) == std::string::npos)
      if (!more()) return;
    const std::string head = got.substr(0, end + 2);
    const std::string length = header(head, "Content-Length");
    const std::size_t size = length.empty() ? 0 : std::stoul(length);
    while (got.size() < end + 4 + size)
      if (!more()) return;
    const std::size_t path = head.find(' ') + 1;
    ++requests_;
    std::string text = answer_(
        {head.substr(path, head.find(' ', path) - path), header(head, "Authorization"), got.substr(end + 4, size)});
    got.erase(0, end + 4 + size);
    if (text.empty()) return;
    const bool then_nothing = text.starts_with(kThenNothing);
    if (then_nothing) text.erase(0, 1);
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t now = ::send(connection, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (now <= 0) return;
      sent += static_cast<std::size_t>(now);
    }
    while (then_nothing)
      if (!more()) return;
  }
}

}  // namespace lrpc::directory::test
