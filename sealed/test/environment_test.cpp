// Which environment variables a sealed program gets from its launcher.
#include "environment.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "lrpc/detail/shim/trap/trap.h"

namespace lrpc::sealed {
namespace {

using Variables = std::vector<std::string>;
const std::string kVariable = shim::kSealedVariable;

constexpr std::array<const char*, 7> kLaunchers{"PATH=/bin", "SECRET=1",        "LC_ALL=C", "EDITOR=vi",
                                                "TZ=UTC",    "LRPC_SEALED=old", nullptr};

TEST(EnvironmentOfAProgram, is_what_a_program_needs_to_compute) {
  EXPECT_EQ(environment_of_program(kLaunchers.data(), {}).value(), (Variables{"", "PATH=/bin", "LC_ALL=C", "TZ=UTC"}));
  EXPECT_EQ(environment_of_program(nullptr, {}).value(), Variables{""});
}

TEST(EnvironmentOfAProgram, has_what_is_asked_for_by_name) {
  EXPECT_EQ(environment_of_program(kLaunchers.data(), {"EDITOR", "ABSENT"}).value(),
            (Variables{"", "PATH=/bin", "LC_ALL=C", "EDITOR=vi", "TZ=UTC"}));
}

TEST(EnvironmentOfAProgram, has_what_is_set_the_last_value_of_a_name_alone) {
  EXPECT_EQ(environment_of_program(kLaunchers.data(), {"PATH=/a", "X=", "PATH=/b=c"}).value(),
            (Variables{"", "LC_ALL=C", "TZ=UTC", "PATH=/b=c", "X="}));
}

TEST(EnvironmentOfAProgram, is_refused_without_a_name_and_with_the_name_that_tells_the_binding) {
  const Variables all{"", "=x", std::string("A=\0B", 4), kVariable, kVariable + "=1"};
  for (const std::string& wrong : all)
    EXPECT_EQ(environment_of_program(kLaunchers.data(), {wrong}).code(), Errc::invalid_argument) << wrong;
}

}  // namespace
}  // namespace lrpc::sealed
