// Values of options without a meaning are refused, with the option's name. kNoLimit and zero mean what they say.
#include "server_options.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "clerk/domain.h"
#include "lrpc/detail/shim/no_limit.h"

namespace lrpc::server {
namespace {

using namespace std::chrono_literals;

struct Case {
  std::string name;
  std::function<void(ServerOptions&)> change;
};

TEST(ServerOptions, each_that_has_no_meaning_is_refused_by_its_name) {
  const std::vector<Case> cases = {
      {"estack_size", [](ServerOptions& o) { o.estack_size = 0; }},
      {"estack_size", [](ServerOptions& o) { o.estack_size = kNoLimit; }},
      {"estack_size", [](ServerOptions& o) { o.estack_size = std::size_t{1} << 41; }},
      {"max_estacks", [](ServerOptions& o) { o.max_estacks = 0; }},
      {"max_estacks_per_user", [](ServerOptions& o) { o.max_estacks_per_user = 0; }},
      {"estack_idle", [](ServerOptions& o) { o.estack_idle = 0ms; }},
      {"estack_idle", [](ServerOptions& o) { o.estack_idle = -1ms; }},
      {"max_bindings", [](ServerOptions& o) { o.max_bindings = 0; }},
      {"max_bindings_per_client_process", [](ServerOptions& o) { o.max_bindings_per_client_process = 0; }},
      {"max_bindings_per_user", [](ServerOptions& o) { o.max_bindings_per_user = 0; }},
      {"max_region_bytes_per_user", [](ServerOptions& o) { o.max_region_bytes_per_user = 0; }},
      {"max_descriptors_per_user", [](ServerOptions& o) { o.max_descriptors_per_user = 0; }},
      {"max_handles_per_user", [](ServerOptions& o) { o.max_handles_per_user = 0; }},
      {"poll_window", [](ServerOptions& o) { o.poll_window = -1us; }},
      {"poll_window", [](ServerOptions& o) { o.poll_window = 2s; }},
      {"poll_window", [](ServerOptions& o) { o.poll_window = kNoLimit; }},
  };
  for (const Case& one : cases) {
    ServerOptions options;
    one.change(options);
    const Status checked = check_options(options);
    EXPECT_EQ(checked.code(), Errc::invalid_argument) << one.name;
    EXPECT_NE(checked.error().message().find("ServerOptions::" + one.name), std::string::npos)
        << checked.error().message();
    EXPECT_EQ(Domain(options).options_checked().code(), Errc::invalid_argument) << one.name;
  }
}

TEST(ServerOptions, no_limit_is_one_everywhere_and_zero_is_none_where_it_is_said) {
  ServerOptions options;
  EXPECT_TRUE(check_options(options));
  options.max_estacks = options.kept_estacks = options.max_bindings = options.max_bindings_per_client_process =
      kNoLimit;
  options.max_bindings_per_user = options.max_handles_per_user = kNoLimit;
  options.max_region_bytes_per_user = kNoLimit;
  options.max_estacks_per_user = kNoLimit;
  options.max_descriptors_per_user = kNoLimit;
  options.max_grown_astacks_per_binding = options.max_grown_astacks_per_user = kNoLimit;
  options.max_grown_bytes_per_user = kNoLimit;
  options.pollers = kNoLimit;
  options.estack_idle = kNoLimit;
  EXPECT_TRUE(check_options(options));

  ServerOptions least;
  least.kept_estacks = 0;
  least.pollers = 0;
  least.max_grown_astacks_per_binding = least.max_grown_astacks_per_user = 0;
  least.max_grown_bytes_per_user = 0;
  least.poll_window = kDoNotWait;
  EXPECT_TRUE(check_options(least));
}

}  // namespace
}  // namespace lrpc::server
