// What a sealed program gets from the process that starts it.
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "trap_world.h"

namespace testing_lrpc {
namespace {

using SealedStart = TrapWorld;

/// Lets core files be written into a directory of its own, as far as the hard limit allows.
class CoreFilesAllowed {
 public:
  CoreFilesAllowed() {
    getrlimit(RLIMIT_CORE, &before_);
    const rlimit most{before_.rlim_max, before_.rlim_max};
    setrlimit(RLIMIT_CORE, &most);
    std::filesystem::current_path(directory_.path());
  }
  ~CoreFilesAllowed() {
    std::filesystem::current_path(at_);
    setrlimit(RLIMIT_CORE, &before_);
  }
  CoreFilesAllowed(const CoreFilesAllowed&) = delete;
  CoreFilesAllowed& operator=(const CoreFilesAllowed&) = delete;

  [[nodiscard]] bool by_the_hard_limit() const noexcept { return before_.rlim_max == RLIM_INFINITY; }
  [[nodiscard]] bool some_were_written() const { return !std::filesystem::is_empty(directory_.path()); }

 private:
  const std::filesystem::path at_ = std::filesystem::current_path();
  const TemporaryDirectory directory_;
  rlimit before_{};
};

TEST_F(SealedStart, leaves_a_program_no_core_file) {
  const CoreFilesAllowed allowed;
  if (!allowed.by_the_hard_limit()) GTEST_SKIP() << "the hard limit (RLIMIT_CORE) allows no core files here";
  EXPECT_EQ(run({"core-limit", "host"}), 0);
  EXPECT_EQ(run({"abort", "host"}), -1000 - SIGABRT);
  EXPECT_FALSE(allowed.some_were_written());
}

}  // namespace
}  // namespace testing_lrpc
