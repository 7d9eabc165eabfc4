// "No limit" and "do not wait" mean the same in every option and every wait. Values without a meaning are refused.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "limits_service.h"
#include "lrpc/detail/client/call/completion_queue.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/no_limit.h"
#include "lrpc/sealed.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using namespace lrpc;

using namespace std::chrono_literals;

Error refusal_of(const ImportOptions& options) {
  auto imported = Limits::Client::import("nobody", options);
  auto ends = shim::make_socket_pair();
  auto private_one = Limits::Client::import_over(std::move(ends->first), options);
  auto remote = Limits::Client::import("nobody@127.0.0.1", options);
  EXPECT_EQ(private_one.code(), imported.code());
  EXPECT_EQ(remote.code(), imported.code());
  return imported.error();
}

void expect_refused_by(const std::string& nameserver, ImportOptions options, const std::string& name) {
  options.nameserver = nameserver;
  const Error error = refusal_of(options);
  EXPECT_EQ(error.code, Errc::invalid_argument) << name;
  EXPECT_NE(error.message().find("ImportOptions::" + name), std::string::npos) << error.message();
}

TEST(NoLimit, import_options_without_a_meaning_are_refused_by_their_name) {
  const World world;  // a running nameserver, so that only the option is wrong
  expect_refused_by(world.nameserver(), {.timeout = -1ms}, "timeout");
  expect_refused_by(world.nameserver(), {.grown_idle = 0ms}, "grown_idle");
  expect_refused_by(world.nameserver(), {.grown_idle = -1ms}, "grown_idle");
  expect_refused_by(world.nameserver(), {.call_timeout = kDoNotWait}, "call_timeout");
  expect_refused_by(world.nameserver(), {.call_timeout = -1ms}, "call_timeout");
}

TEST(NoLimit, a_private_import_that_would_not_wait_for_its_answer_is_refused) {
  auto ends = shim::make_socket_pair();
  auto imported = Limits::Client::import_over(std::move(ends->first), {.timeout = kDoNotWait});
  ASSERT_EQ(imported.code(), Errc::invalid_argument);
  EXPECT_NE(imported.error().message().find("ImportOptions::timeout"), std::string::npos) << imported.error().message();
}

TEST(NoLimit, is_what_the_longest_durations_of_an_import_mean) {
  LocalLimits world({.timeout = kNoLimit, .grown_idle = kNoLimit, .call_timeout = kNoLimit});
  EXPECT_TRUE(world.client->Once(3));
  EXPECT_FALSE(lrpc::detail::StubAccess::object(world.client->binding()).times_calls());
  LocalLimits almost({.timeout = std::chrono::milliseconds::max() - 1ms,
                      .grown_idle = std::chrono::milliseconds::max() - 1ms,
                      .call_timeout = std::chrono::milliseconds::max() - 1ms});
  EXPECT_TRUE(almost.client->Once(3)) << "no sum overflows";
}

TEST(NoLimit, a_sealed_domain_refuses_a_negative_timeout_by_its_name) {
  SealedOptions options;
  options.name = "nobody";
  options.timeout = -1ms;
  const auto started = SealedDomain::start({"/bin/true"}, std::move(options));
  ASSERT_EQ(started.code(), Errc::invalid_argument);
  EXPECT_NE(started.error().message().find("SealedOptions::timeout"), std::string::npos) << started.error().message();
}

TEST(NoLimit, waits_that_have_no_time_left_return_at_once_and_those_without_limit_when_it_is_time) {
  LocalLimits world;
  auto queue = CompletionQueue::create();
  ASSERT_TRUE(queue);
  for (const auto none : {std::chrono::milliseconds(kDoNotWait), -1ms, std::chrono::milliseconds::min()}) {
    EXPECT_EQ((*queue)->wait(none), 0U);
    auto call = world.client->start().Once(3);
    (void)call.wait_for(none);
    (void)call.wait_for(std::chrono::nanoseconds::min());
    EXPECT_EQ(call.finish().value(), 3);
  }
  auto call = world.client->start().Once(7);
  ASSERT_TRUE((*queue)->watch(call));
  EXPECT_EQ((*queue)->wait(kNoLimit), 1U);
  EXPECT_TRUE(call.wait_for(kNoLimit));
  EXPECT_TRUE(call.wait_for(std::chrono::milliseconds(kNoLimit)));
  EXPECT_EQ(call.finish().value(), 7);
}

TEST(NoLimit, a_scope_has_no_deadline_with_it_and_is_over_without_time) {
  LocalLimits world;
  {
    const CallScope scope{kNoLimit};
    EXPECT_FALSE(CallScope::remaining());
    EXPECT_TRUE(world.client->Once(3));
  }
  for (const auto none : {std::chrono::milliseconds(kDoNotWait), -1ms}) {
    const CallScope scope{none};
    EXPECT_TRUE(CallScope::over());
    EXPECT_EQ(world.client->Once(3).code(), Errc::call_aborted);
  }
}

}  // namespace
}  // namespace testing_lrpc
