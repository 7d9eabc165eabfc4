// What a sealed program gets from the process that starts it.
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trap_world.h"

namespace testing_lrpc {
namespace {

using lrpc::SealedOptions;
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

/// A variable of this process for as long as a test runs.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const old = std::getenv(name)) before_ = old;
    setenv(name, value, 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

TEST_F(SealedStart, keeps_the_environment_from_a_program_but_for_what_it_needs) {
  const Variable secret("LRPC_TEST_SECRET", "swordfish");
  const Variable zone("TZ", "UTC");
  const Variable locale("LC_NUMERIC", "C");
  EXPECT_EQ(run({"variable", "LRPC_TEST_SECRET"}), 0);
  EXPECT_EQ(run({"variable", "TZ", "UTC"}), 0);
  EXPECT_EQ(run({"variable", "LC_NUMERIC", "C"}), 0);
}

TEST_F(SealedStart, passes_and_sets_the_variables_that_are_named) {
  const Variable secret("LRPC_TEST_SECRET", "swordfish");
  const Variable zone("TZ", "UTC");
  const auto options = [](std::vector<std::string> environment) {
    SealedOptions made;
    made.environment = std::move(environment);
    return made;
  };
  EXPECT_EQ(run({"variable", "LRPC_TEST_SECRET", "swordfish"}, options({"LRPC_TEST_SECRET"})), 0);
  EXPECT_EQ(run({"variable", "LRPC_TEST_SECRET", "else=where"}, options({"LRPC_TEST_SECRET=else=where"})), 0);
  EXPECT_EQ(run({"variable", "TZ", ""}, options({"TZ=CET", "TZ="})), 0);
  EXPECT_EQ(run({"variable", "LRPC_TEST_UNSET"}, options({"LRPC_TEST_UNSET"})), 0);
  for (const std::string wrong : {"", "=value", "LRPC_SEALED=7", "LRPC_SEALED"})
    EXPECT_EQ(start({"status", "0"}, options({wrong})).code(), lrpc::Errc::invalid_argument) << wrong;
}

}  // namespace
}  // namespace testing_lrpc
