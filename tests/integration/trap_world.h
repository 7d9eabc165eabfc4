// What the tests of sealed programs have in common.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "conformance_service.h"
#include "eventually.h"
#include "lrpc/sealed.h"
#include "world.h"

namespace testing_lrpc {

/// A server in this process, so that a test sees its statistics, and what sealed programs were refused.
class TrapWorld : public testing::Test {
 protected:
  void SetUp() override {
    auto exported = Conformance::export_to(server_, "host", service_);
    ASSERT_TRUE(exported) << exported.error().message();
    auto started = start({"status", "0"});
    if (started.code() == lrpc::Errc::not_supported) GTEST_SKIP() << started.error().message();
    ASSERT_TRUE(started) << started.error().message();
    EXPECT_EQ(started->wait(), 0);
  }

  lrpc::Result<lrpc::SealedDomain> start(std::vector<std::string> arguments, lrpc::SealedOptions options = {}) {
    arguments.insert(arguments.begin(), LRPC_TEST_SEALED);
    if (options.name.empty()) options.name = "host";
    options.nameserver = world_.nameserver();
    options.on_refused = [this](const lrpc::Refusal& refusal) {
      std::lock_guard lock(mutex_);
      refused_.push_back(refusal.name);
    };
    return lrpc::SealedDomain::start(std::move(arguments), std::move(options));
  }
  /// Returns its exit status; -1000 - signal if it was killed; -2 if it could not be started.
  int run(std::vector<std::string> arguments, lrpc::SealedOptions options = {}) {
    auto domain = start(std::move(arguments), std::move(options));
    EXPECT_TRUE(domain) << domain.error().message();
    if (!domain) return -2;
    const int status = domain->wait();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1000 - WTERMSIG(status);
  }
  /// Checks that nothing of sealed programs is left.
  void expect_nothing_left() {
    EXPECT_TRUE(eventually([&] {
      const auto now = server_.statistics();
      return now.bindings == 0 && now.trap_listeners == 0;
    })) << server_.statistics().bindings
        << " bindings, " << server_.statistics().trap_listeners << " listeners";
  }
  bool was_refused(const std::string& name) {
    std::lock_guard lock(mutex_);
    return std::ranges::find(refused_, name) != refused_.end();
  }

  World world_;
  ConformanceService service_;
  lrpc::Server server_{{.nameserver = world_.nameserver()}};
  std::mutex mutex_;
  std::vector<std::string> refused_;
};

inline lrpc::Result<Conformance::Client> import_by_trap(const std::string& nameserver) {
  return Conformance::Client::import("host", {.nameserver = nameserver, .gate = lrpc::Gate::trap});
}

}  // namespace testing_lrpc
