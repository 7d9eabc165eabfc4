// Gate::none: both sides of a call in the caller's thread, even if a procedure calls its own binding again.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "conformance.client.h"
#include "conformance_service.h"
#include "inline_server.h"

namespace testing_lrpc {
namespace {

using namespace std::chrono_literals;

std::array<std::byte, 4'000> filled_with(int value) {
  std::array<std::byte, 4'000> data{};
  data.fill(static_cast<std::byte>(value));
  return data;
}

/// Sum makes another call before it adds the bytes.
struct Interrupted : ConformanceService {
  std::uint64_t Sum(CallContext& call, std::span<const std::byte> data) {
    const auto binding = call.binding_id();
    const auto procedure = call.procedure();
    const bool limited = call.remaining().has_value();
    if (meanwhile) meanwhile();
    if (call.binding_id() != binding || call.procedure() != procedure || call.remaining().has_value() != limited) {
      return 0;
    }
    return ConformanceService::Sum(call, data);
  }
  std::function<void()> meanwhile;
};

struct InlineCalls : testing::Test {
  InlineCalls() {
    auto imported = bind_privately(server, service, {.gate = lrpc::Gate::none});
    if (!imported) return;
    client = std::make_unique<Conformance::Client>(*std::move(imported));
    here.emplace(server, client->binding());
  }
  void SetUp() override { ASSERT_NE(client, nullptr); }

  Interrupted service;
  lrpc::Server server;
  std::unique_ptr<Conformance::Client> client;
  std::optional<InlineServer> here;
};

TEST_F(InlineCalls, leave_the_arguments_of_the_call_that_they_are_made_in_alone) {
  const auto ones = filled_with(1);
  const auto twos = filled_with(2);
  ASSERT_EQ(client->Sum(ones).value(), 4'000U);
  std::uint64_t inner = 0;
  int depth = 0;
  service.meanwhile = [&] {
    if (++depth < 3) inner = client->Sum(twos).value();
    EXPECT_EQ(client->Add(20, 22).value(), 42);
  };
  EXPECT_EQ(client->Sum(ones).value(), 4'000U);
  EXPECT_EQ(inner, 8'000U);
  service.meanwhile = nullptr;
  EXPECT_EQ(client->Sum(twos).value(), 8'000U);
}

TEST_F(InlineCalls, with_a_deadline_leave_the_call_that_they_are_made_in_without_one) {
  const auto ones = filled_with(1);
  std::uint64_t inner = 0;
  bool nested = false;
  service.meanwhile = [&] {
    if (std::exchange(nested, true)) return;
    const lrpc::CallScope scope{1h};
    inner = client->Sum(ones).value();
  };
  EXPECT_EQ(client->Sum(ones).value(), 4'000U);
  EXPECT_EQ(inner, 4'000U);
}

}  // namespace
}  // namespace testing_lrpc
