// A server without a name, from outside: when it cannot serve over a socket, and when it is moved.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "eventually.h"
#include "lrpc/detail/server/server.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "soft_limit.h"

namespace lrpc::server {
namespace {

class PrivateServer : public testing::Test {
 protected:
  using Ends = std::pair<UniqueFd, UniqueFd>;  ///< The server's and the client's.
  static Ends ends() {
    auto pair = shim::make_socket_pair();
    EXPECT_TRUE(pair);
    return pair ? *std::move(pair) : Ends();
  }
  Status serve_over(Server& server, UniqueFd end) {
    return server.serve_over(std::move(end), kPdl, {}, &implementation_);
  }
  /// Whether the server binds a client that asks over this end. It is bound as long as the answer exists.
  static std::optional<shim::BinderMessage> import_over(const UniqueFd& end) {
    const shim::ImportRequest request{.name = {}, .interface = shim::OwnedInterfaceId::of(kPdl.interface)};
    EXPECT_TRUE(shim::send_message(end.get(), {1, request, {}, {}}));
    auto answer = shim::receive_message(end.get(), testing_lrpc::kPatience);
    if (!answer || !*answer || !std::holds_alternative<shim::Bound>((*answer)->body)) return std::nullopt;
    return std::move(**answer);
  }

  static constexpr AStackClass kClass{64, 0, 1};
  static constexpr Pdl kPdl{.interface = {.name = "Empty"}, .classes = {&kClass, 1}, .procedures = {}, .text = {}};
  const int implementation_ = 0;
};

TEST_F(PrivateServer, that_lacks_descriptors_says_so_hangs_up_and_serves_the_next_client) {
  Server server;
  Ends refused = ends();
  {
    const testing_lrpc::SoftLimit none(1);
    const Status served = serve_over(server, std::move(refused.first));
    EXPECT_EQ(served.code(), Errc::system_error);
    EXPECT_NE(served.error().message().find("epoll_create1"), std::string::npos) << served.error().message();
  }
  EXPECT_TRUE(shim::hung_up(refused.second.get()));
  Ends later = ends();
  ASSERT_TRUE(serve_over(server, std::move(later.first)));
  EXPECT_TRUE(import_over(later.second));
}

TEST_F(PrivateServer, that_is_moved_goes_on_serving_its_clients) {
  Ends first = ends();
  Ends second = ends();
  Server before;
  ASSERT_TRUE(serve_over(before, std::move(first.first)));
  const auto bound_before = import_over(first.second);
  EXPECT_TRUE(bound_before);
  Server moved(std::move(before));
  EXPECT_EQ(moved.statistics().bindings, 1U);
  const auto bound_after = import_over(first.second);
  EXPECT_TRUE(bound_after) << "over the socket that the first one was given";
  EXPECT_EQ(moved.statistics().bindings, 2U);
  EXPECT_TRUE(serve_over(moved, std::move(second.first)));
}

}  // namespace
}  // namespace lrpc::server
