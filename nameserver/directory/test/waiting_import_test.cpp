// An import of `name@` that waits, and a nameserver that is restarted meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "conformance_service.h"
#include "directory.server.h"
#include "eventually.h"
#include "world.h"

namespace lrpc::directory::test {
namespace {

/// A directory according to which this machine has every name. There is no nameserver from its first answer to its
/// second.
class RestartingDirectory {
 public:
  explicit RestartingDirectory(testing_lrpc::World& world) : world_(world) {}

  Result<Directory::LookupResults, Directory::Refused> Lookup(CallContext& /*context*/, const String<255>& /*name*/,
                                                              const String<255>& /*interface_name*/,
                                                              std::uint16_t /*major*/, std::uint16_t /*minor*/,
                                                              std::uint64_t /*hash*/, std::uint32_t /*wait_ms*/) {
    switch (++asked) {
      case 1: world_.stop_nameserver(); break;
      case 2: world_.start_nameserver(); break;
      default: break;
    }
    return Directory::LookupResults{.hosts = String<127>::cut("10.0.0.1"), .own = true, .age_ms = 0};
  }
  void Report(CallContext& /*context*/, const String<15>& /*host*/, bool /*reached*/) {}

  std::atomic<int> asked{0};

 private:
  testing_lrpc::World& world_;
};

TEST(WaitingImport, goes_on_over_a_restart_of_the_nameserver) {
  testing_lrpc::World world;
  RestartingDirectory directory(world);
  testing_lrpc::ConformanceService service;
  Server server({.nameserver = world.nameserver()});
  ASSERT_TRUE(Directory::export_to(server, std::string(shim::kDirectoryName), directory));
  ASSERT_TRUE(Conformance::export_to(server, "name", service));
  const auto client =
      Conformance::Client::import("name@", {.nameserver = world.nameserver(), .timeout = testing_lrpc::kPatience});
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_GE(directory.asked, 2);
}

}  // namespace
}  // namespace lrpc::directory::test
