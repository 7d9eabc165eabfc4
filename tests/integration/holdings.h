// What tests of growth count before and after.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

#include "closed_aside.h"
#include "eventually.h"

namespace testing_lrpc {

/// How many regions and descriptors a process has now.
struct Holdings {
  std::size_t regions = 0;
  std::size_t descriptors = 0;
  /// No more than `before`, which may have counted something that was just being closed.
  [[nodiscard]] bool within(const Holdings& before) const {
    return regions <= before.regions && descriptors <= before.descriptors;
  }

  static Holdings of(const std::string& process = "self") {
    wait_for_what_is_closed_aside(process);
    Holdings now;
    std::ifstream maps("/proc/" + process + "/maps");
    for (std::string line; std::getline(maps, line);) now.regions += line.find("lrpc-region") != std::string::npos;
    for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/" + process + "/fd"))
      ++now.descriptors;
    return now;
  }
};

}  // namespace testing_lrpc
