// The parts of the trap gate that need no filter: how a sealed program finds its binding, and what a server accepts as
// a listener.
#include "lrpc/detail/shim/trap/trap.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lrpc/detail/shim/call/region.h"
#include "system/sealed_memory.h"

namespace lrpc::shim {
namespace {

const ImportRequest kGranted{
    .name = "files", .interface = {"Files", 1, 2, 0x1234}, .timeout_ms = 0, .gate = Gate::trap};
const Bound kBound{.binding_id = 7, .nonce = {1, 2, 3}, .server = {10, 11, 12}, .classes = {{128, 0, 5}}};

/// Does what the launcher does, but with descriptor numbers that this process does not use.
std::string leave(const SealedDescription& description, int region, int memory) {
  EXPECT_EQ(dup2(memfd_create("region", 0), region), region);
  EXPECT_EQ(dup2(description.memory.get(), memory), memory);
  const std::string sizes = description.variable.substr(description.variable.find(':', 2));
  return std::to_string(region) + ':' + std::to_string(memory) + sizes;
}

TEST(SealedBinding, arrives_as_it_was_described) {
  auto description = describe_sealed_binding(kGranted, kBound);
  ASSERT_TRUE(description) << description.error().message();
  auto found = read_sealed_binding(leave(*description, 90, 91));
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->granted.name, "files");
  EXPECT_EQ(found->granted.interface.hash, 0x1234U);
  EXPECT_EQ(found->bound.nonce, kBound.nonce);
  EXPECT_EQ(found->bound.classes, kBound.classes);
  EXPECT_EQ(found->region.get(), 90);
  EXPECT_EQ(fcntl(91, F_GETFD), -1);  // it was read, and is closed
}

/// An administrator may demand that no memfd can be executed.
TEST(SealedBinding, is_described_in_memory_that_is_as_little_executable_as_a_region) {
  constexpr int kNeverExecutable = 0x20;  // F_SEAL_EXEC, Linux 6.3
  const auto description = describe_sealed_binding(kGranted, kBound);
  ASSERT_TRUE(description) << description.error().message();
  const auto region = create_sealed_memory("region", 4096);
  ASSERT_TRUE(region) << region.error().message();
  EXPECT_EQ(fcntl(description->memory.get(), F_GET_SEALS) & kNeverExecutable,
            fcntl(region->get(), F_GET_SEALS) & kNeverExecutable);
}

TEST(SealedBinding, is_not_found_where_the_variable_is_garbage) {
  auto description = describe_sealed_binding(kGranted, kBound);
  ASSERT_TRUE(description);
  const std::string right = leave(*description, 90, 91);
  for (const std::string& wrong :
       {std::string(), std::string("x"), std::string("90"), std::string("90:91"), std::string("90:91:1"), right + ":1",
        right + "x", "-1" + right.substr(2), std::string("90:-1:1:1"), std::string("90:99999999999:1:1"),
        std::string("0:2:1:1")}) {
    EXPECT_EQ(read_sealed_binding(wrong).code(), Errc::bad_message) << wrong;
  }
  EXPECT_NE(fcntl(2, F_GETFD), -1);  // descriptor 2 was not part of it, and must stay open
  // If the sizes are wrong, the descriptors are closed, and nothing is mapped.
  EXPECT_EQ(read_sealed_binding(right.substr(0, right.rfind(':')) + ":999999").code(), Errc::bad_message);
}

TEST(TrapListener, takes_nothing_but_a_seccomp_listener) {
  EXPECT_EQ(TrapListener::take(UniqueFd()).code(), Errc::bad_message);
  EXPECT_EQ(TrapListener::take(UniqueFd(eventfd(0, EFD_CLOEXEC))).code(), Errc::bad_message);
  EXPECT_EQ(TrapListener::take(UniqueFd(memfd_create("seccomp notify", MFD_CLOEXEC))).code(), Errc::bad_message);
  EXPECT_EQ(TrapListener::take(UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC))).code(), Errc::bad_message);
}

TEST(Trap, fails_at_once_where_no_filter_listens) { EXPECT_LT(trap({}), 0); }

}  // namespace
}  // namespace lrpc::shim
