// Options of graph instances whose values are out of range.
#include <gtest/gtest.h>

#include <string>

#include "netrpc/devices/eth/eth.h"
#include "netrpc/devices/ip/ip.h"
#include "netrpc/devices/tcp/tcp.h"
#include "netrpc/devices/udp/udp.h"
#include "netrpc/sim/storm_stacks.h"
#include "netrpc/sim/test_hosts.h"

namespace lrpc::netrpc {
namespace {

/// The product of two options exceeds the longest duration that can be represented.
TEST(OptionRanges, the_longest_durations_of_paired_are_judged_by_its_rule) {
  SimHosts net(1);
  const ProtocolKinds kinds = simulated_kinds();
  const Result<GraphDescription> parsed = GraphDescription::parse(
      "udp = UDP; top = PAIRED(max_retry = 1000, longest_timeout = 31536000s) over udp;", kinds);
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_EQ(Graph::compose(net[0].host(), *parsed, kinds).error().text,
            "1: top: no_activity must be longer than max_retry times longest_timeout");
}

/// So `--check` finds these errors, and no number is silently truncated.
TEST(OptionRanges, those_of_devices_are_checked_with_the_text) {
  ProtocolKinds kinds;
  kinds.add(eth_kind()).add(ip_kind()).add(udp_kind()).add(tcp_kind());
  const auto error_of = [&](const std::string& instance) {
    const Result<GraphDescription> parsed = GraphDescription::parse("device = " + instance + ";", kinds);
    return parsed ? "" : parsed.error().text;
  };
  for (const std::string fine :
       {"ETH(types = 65535, peers = 1)", "IP(peers = 1)", "UDP(ports = 65535, local_ports = 0, peers = 1)",
        "UDP(local_port = 65535)", "TCP(port = 65535, peers = 65536, longest = 1048576, idle = 86400s)"})
    EXPECT_EQ(error_of(fine), "");
  for (const std::string wrong :
       {"ETH(types = 65536)", "ETH(types = 0x10000a700)", "ETH(peers = 0)", "IP(peers = 0)", "UDP(ports = 70000)",
        "UDP(local_ports = 65536)", "UDP(local_port = 0)", "UDP(peers = 0)", "TCP(port = 0)", "TCP(port = 65536)",
        "TCP(peers = 0)", "TCP(peers = 65537)", "TCP(longest = 0)", "TCP(longest = 1048577)", "TCP(idle = 0ms)",
        "TCP(idle = 86401s)"})
    EXPECT_NE(error_of(wrong).find("is out of range for the option"), std::string::npos) << wrong << error_of(wrong);
}

/// A timer of no length would leave the host no time for anything else.
TEST(OptionRanges, those_of_protocols_leave_time_between_two_runs_of_a_timer_and_room_for_one_message) {
  const ProtocolKinds kinds = simulated_kinds();
  const auto error_of = [&](const std::string& instance) {
    const Result<GraphDescription> parsed =
        GraphDescription::parse("a = ETH; b = IP; c = CHANNEL over a; d = " + instance + ";", kinds);
    return parsed ? "" : parsed.error().text;
  };
  for (const std::string fine : {"CHANNEL(initial_timeout = 1us) over a", "M_RPC(give_up = 1ms) over a",
                                 "FRAGMENT(idle = 1ms, incomplete_bytes = 36864) over a", "VIP(idle = 1ms) over a, b",
                                 "VIPSIZE(idle = 1ms) over a, b", "AUTH(keys = k, idle = 1ms) over a"})
    EXPECT_EQ(error_of(fine), "");
  for (const std::string wrong :
       {"CHANNEL(initial_timeout = 0ns) over a", "M_RPC(give_up = 1ns) over a", "FRAGMENT(idle = 1ns) over a",
        "FRAGMENT(incomplete_bytes = 0) over a", "VIP(idle = 1ns) over a, b", "VIPSIZE(idle = 1ns) over a, b",
        "AUTH(keys = k, idle = 1ns) over a"})
    EXPECT_NE(error_of(wrong).find("is out of range for the option"), std::string::npos) << wrong << error_of(wrong);
  EXPECT_NE(error_of("FORWARDING_SELECT(number = 245) over c").find("has no option 'number'"), std::string::npos);
}

}  // namespace
}  // namespace lrpc::netrpc
