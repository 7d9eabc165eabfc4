// An exception escapes a procedure: what the server's owner is told.
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "limits_service.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;

struct SaysNothing : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return nullptr; }
};

struct ThrowingService : LimitsService {
  void Throw(CallContext&) {
    const std::lock_guard lock(mutex);
    if (throws_number) throw 7;
    if (what.empty()) throw SaysNothing();
    throw std::runtime_error(what);
  }
  void Note(CallContext&, std::uint32_t) {
    const std::lock_guard lock(mutex);
    throw std::runtime_error(what);
  }

  std::mutex mutex;  ///< Both domains are this process, and sanitizers do not see how calls order them.
  std::string what = "on request";
  bool throws_number = false;
};

/// A server with two exports of one interface, and a client for each.
class EscapedExceptions : public testing::Test {
 protected:
  std::unique_ptr<Limits::Client> serve(lrpc::ExportOptions options = {}) {
    auto ends = lrpc::shim::make_socket_pair().value();
    EXPECT_TRUE(Limits::serve_over(server_, std::move(ends.first), service_, std::move(options)));
    return std::make_unique<Limits::Client>(Limits::Client::import_over(std::move(ends.second)).value());
  }
  /// What this process prints on stderr while `client` calls Throw.
  static std::string printed(Limits::Client& client, int times = 1) {
    testing::internal::CaptureStderr();
    for (int i = 0; i < times; ++i) EXPECT_EQ(client.Throw().code(), Errc::exception_escaped);
    return testing::internal::GetCapturedStderr();
  }

  ThrowingService service_;
  lrpc::Server server_;
};

TEST_F(EscapedExceptions, are_told_outside_of_the_callers_deadline) {
  std::atomic<int> limited = -1;
  lrpc::ExportOptions options;
  options.on_exception = [&](const lrpc::EscapedException&) {
    limited = lrpc::shim::calling_thread.limits != nullptr ? 1 : 0;
  };
  const auto client = serve(options);
  const lrpc::CallScope scope{std::chrono::minutes(1)};
  EXPECT_EQ(client->Throw().code(), Errc::exception_escaped);
  EXPECT_EQ(limited, 0);
}

TEST_F(EscapedExceptions, are_told_to_the_owner_with_interface_procedure_and_what) {
  std::mutex mutex;
  std::vector<std::string> told;
  lrpc::ExportOptions options;
  options.on_exception = [&](const lrpc::EscapedException& escaped) {
    const std::lock_guard lock(mutex);
    told.push_back(
        std::string(escaped.interface).append(".").append(escaped.procedure).append(": ").append(escaped.what));
    EXPECT_THROW(std::rethrow_exception(std::current_exception()), std::runtime_error);
  };
  const auto client = serve(options);
  EXPECT_EQ(printed(*client), "") << "the owner has been told";
  EXPECT_TRUE(client->Null());
  {
    const std::lock_guard lock(mutex);
    ASSERT_EQ(told, std::vector<std::string>{"Limits.Throw: on request"});
  }
  ASSERT_TRUE(client->Note(0));
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return told.size() == 2;
  })) << "the owner hears of a one-way procedure, too";
  const std::lock_guard lock(mutex);
  EXPECT_EQ(told.back(), "Limits.Note: on request");
}

TEST_F(EscapedExceptions, are_printed_without_a_hook_the_first_ten_of_each_export) {
  const auto client = serve();
  const std::string lines = printed(*client, 12);
  EXPECT_EQ(std::ranges::count(lines, '\n'), 10) << lines;
  EXPECT_TRUE(lines.starts_with("lrpc: an exception escaped Limits.Throw: on request\n")) << lines;
  EXPECT_TRUE(lines.ends_with("on request (no further ones of this export are printed)\n")) << lines;
  EXPECT_EQ(printed(*serve()), "lrpc: an exception escaped Limits.Throw: on request\n") << "another export";
}

