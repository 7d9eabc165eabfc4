// When a client that has offered to be called back can be asked again.
#include "lrpc/detail/server/callback_port.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <utility>

#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::server {
namespace {

/// What the next attempt to bind ends with.
Errc next_outcome = Errc::ok;

/// In place of a binding to the client's callback.
class FakeBinding {
 public:
  [[nodiscard]] const FakeBinding& object() const noexcept { return *this; }
  void check_server() const noexcept {}
  [[nodiscard]] bool revoked() const noexcept { return false; }
  void revoke() const noexcept {}
  [[nodiscard]] shim::Credentials server() const noexcept { return {::getpid(), 0, 0}; }
};

struct FakeStub {
  [[nodiscard]] FakeBinding& binding() noexcept { return made; }
  FakeBinding made;
};

struct FakeOptions {
  std::optional<std::chrono::milliseconds> timeout{};
};

Result<FakeStub> import_over(UniqueFd /*socket*/, const FakeOptions& /*options*/) {
  if (next_outcome != Errc::ok) return Error{next_outcome, "it failed"};
  return FakeStub{};
}

class CallbackPortTest : public testing::Test {
 protected:
  CallbackPortTest() {
    auto pair = shim::make_socket_pair();
    EXPECT_TRUE(pair);
    clients_ = std::move(pair->first);
    port_.offer(shim::PeerSocket(std::move(pair->second), shim::PeerSocket::Made::here, {::getuid()}));
  }
  Errc bind(Errc outcome) {
    next_outcome = outcome;
    return port_.bound<FakeStub, &import_over, &FakeStub::binding>(FakeOptions{}).code();
  }

  CallbackPort port_{::getpid(), true};
  UniqueFd clients_;
};

TEST_F(CallbackPortTest, asks_a_client_again_that_was_slow_or_if_something_was_lacking) {
  for (const Errc passing : {Errc::timed_out, Errc::limit_reached, Errc::system_error})
    EXPECT_EQ(bind(passing), passing);
  EXPECT_EQ(bind(Errc::ok), Errc::ok);
}

TEST_F(CallbackPortTest, lets_go_of_an_offer_that_is_none) {
  EXPECT_EQ(bind(Errc::bad_message), Errc::bad_message);
  EXPECT_EQ(bind(Errc::ok), Errc::not_supported);
}

}  // namespace
}  // namespace lrpc::server
