// A stopped lrpcd: the kernel still accepts connections and requests for it, but nothing answers.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <string>

#include "lrpc/detail/shim/system/fd.h"
#include "world.h"

namespace lrpc::netd::test {

class FrozenNameserver {
 public:
  FrozenNameserver() {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path_.copy(at.sun_path, sizeof at.sun_path - 1);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(socket_.get(), 8), 0);
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Waits for a connection. False: none within a minute.
  [[nodiscard]] bool connected() const {
    constexpr int kLongest = 60'000;
    pollfd one{socket_.get(), POLLIN, 0};
    return ::poll(&one, 1, kLongest) == 1;
  }

 private:
  const testing_lrpc::TemporaryDirectory directory_;
  const std::string path_ = (directory_.path() / "lrpcd.sock").string();
  const UniqueFd socket_{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
};

}  // namespace lrpc::netd::test
