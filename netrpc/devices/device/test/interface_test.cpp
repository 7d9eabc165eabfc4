// Which of several network interfaces lrpc-netd chooses as the machine's.
#include "netrpc/devices/device/interface.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "netrpc/devices/device/internet_address.h"
#include "netrpc/test_support/namespaces.h"
#include "soft_limit.h"

namespace lrpc::netrpc::test {
namespace {

class ChosenInterface : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_namespaces()) GTEST_SKIP() << *why;
    here_.emplace();
    there_.emplace();
    join(*here_, "lan", "10.0.0.1/24", *there_, "lan", "10.0.0.2/24");
    join(*here_, "vpn", "10.8.0.1/24", *there_, "vpn", "10.8.0.2/24");
  }
  /// The name of the chosen interface, or the error.
  [[nodiscard]] std::string chosen() const {
    std::string name;
    here_->run([&] {
      const auto found = find_interface({});
      name = found ? found->name : found.error().message();
    });
    return name;
  }

  std::optional<Namespace> here_;
  std::optional<Namespace> there_;
};

TEST_F(ChosenInterface, is_that_of_the_default_route) {
  EXPECT_NE(chosen().find("which interface? Name one of: "), std::string::npos) << chosen();
  here_->ip("route add default via 10.8.0.2 metric 200");
  EXPECT_EQ(chosen(), "vpn");
  here_->ip("route add default via 10.0.0.2 metric 100");
  EXPECT_EQ(chosen(), "lan");
}

TEST_F(ChosenInterface, is_not_that_of_routes_that_take_precedence_over_the_default_route) {
  here_->ip("route add default via 10.0.0.2");
  here_->ip("route add 0.0.0.0/1 via 10.8.0.2");
  here_->ip("route add 128.0.0.0/1 via 10.8.0.2");
  EXPECT_EQ(chosen(), "lan");
}

TEST_F(ChosenInterface, is_not_none_because_a_default_route_leads_nowhere) {
  here_->ip("route add unreachable default metric 4278198272");
  EXPECT_NE(chosen().find("which interface? Name one of: "), std::string::npos) << chosen();
  here_->ip("route add default via 10.0.0.2");
  EXPECT_EQ(chosen(), "lan");
}

TEST(RouteToHost, is_not_told_to_be_missing_if_there_is_no_descriptor_to_ask_the_kernel) {
  if (const auto why = why_no_namespaces()) GTEST_SKIP() << *why;
  const Namespace own;  // where loopback is up; where the test was started it may be down
  own.run([] {
    constexpr HostAddress kThisHost{0x7f000001};
    EXPECT_EQ(route_to(kThisHost), Errc::ok);
    EXPECT_EQ(route_to({0xffffffff}), Errc::host_unreachable) << "no host's";
    std::optional<testing_lrpc::SoftLimit> few(std::in_place, 0);
    const Errc here = route_to(kThisHost);
    few.reset();
    EXPECT_EQ(here, Errc::limit_reached);
  });
}

TEST(CannotBind, says_which_address_or_port) {
  constexpr HostAddress kHost{0x0a000001};
  EXPECT_EQ(cannot_bind("udp", kHost, 111, EADDRNOTAVAIL).text, "udp: this machine has no address 10.0.0.1");
  const Error refused = cannot_bind("tcp", kHost, 111, EACCES);
  EXPECT_EQ(refused.code, Errc::not_permitted);
  EXPECT_NE(refused.text.find("tcp: this user may not have port 111"), std::string::npos) << refused.text;
  EXPECT_EQ(cannot_bind("ip", kHost, 0, EACCES).code, system_error("bind", EACCES).code);
}

}  // namespace
}  // namespace lrpc::netrpc::test
