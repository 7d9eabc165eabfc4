// `name@` with several hosts: after which failures the next host is tried.
#include "remote/failover.h"

#include <gtest/gtest.h>

namespace lrpc::client {
namespace {

TEST(Failover, goes_on_after_what_concerns_one_host_and_not_after_a_mistake_of_the_caller) {
  for (const Errc code :
       {Errc::remote_unavailable, Errc::name_unknown, Errc::peer_gone, Errc::hash_mismatch, Errc::message_too_long})
    EXPECT_TRUE(next_host_may_do(code)) << describe(code);
  for (const Errc code : {Errc::ok, Errc::invalid_argument, Errc::not_supported, Errc::no_nameserver})
    EXPECT_FALSE(next_host_may_do(code)) << describe(code);
  EXPECT_FALSE(not_reached(Errc::name_unknown)) << "who says that it has no such name was reached";
}

TEST(Failover, goes_on_after_a_host_that_only_the_directory_has_named) {
  EXPECT_TRUE(next_named_host_may_do(Errc::invalid_argument)) << "as for another address of this machine";
  EXPECT_TRUE(next_named_host_may_do(Errc::remote_unavailable));
  EXPECT_FALSE(next_named_host_may_do(Errc::not_supported));
}

TEST(Failover, asks_again_while_lrpcd_cannot_be_reached_though_no_host_can_be_tried_then) {
  EXPECT_TRUE(asking_again_may_do(Errc::no_nameserver)) << "it is being restarted";
  EXPECT_TRUE(asking_again_may_do(Errc::system_error)) << "memory lacks to connect to it";
  EXPECT_TRUE(asking_again_may_do(Errc::remote_unavailable));
  EXPECT_FALSE(asking_again_may_do(Errc::invalid_argument));
}

TEST(Failover, waits_for_the_directory_little_longer_than_its_caller) {
  using namespace std::chrono_literals;
  EXPECT_EQ(patience_with_directory(0ms, 0ms), 15s);
  EXPECT_EQ(patience_with_directory(1s, 200ms), 5200ms);
  EXPECT_EQ(patience_with_directory(1s, 0ms), 5s) << "its last call";
  EXPECT_EQ(patience_with_directory(3600s, 3599s), 60s);
  EXPECT_EQ(patience_with_directory(std::chrono::milliseconds::max(), std::chrono::milliseconds::max()), 60s);
}

TEST(Failover, waits_for_the_network_domain_longer_than_that_waits_for_a_silent_host) {
  using namespace std::chrono_literals;
  EXPECT_EQ(patience_with_network(0ms), 60s);
  EXPECT_EQ(patience_with_network(1s), 61s);
  EXPECT_GT(patience_with_network(std::chrono::milliseconds::max() - 1ms), 24h) << "no overflow";
  EXPECT_EQ(patience_with_network(kNoLimit), kNoLimit);
}

TEST(Failover, reads_the_hosts_of_an_answer_whatever_it_is) {
  using Hosts = std::vector<std::string_view>;
  EXPECT_EQ(hosts_of("10.0.0.1 10.0.0.2"), (Hosts{"10.0.0.1", "10.0.0.2"}));
  EXPECT_EQ(hosts_of(""), Hosts());
  EXPECT_EQ(hosts_of("  a  b "), (Hosts{"a", "b"}));
  EXPECT_EQ(hosts_of("1 2 3 4 5 6 7 8 9 10").size(), 8U);
}

}  // namespace
}  // namespace lrpc::client
