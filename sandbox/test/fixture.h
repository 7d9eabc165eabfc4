// What the tests of the sandbox have in common.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>

#include "attempts.h"
#include "lrpc/sandbox.h"

namespace lrpc::sandbox::test {

/// A directory that lives as long as this.
class Directory {
 public:
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lrpc-sandbox-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

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
