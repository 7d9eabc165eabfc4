// Values of a nameserver's options without a meaning are refused, with the option's name.
#include "options.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "lrpc/detail/shim/no_limit.h"

namespace lrpc::nameserver {
namespace {

using std::chrono::milliseconds;

struct Case {
  std::string name;
  std::function<void(NameserverOptions&)> change;
};

TEST(NameserverOptions, each_that_has_no_meaning_is_refused_by_its_name) {
  using O = NameserverOptions;
  const std::vector<Case> cases = {
      {"bind_timeout", [](O& o) { o.bind_timeout = kDoNotWait; }},
      {"bind_timeout", [](O& o) { o.bind_timeout = milliseconds(-1); }},
      {"unread_timeout", [](O& o) { o.unread_timeout = milliseconds(0); }},
      {"unread_timeout", [](O& o) { o.unread_timeout = milliseconds(-1); }},
      {"allocator_tick", [](O& o) { o.allocator_tick = milliseconds(0); }},
      {"allocator_tick", [](O& o) { o.allocator_tick = milliseconds(-1); }},
      {"user.connections", [](O& o) { o.limits.user.connections = 0; }},
      {"user.names", [](O& o) { o.limits.user.names = 0; }},
      {"user.declaration_bytes", [](O& o) { o.limits.user.declaration_bytes = 0; }},
      {"user.imports", [](O& o) { o.limits.user.imports = 0; }},
      {"user.region_bytes", [](O& o) { o.limits.user.region_bytes = 0; }},
      {"user.descriptors_in_flight", [](O& o) { o.limits.user.descriptors_in_flight = 0; }},
      {"user.binds", [](O& o) { o.limits.user.binds = 0; }},
      {"max_connections", [](O& o) { o.limits.max_connections = 0; }},
      {"max_names", [](O& o) { o.limits.max_names = 0; }},
      {"max_declaration_bytes", [](O& o) { o.limits.max_declaration_bytes = 0; }},
      {"max_imports", [](O& o) { o.limits.max_imports = 0; }},
      {"max_binds", [](O& o) { o.limits.max_binds = 0; }},
      {"max_exports_per_connection", [](O& o) { o.limits.max_exports_per_connection = 0; }},
      {"max_export_bytes_per_connection", [](O& o) { o.limits.max_export_bytes_per_connection = 0; }},
      {"max_imports_per_connection", [](O& o) { o.limits.max_imports_per_connection = 0; }},
      {"max_binds_per_server", [](O& o) { o.limits.max_binds_per_server = 0; }},
      {"max_queued_messages", [](O& o) { o.limits.max_queued_messages = 0; }},
      {"max_fds_in_flight_per_connection", [](O& o) { o.limits.max_fds_in_flight_per_connection = 0; }},
      {"max_fds_in_flight", [](O& o) { o.limits.max_fds_in_flight = 0; }},
      {"max_region_bytes", [](O& o) { o.limits.max_region_bytes = 0; }},
  };
  for (const Case& one : cases) {
    NameserverOptions options;
    options.socket_path = ::testing::TempDir() + "lrpc-options-test.sock";
    one.change(options);
    const auto opened = Nameserver::open(options);
    ASSERT_EQ(opened.code(), Errc::invalid_argument) << one.name;
    EXPECT_NE(opened.error().message().find("::" + one.name + " "), std::string::npos) << opened.error().message();
  }
}

TEST(NameserverOptions, no_limit_is_one_everywhere) {
  NameserverOptions options;
  EXPECT_TRUE(check_options(options));
  options.bind_timeout = options.unread_timeout = options.allocator_tick = kNoLimit;
  options.limits.user.names = options.limits.max_names = options.limits.max_connections = kNoLimit;
  EXPECT_TRUE(check_options(options));
  cut_to_what_the_clock_can_tell(options);
  EXPECT_LT(options.bind_timeout, milliseconds(std::chrono::hours(24 * 366)));
  EXPECT_TRUE(options.unread_timeout == kNoLimit);
  EXPECT_TRUE(options.allocator_tick == kNoLimit);
}

}  // namespace
}  // namespace lrpc::nameserver
