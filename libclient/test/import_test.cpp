// What an import says if the nameserver has turned the client away.
#include "import/import.h"

#include <gtest/gtest.h>

#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::client {
namespace {

TEST(Import, of_a_client_that_was_turned_away_before_it_could_ask_says_why) {
  auto ends = make_socket_pair();
  ASSERT_TRUE(ends);
  const shim::Failed reason{Errc::limit_reached, "its quota is 2 (connections)"};
  ASSERT_TRUE(shim::send_message(ends->first.get(), {0, reason, {}, {}}));
  ends->first.reset();
  const auto bound = client::bind(ends->second.get(), "files", {}, {});
  EXPECT_EQ(bound.code(), reason.code);
  EXPECT_EQ(bound.error().text, reason.text);
}

}  // namespace
}  // namespace lrpc::client
