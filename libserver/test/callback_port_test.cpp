// When a client that has offered to be called back can be asked again.
#include "lrpc/detail/server/callback_port.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/system/pidfd.h"
#include "soft_limit.h"

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
  CallbackPortTest() { clients_ = offer_to(port_); }
  /// Returns the client's end of what it offers.
  static UniqueFd offer_to(CallbackPort& port) {
    auto pair = shim::make_socket_pair();
    EXPECT_TRUE(pair);
    port.offer(shim::PeerSocket(std::move(pair->second), shim::PeerSocket::Made::here, {::getuid()}));
    return std::move(pair->first);
  }
  static Result<std::shared_ptr<FakeStub>> bind_at(CallbackPort& port, Errc outcome) {
    next_outcome = outcome;
    return port.bound<FakeStub, &import_over, &FakeStub::binding>(FakeOptions{});
  }
  Errc bind(Errc outcome) { return bind_at(port_, outcome).code(); }

  const UniqueFd self_ = shim::pidfd_of(::getpid());
  CallbackPort port_{::getpid(), self_.get(), true};
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

TEST_F(CallbackPortTest, keeps_an_offer_for_which_there_was_no_descriptor) {
  {
    const testing_lrpc::SoftLimit none(1);
    const auto lacking = bind_at(port_, Errc::ok);
    EXPECT_EQ(lacking.code(), Errc::system_error);
    EXPECT_NE(lacking.error().message().find("dup of a client's offer"), std::string::npos)
        << lacking.error().message();
  }
  EXPECT_FALSE(shim::hung_up(clients_.get()));
  EXPECT_EQ(bind(Errc::ok), Errc::ok);
}

TEST_F(CallbackPortTest, of_a_binding_that_has_ended_hangs_up_and_says_that_the_client_has_gone) {
  port_.close();
  const auto ended = bind_at(port_, Errc::ok);
  EXPECT_EQ(ended.code(), Errc::binding_revoked);
  EXPECT_NE(ended.error().text.find("the client has gone"), std::string::npos) << ended.error().text;
  EXPECT_TRUE(shim::hung_up(clients_.get()));
}

TEST_F(CallbackPortTest, of_a_client_without_a_process_number_here_never_uses_the_offer_and_hangs_up) {
  CallbackPort port(0, -1, true);
  const UniqueFd clients = offer_to(port);
  const auto refused = bind_at(port, Errc::ok);
  EXPECT_EQ(refused.code(), Errc::not_permitted);
  EXPECT_NE(refused.error().text.find("has no process number"), std::string::npos) << refused.error().text;
  EXPECT_TRUE(shim::hung_up(clients.get()));
  EXPECT_EQ(bind_at(port, Errc::ok).code(), Errc::not_supported) << "nothing is offered any more";
}

/// This process is the one that has the client's number by now, and answers.
TEST_F(CallbackPortTest, of_a_client_that_has_ended_takes_no_answer_of_another_process_with_its_number) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  const UniqueFd ended = shim::pidfd_of(child);
  ASSERT_TRUE(ended);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  CallbackPort port(::getpid(), ended.get(), true);
  const UniqueFd clients = offer_to(port);
  EXPECT_EQ(bind_at(port, Errc::ok).code(), Errc::binding_revoked);
  EXPECT_FALSE(port.keeps_stub());
  EXPECT_TRUE(shim::hung_up(clients.get()));
}

}  // namespace
}  // namespace lrpc::server
