// What the tests of the sandbox have in common.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "attempts.h"
#include "lrpc/sandbox.h"
#include "temporary_directory.h"

namespace lrpc::sandbox::test {

using Directory = testing_lrpc::TemporaryDirectory;

/// Everything below runs where all parts can be had, and says why not elsewhere.
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
  /// The body in a child that has shut itself in.
  static std::string shut_in(const Options& options, const std::function<std::string()>& body) {
    return in_a_child([&] {
      const auto entered = enter(options);
      return entered ? body() : entered.error().message();
    });
  }
};

}  // namespace lrpc::sandbox::test
