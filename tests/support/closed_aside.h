// Descriptors that a process closes on other threads because a stranger may have sent them.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "eventually.h"

namespace testing_lrpc {

/// Waits until a process ("self", or its number) has no such thread: only then can its descriptors be counted.
inline void wait_for_what_is_closed_aside(const std::string& process = "self") {
  (void)eventually([&] {
    std::error_code gone;
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + process + "/task", gone)) {
      std::string name;
      std::getline(std::ifstream(task.path() / "comm"), name);
      if (name == "lrpc-unread" || name == "lrpc-porter") return false;
    }
    return true;
  });
}

}  // namespace testing_lrpc
