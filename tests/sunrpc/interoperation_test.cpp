// Calls between our Sun RPC and rpcgen's programs, in both directions, over UDP and TCP on loopback.
#include "sun_host.h"

namespace lrpc::netrpc::test {
namespace {

class SunRpcInteroperation : public testing::TestWithParam<bool> {
 protected:
  const bool tcp = GetParam();
};

TEST_P(SunRpcInteroperation, our_client_calls_a_server_of_rpcgens) {
  const CalcServer server(tcp ? "tcp" : "");
  const std::uint16_t at = server.port();
  ASSERT_NE(at, 0);
  SunHost ours(tcp ? kCallsOverTcp : kCallsOverUdp);
  std::vector<std::byte> results;
  EXPECT_EQ(ours.call(at, kCalc, 1, 1, XdrWriter().word(40).word(2).bytes(), &results), Errc::ok);
  EXPECT_EQ(results, XdrWriter().word(42).bytes());

  const std::string bytes(5001, 'b');
  XdrWriter note;
  note.text("drawer").text("a" + bytes).hyper(5'000'000'000).boolean(false);
  note.real(1.5);
  EXPECT_EQ(ours.call(at, kCalc, 1, 2, note.bytes(), &results), Errc::ok);
  XdrWriter turned;
  turned.text("reward").text(bytes + "a").hyper(static_cast<std::uint64_t>(-5'000'000'000)).boolean(true);
  turned.real(3.0);
  EXPECT_EQ(results, turned.bytes());

  EXPECT_EQ(ours.call(at, kCalc, 1, 3, {}, &results), Errc::ok);
  EXPECT_EQ(results, XdrWriter().word(4711).bytes());
  EXPECT_EQ(ours.call(at, kCalc, 1, 0, {}), Errc::ok);
  EXPECT_EQ(ours.call(at, kCalc, 1, 99, {}), Errc::bad_procedure);
  EXPECT_EQ(ours.call(at, kCalc, 2, 1, {}), Errc::version_mismatch);
  EXPECT_EQ(ours.call(at, kCalc + 1, 1, 1, {}), Errc::name_unknown);
  // A text that is too long. (Text that is too short shows nothing: libtirpc reads what its buffer had before.)
  EXPECT_EQ(ours.call(at, kCalc, 1, 2, XdrWriter().text(std::string(101, 'x')).bytes()), Errc::argument_out_of_range);
}

TEST_P(SunRpcInteroperation, a_client_of_rpcgens_calls_our_server) {
  std::optional<SunHost> ours;
  const std::uint16_t port = serve_calc(ours, tcp);
  ASSERT_NE(port, 0);
  const Said said = run(LRPC_CALC_CLIENT " " + std::to_string(port) + (tcp ? " tcp" : ""));
  EXPECT_TRUE(said.well);
  EXPECT_EQ(said.text,
            "add: -42\n"
            "turn: desserts right 5000000000 0 2.5\n"
            "who: 7\n"
            "nothing: RPC: Success\n"
            "no procedure: RPC: Procedure unavailable\n"
            "no arguments: RPC: Server can't decode arguments\n"
            "no version: RPC: Program/version mismatch\n"
            "no program: RPC: Program unavailable\n");
}

INSTANTIATE_TEST_SUITE_P(Over, SunRpcInteroperation, testing::Bool(),
                         [](const auto& one) { return one.param ? "TCP" : "UDP"; });

}  // namespace
}  // namespace lrpc::netrpc::test
