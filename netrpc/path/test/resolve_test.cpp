// From the name of a host to its address.
#include "resolve.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "soft_limit.h"

namespace lrpc::netpath {
namespace {

TEST(HostNames, are_not_said_to_be_unknown_if_there_is_no_descriptor_to_look_them_up) {
  std::optional<testing_lrpc::SoftLimit> few(std::in_place, 0);
  const auto name = resolve("localhost");
  const auto number = resolve("10.0.0.2");
  few.reset();
  EXPECT_EQ(name.code(), Errc::limit_reached);
  EXPECT_NE(name.error().message().find("'localhost' cannot be looked up"), std::string::npos)
      << name.error().message();
  EXPECT_EQ(number.code(), Errc::ok) << "which nobody needs to look up";
}

}  // namespace
}  // namespace lrpc::netpath
