#include "layers/auth_stack.h"

#include <gtest/gtest.h>

#include <string>

#include "netrpc/protocols/auth/keys.h"

namespace lrpc::bench {
namespace {

/// The path of the key file, which the graph has between quotation marks.
std::string keys_of(const AuthStack& auth) {
  const std::string graph(auth.stack().graph);
  const std::size_t from = graph.find('"') + 1;
  return graph.substr(from, graph.find('"', from) - from);
}

TEST(AuthStack, its_graph_names_a_file_with_a_key_for_every_host) {
  const AuthStack auth;
  ASSERT_TRUE(auth.written()) << auth.written().error().message();
  const auto keys = netrpc::auth::KeyRing::read(keys_of(auth));
  ASSERT_TRUE(keys) << keys.error().message();
  EXPECT_NE(keys->find({0x0a000001}), nullptr);
}

TEST(AuthStack, the_key_goes_with_it) {
  std::string path;
  {
    const AuthStack auth;
    path = keys_of(auth);
  }
  EXPECT_FALSE(netrpc::auth::KeyRing::read(path));
}

}  // namespace
}  // namespace lrpc::bench
