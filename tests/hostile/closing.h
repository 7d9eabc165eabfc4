// Sends descriptors that are slow to close to the party that must close them. Nobody else may wait for that: otherwise
// the test hangs, or its bystander's calls fail.
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
    // Not kept: any process that is started now would inherit it, and have to close it.
    if (make(kind_) == nullptr) GTEST_SKIP() << "cannot be made here: " << name_of(kind_);
  }
  /// Runs before any process is ended: a process that still has to close it could not end.
  void TearDown() override { slow_.clear(); }
  /// Lives until the end of the test, so that until then close(2) blocks.
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
  /// The same when nobody receives yet: from here on the last copy is in the socket.
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
