// Sends what is slow to close to whoever has to close it. Nobody else waits for that: each such test would hang, and
// each bystander in it fail, if somebody did.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "slow_to_close.h"

namespace testing_lrpc {

class Closing : public testing::Test {
 protected:
  explicit Closing(Slow slow) : kind_(slow) {}
  void SetUp() override {
    // Not kept: whatever process is started now would have to close it.
    if (make(kind_) == nullptr) GTEST_SKIP() << "cannot be made here: " << name_of(kind_);
  }
  /// Before any process is ended, which could not end before.
  void TearDown() override { slow_.clear(); }
  /// Lives as long as the test: until its very end nobody gets it closed.
  SlowToClose* make_one() {
    auto made = make(kind_);
    return made == nullptr ? nullptr : slow_.emplace_back(std::move(made)).get();
  }
  /// Sends one over `socket` with `byte`, and keeps no copy.
  bool send_one(int socket, char byte) {
    SlowToClose* const slow = make_one();
    const bool sent = slow != nullptr && send_with(socket, byte, slow->get());
    if (sent) slow->give_away_meanwhile();
    return sent;
  }
  /// The same where nobody receives yet: from here on the last copy lies in the socket.
  bool leave_one(int socket) {
    SlowToClose* const slow = make_one();
    const bool sent = slow != nullptr && send_with(socket, 'x', slow->get());
    if (sent) slow->give_away();
    return sent;
  }
  static bool send_with(int socket, char byte, int fd) {
    const std::array<std::byte, 1> bytes{static_cast<std::byte>(byte)};
    return send_packet(socket, bytes, {&fd, 1});
  }

 private:
  const Slow kind_;
  std::vector<std::unique_ptr<SlowToClose>> slow_;
};

class ClosingOfAKind : public Closing, public testing::WithParamInterface<Slow> {
 protected:
  ClosingOfAKind() : Closing(GetParam()) {}
};

inline std::string kind(const testing::TestParamInfo<Slow>& slow) { return name_of(slow.param); }

}  // namespace testing_lrpc
