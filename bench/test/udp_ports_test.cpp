#include "layers/udp_ports.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <iterator>

namespace lrpc::bench {
namespace {

std::size_t descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST(UdpPorts, a_byte_goes_there_and_back_however_many_ports_are_open) {
  auto ports = UdpPorts::open();
  ASSERT_TRUE(ports) << ports.error().message();
  for (const std::size_t count : {1U, 50U, 7U}) {
    ASSERT_TRUE(ports->have(count));
    EXPECT_EQ(ports->ports(), count);
    EXPECT_TRUE(ports->once());
    EXPECT_TRUE(ports->once());
  }
}

TEST(UdpPorts, each_further_port_is_a_socket_that_is_closed_when_fewer_are_wanted) {
  auto ports = UdpPorts::open();
  ASSERT_TRUE(ports) << ports.error().message();
  const std::size_t before = descriptors();
  ASSERT_TRUE(ports->have(100));
  EXPECT_EQ(descriptors(), before + 99);
  ASSERT_TRUE(ports->have(1));
  EXPECT_EQ(descriptors(), before);
}

TEST(UdpPorts, more_than_the_limit_of_descriptors_is_an_error_and_those_there_are_work) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{200, before.rlim_max};
  auto ports = UdpPorts::open();
  ASSERT_TRUE(ports) << ports.error().message();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_EQ(UdpPorts::most(), 72U);
  EXPECT_TRUE(ports->have(UdpPorts::most()));
  EXPECT_FALSE(ports->have(1000));
  EXPECT_TRUE(ports->once());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace lrpc::bench
