// What a test of growth counts before and after.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

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

/// Whether `condition` comes to hold within a minute.
template <class Condition>
bool comes_true(Condition&& condition) {
  for (int i = 0; i < 6'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace testing_lrpc
