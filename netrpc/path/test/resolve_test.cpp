// From the name of a host to its address.
#include "resolve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace lrpc::netpath {
namespace {

TEST(HostNames, are_not_said_to_be_unknown_if_there_is_no_descriptor_to_look_them_up) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto name = resolve("localhost");
  const auto number = resolve("10.0.0.2");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(name.code(), Errc::limit_reached);
  EXPECT_NE(name.error().message().find("'localhost' cannot be looked up"), std::string::npos)
      << name.error().message();
  EXPECT_EQ(number.code(), Errc::ok) << "which nobody needs to look up";
}

}  // namespace
}  // namespace lrpc::netpath
