// In the steady state the server's host allocates nothing for another host's Sun RPC call.
#include <gtest/gtest.h>

#include <algorithm>

#include "netrpc/sim/test/counted_allocations.h"
#include "remote_fixture.h"
#include "served_program.h"

namespace lrpc::sun {
namespace {

class ServedAllocations : public testing_netpath::TwoHosts {};

/// Other threads of this process allocate occasionally: one round without allocations is enough.
TEST_F(ServedAllocations, there_are_none_in_the_steady_state) {
  constexpr std::uint32_t kAdd = 2;
  Server server{ServerOptions{.nameserver = there_->socket()}};
  ExportOptions exported;
  exported.authorise_remote = [](const shim::Principal&) { return Status(); };
  ASSERT_TRUE(Conformance::export_to(server, "counted", service_, exported));
  ServedProgram program({.name = "counted", .version = 2, .nameserver = there_->socket()});
  const netrpc::XdrWriter arguments = netrpc::XdrWriter().integer(40).integer(2);
  const netrpc::XdrWriter sum = netrpc::XdrWriter().integer(42);
  ServedProgram::Work work;
  std::uint64_t fewest = ~std::uint64_t{0};
  for (int round = 0; round < 50 && fewest != 0; ++round) {
    const std::uint64_t before = netrpc::allocations_so_far();
    for (int i = 0; i < 100; ++i) {
      const auto deadline = ServedProgram::Clock::now() + testing_netpath::kPatience;
      ASSERT_EQ(program.call({.host = 0x0a000007}, kAdd, arguments.bytes(), deadline, work), Errc::ok);
      ASSERT_TRUE(std::ranges::equal(work.results.bytes(), sum.bytes()));
    }
    fewest = std::min(fewest, netrpc::allocations_so_far() - before);
  }
  EXPECT_EQ(fewest, 0U) << "in 100 calls";
}

}  // namespace
}  // namespace lrpc::sun
