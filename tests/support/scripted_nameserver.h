// A nameserver whose requests the test reads and answers one by one.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "eventually.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/system/fd.h"

namespace testing_lrpc {

/// It has one connection at a time.
class ScriptedNameserver {
 public:
  explicit ScriptedNameserver(const std::string& path) : listener_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    unlink(path.c_str());
    if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_.get(), 4) != 0) {
      throw std::runtime_error("ScriptedNameserver");
    }
  }
  /// Waits for the next connection, in place of the one that it has.
  void accept() { connection_ = lrpc::UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  void hang_up() { connection_.reset(); }
  /// Waits for the server to hang up. False: it sends something, or does nothing.
  [[nodiscard]] bool hung_up_on() {
    return lrpc::shim::receive_message(connection_.get(), kPatience).code() == lrpc::Errc::peer_gone;
  }
  /// The next request, of the wanted kind. None: it is of another kind, or none comes.
  template <class Request>
  std::optional<Request> next() {
    auto message = lrpc::shim::receive_message(connection_.get(), kPatience);
    if (!message || !*message || !std::holds_alternative<Request>((*message)->body)) return std::nullopt;
    last_ = (*message)->request;
    return std::get<Request>((*message)->body);
  }
  /// Answers the last request.
  template <class Answer>
  void answer(Answer body) {
    EXPECT_TRUE(lrpc::shim::send_message(connection_.get(), {last_, std::move(body), {}, {}}));
  }

 private:
  lrpc::UniqueFd listener_;
  lrpc::UniqueFd connection_;
  std::uint32_t last_ = 0;
};

}  // namespace testing_lrpc
