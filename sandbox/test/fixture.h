// The fixture of the sandbox tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "attempts.h"
#include "lrpc/sandbox.h"
#include "temporary_directory.h"

namespace lrpc::sandbox::test {

using Directory = testing_lrpc::TemporaryDirectory;

/// Skips each test, with the reason, where some part of the sandbox is unavailable.
class Sandbox : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = in_a_child([] {
      const auto entered = enter();
      if (!entered) return entered.error().message();
      return entered->complete() ? std::string() : entered->text();
    });
    if (!why.empty()) GTEST_SKIP() << why;
  }
  /// Runs `body` in a child process that has entered the sandbox.
  static std::string shut_in(const Options& options, const std::function<std::string()>& body) {
    return in_a_child([&] {
      const auto entered = enter(options);
      return entered ? body() : entered.error().message();
    });
  }
};

}  // namespace lrpc::sandbox::test
