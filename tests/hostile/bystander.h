// The honest client beside a hostile one, and the server's holdings, which must be the same when the hostile one is
// gone.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "closed_aside.h"
#include "conformance.client.h"
#include "eventually.h"

namespace testing_lrpc {

/// The number of open descriptors of a process: "self", or a process id.
inline std::size_t open_descriptors(const std::string& process = "self") {
  wait_for_what_is_closed_aside(process);
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/" + process + "/fd")) ++count;
  return count;
}

/// An honest client: it calls and checks every answer.
class Bystander {
 public:
  explicit Bystander(Conformance::Client client) : client_(std::move(client)), bytes_(100'000) { call(50); }
  [[nodiscard]] Conformance::Client& client() noexcept { return client_; }

  /// Makes a small call, and each time one more: with text, with bytes in the tail, or with a raised error, in turn.
  void call() {
    const auto sum = client_.Add(++calls_, 3);
    ASSERT_TRUE(sum) << sum.error().message();
    ASSERT_EQ(*sum, calls_ + 3);
    if (calls_ % 3 == 0) {
      const auto greeting = client_.Greet("you");
      ASSERT_TRUE(greeting) << greeting.error().message();
      ASSERT_EQ(*greeting, "hello, you");
    } else if (calls_ % 3 == 1) {
      std::ranges::fill(bytes_, std::byte{2});
      const auto total = client_.Sum(bytes_);
      ASSERT_TRUE(total) << total.error().message();
      ASSERT_EQ(*total, 200'000U);
    } else {
      ASSERT_EQ(client_.Check(101).code(), lrpc::Errc::raised);
    }
  }
  /// Makes up to `times` calls; stops at a fatal failure.
  void call(int times) {
    for (int i = 0; i < times && !testing::Test::HasFatalFailure(); ++i) call();
  }

 private:
  Conformance::Client client_;
  std::vector<std::byte> bytes_;
  int calls_ = 0;
};

/// What a server holds, by its statistics and by /proc. Remembers it, to compare later.
class ServerHoldings {
 public:
  ServerHoldings(Conformance::Client& client, pid_t server)
      : client_(client), server_(std::to_string(server)), before_(after_its_first_import()) {}

  /// Checks that the server holds what it held. Waits for what it releases after some time (idle E-stacks).
  void expect_as_before() {
    const bool settled = eventually([&] {
      const Counts counted = now();
      // One E-stack more is allowed: the bystander may have used another A-stack of a class since.
      return counted.bindings == before_.bindings && counted.estacks <= before_.estacks + 1 &&
             counted.objects == before_.objects && counted.descriptors <= before_.descriptors;
    });
    const Counts counted = now();
    EXPECT_TRUE(settled) << "bindings " << before_.bindings << " → " << counted.bindings << ", E-stacks "
                         << before_.estacks << " → " << counted.estacks << ", objects " << before_.objects << " → "
                         << counted.objects << ", descriptors " << before_.descriptors << " → " << counted.descriptors;
  }

 private:
  struct Counts {
    std::uint64_t bindings = 0;
    std::uint64_t estacks = 0;
    std::uint64_t objects = 0;
    std::size_t descriptors = 0;
  };
  /// Makes the server import once: that creates descriptors for all its imports, and garbage may be a call that
  /// imports.
  Counts after_its_first_import() {
    EXPECT_EQ(client_.Through("nobody", 1, 2).code(), lrpc::Errc::raised);
    return now();
  }
  Counts now() {
    const auto statistics = client_.Statistics();
    const auto objects = client_.LiveObjects();
    if (!statistics || !objects) return {};
    return {statistics->bindings, statistics->estacks, *objects, open_descriptors(server_)};
  }
  Conformance::Client& client_;
  const std::string server_;
  const Counts before_;
};

}  // namespace testing_lrpc