TEST_F(EscapedExceptions, are_printed_on_one_line_whatever_they_say) {
  const auto client = serve();
  {
    const std::lock_guard lock(service_.mutex);
    service_.what = "a\nb\x1b" + std::string(10'000, 'c');
  }
  const std::string line = printed(*client);
  EXPECT_TRUE(line.starts_with("lrpc: an exception escaped Limits.Throw: a?b?ccc")) << line;
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
  EXPECT_LT(line.size(), 1000U);
  {
    const std::lock_guard lock(service_.mutex);
    service_.throws_number = true;
  }
  EXPECT_EQ(printed(*client), "lrpc: an exception escaped Limits.Throw: not a std::exception\n");
  {
    const std::lock_guard lock(service_.mutex);
    service_.throws_number = false;
    service_.what.clear();
  }
  EXPECT_EQ(printed(*client), "lrpc: an exception escaped Limits.Throw: what() says nothing\n");
}

TEST_F(EscapedExceptions, of_the_hook_itself_end_nothing) {
  lrpc::ExportOptions options;
  options.on_exception = [](const lrpc::EscapedException&) { throw std::logic_error("the hook's own"); };
  const auto client = serve(options);
  EXPECT_EQ(printed(*client), "lrpc: an exception escaped on_exception of Limits: the hook's own\n");
  EXPECT_TRUE(client->Null());
}

/// A function that counts its call in `calls` and then throws.
auto throws(std::atomic<int>& calls, const char* what) {
  return [&calls, what](auto&&...) {
    ++calls;
    throw std::logic_error(what);
  };
}

TEST_F(EscapedExceptions, of_hooks_are_printed_and_end_nothing) {
  std::atomic<int> calls{0};
  lrpc::ExportOptions options;
  options.on_bound = throws(calls, "no place for it");
  options.on_unbound = throws(calls, "never heard of it");
  testing::internal::CaptureStderr();
  auto client = serve(options);
  EXPECT_TRUE(client->Null());
  EXPECT_TRUE(eventually([&] { return calls == 1; }));
  client.reset();
  EXPECT_TRUE(eventually([&] { return calls == 2; }));
  EXPECT_TRUE(serve()->Null());  // runs after them on the thread that calls the hooks
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "lrpc: an exception escaped on_bound of Limits: no place for it\n"
            "lrpc: an exception escaped on_unbound of Limits: never heard of it\n");
}

TEST_F(EscapedExceptions, of_authorise_are_printed_and_the_client_gets_no_word_of_them) {
  lrpc::ExportOptions options;
  options.authorise = [](const lrpc::ClientCredentials&) -> lrpc::Status { throw std::logic_error("a secret"); };
  auto ends = lrpc::shim::make_socket_pair().value();
  testing::internal::CaptureStderr();
  EXPECT_TRUE(Limits::serve_over(server_, std::move(ends.first), service_, options));
  const auto refused = Limits::Client::import_over(std::move(ends.second));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "lrpc: an exception escaped authorise of Limits: a secret\n");
  EXPECT_EQ(refused.code(), Errc::not_permitted);
  EXPECT_EQ(refused.error().text, "not authorised: the authorisation threw an exception");
}

TEST_F(EscapedExceptions, of_those_who_are_told_of_a_revocation_are_printed_and_the_next_is_told) {
  std::atomic<std::uint64_t> bound{0};
  lrpc::ExportOptions options;
  options.on_bound = [&](std::uint64_t id, const lrpc::Credentials&) { bound = id; };
  const auto client = serve(options);
  EXPECT_TRUE(eventually([&] { return bound != 0; }));
  std::atomic<int> calls{0};
  ASSERT_TRUE(client->binding().when_revoked(throws(calls, "who was that")));
  ASSERT_TRUE(client->binding().when_revoked([&] { ++calls; }));
  testing::internal::CaptureStderr();
  server_.end_binding(bound);
  EXPECT_TRUE(eventually([&] { return calls == 2; }));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "lrpc: an exception escaped on_revoked or when_revoked(): who was that\n");
}

}  // namespace
}  // namespace testing_lrpc
