// If all procedures of an implementation are const, the implementation may be const, too.
#include <gtest/gtest.h>

#include <utility>

#include "chain.client.h"
#include "chain.server.h"
#include "lrpc/client.h"
#include "lrpc/server.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::CallContext;

struct ConstantLink {
  Chain::SumResults Sum(CallContext&, std::uint32_t depth) const { return {.sum = first + depth, .hops = depth}; }
  void Hold(CallContext&, std::uint32_t) const {}
  Chain::HoldsResults Holds(CallContext&) const { return {}; }
  void Release(CallContext&) const {}
  Chain::PassedResults Passed(CallContext&) const { return {}; }
  lrpc::Result<std::uint64_t> SumByReports(CallContext& context, std::uint32_t depth, std::uint64_t ticket) const {
    auto client = Chain::callback(context);
    if (!client) return client.error();
    return (*client)->Report(ticket, first + depth);
  }

  std::uint64_t first = 1000;
};

struct ConstantReporter {
  std::uint64_t Report(CallContext&, std::uint64_t ticket, std::uint64_t sum) const { return ticket + sum; }
};

TEST(ConstantImplementations, are_exported_and_serve_sockets_and_callbacks) {
  const ConstantLink link;
  const ConstantReporter reporter;
  World world;
  lrpc::Server server({.nameserver = world.nameserver()});
  lrpc::Server own;
  ASSERT_TRUE(Chain::export_to(server, "constant", link));
  auto by_name = Chain::Client::import("constant", {.nameserver = world.nameserver()});
  ASSERT_TRUE(by_name) << by_name.error().message();
  EXPECT_EQ(by_name->Sum(7).value().sum, 1007U);

  auto ends = lrpc::make_socket_pair();
  ASSERT_TRUE(ends);
  ASSERT_TRUE(Chain::serve_over(server, std::move(ends->first), link));
  auto client = Chain::Client::import_over(std::move(ends->second));
  ASSERT_TRUE(client) << client.error().message();
  ASSERT_TRUE(client->serve_callbacks(own, reporter));
  EXPECT_EQ(client->SumByReports(1, 20).value(), 1021U);
}

}  // namespace
}  // namespace testing_lrpc
