// What a test of growth counts before and after.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

#include "eventually.h"

namespace testing_lrpc {

/// What a process has of regions and descriptors now.
struct Holdings {
  std::size_t regions = 0;
  std::size_t descriptors = 0;
  friend bool operator==(const Holdings&, const Holdings&) = default;

  static Holdings of(const std::string& process = "self") {
    Holdings now;
    std::ifstream maps("/proc/" + process + "/maps");
    for (std::string line; std::getline(maps, line);) now.regions += line.find("lrpc-region") != std::string::npos;
    for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/" + process + "/fd"))
      ++now.descriptors;
    return now;
  }
};

}  // namespace testing_lrpc
