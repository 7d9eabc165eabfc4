// Limits how many descriptors this process may open.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace testing_lrpc {

/// Sets the process's soft limit of descriptors during its lifetime.
class SoftLimit {
 public:
  explicit SoftLimit(rlim_t most) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit now = before_;
    now.rlim_cur = most;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &now), 0);
  }
  SoftLimit(const SoftLimit&) = delete;
  SoftLimit& operator=(const SoftLimit&) = delete;
  ~SoftLimit() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

}  // namespace testing_lrpc
