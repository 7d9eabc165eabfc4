// Answers that the kernel does not send because too many descriptors are in flight.
#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

#include "burst_service.h"
#include "conformance_service.h"
#include "eventually.h"
#include "held_calls.h"

namespace testing_lrpc {
namespace {

/// Makes the clerk's messages with descriptors fail.
class NoDescriptors : public Watch {
 public:
  bool refuses_descriptors() override {
    std::array<char, 16> name{};
    return refuses && ::pthread_getname_np(::pthread_self(), name.data(), name.size()) == 0 &&
           std::string_view(name.data()) == "lrpc-clerk";
  }
  std::atomic<bool> refuses{true};
};

TEST(UnsentAnswers, to_an_import_are_a_limit_reached_and_leave_no_binding) {
  NoDescriptors none;
  none.begin();
  ConformanceService service;
  lrpc::Server server;
  const auto unsent = bind_privately(server, service, {.timeout = kPatience});
  EXPECT_EQ(unsent.code(), lrpc::Errc::limit_reached);
  EXPECT_EQ(server.statistics().bindings, 0U);
  none.refuses = false;
  auto client = bind_privately(server, service, {.timeout = kPatience});
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_TRUE(client->Null());
}

TEST(UnsentAnswers, to_a_request_for_astacks_are_refusals_and_leave_no_region) {
  NoDescriptors none;
  none.refuses = false;
  none.begin();
  LocalBurst burst({.supply = lrpc::AStackSupply::grow});
  none.refuses = true;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { EXPECT_EQ(burst.client->Meet(3).value(), 3U); });
  EXPECT_TRUE(eventually([&] { return burst.server.statistics().growths_refused != 0; }));
  EXPECT_TRUE(eventually([&] { return burst.server.statistics().astacks_grown == 0; })) << "between two requests";
  none.refuses = false;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace testing_lrpc
