// Which memory from a peer may be mapped.
#include "system/sealed_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/memfd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace lrpc::shim {
namespace {

constexpr std::uint64_t kSize = 2U << 20;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

UniqueFd memory(unsigned flags, std::uint64_t size, int seals) {
  UniqueFd fd(memfd_create("test", flags | MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fd;
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

std::string refusal(const UniqueFd& fd) {
  const Status good = check_sealed_memory(fd.get(), kSize, "it");
  if (good) return "";
  EXPECT_EQ(good.code(), Errc::bad_message);
  return good.error().message();
}

TEST(SealedMemory, that_is_made_here_is_as_it_should_be) {
  auto made = create_sealed_memory("test", kSize);
  ASSERT_TRUE(made);
  EXPECT_EQ(refusal(*made), "");
  EXPECT_NE(ftruncate(made->get(), 1), 0);
  EXPECT_NE(fcntl(made->get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

/// In a child, because a hard limit cannot be raised again.
TEST(SealedMemory, beyond_the_limit_of_file_sizes_is_an_error_and_no_signal) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit small{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) ::_exit(2);
    if (create_sealed_memory("test", kSize).code() != Errc::system_error) ::_exit(3);
    sigset_t after;
    sigemptyset(&after);
    const bool as_before = ::sigpending(&after) == 0 && sigismember(&after, SIGXFSZ) == 0 &&
                           ::pthread_sigmask(SIG_BLOCK, nullptr, &after) == 0 && sigismember(&after, SIGXFSZ) == 0;
    ::_exit(as_before && create_sealed_memory("test", 4096) ? 0 : 4);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(SealedMemory, that_can_change_its_size_or_has_another_or_is_read_only_is_refused) {
  EXPECT_NE(refusal(memory(0, kSize, F_SEAL_SHRINK | F_SEAL_SEAL)).find("is not a sealed memfd"), std::string::npos);
  EXPECT_NE(refusal(memory(0, kSize, F_SEAL_SHRINK | F_SEAL_GROW)).find("is not a sealed memfd"), std::string::npos);
  EXPECT_NE(refusal(memory(0, kSize + 1, kSeals)).find("has 2097153 bytes, and needs 2097152"), std::string::npos);
  EXPECT_NE(refusal(memory(0, kSize, kSeals | F_SEAL_WRITE)).find("is read-only"), std::string::npos);
  EXPECT_NE(refusal(UniqueFd(open("/dev/zero", O_RDWR | O_CLOEXEC))).find("is not a sealed memfd"), std::string::npos);
}

TEST(SealedMemory, of_huge_pages_which_may_not_be_there_when_they_are_touched_is_refused) {
  const UniqueFd huge = memory(MFD_HUGETLB | MFD_HUGE_2MB, kSize, kSeals);
  if (!huge) GTEST_SKIP() << "this kernel has no huge pages of 2 MiB";
  EXPECT_NE(refusal(huge).find("is of huge pages"), std::string::npos);
}

}  // namespace
}  // namespace lrpc::shim
